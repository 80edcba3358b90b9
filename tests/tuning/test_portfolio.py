"""The default model: candidates trained apart, the best on validation data kept."""

import pytest
import torch
from torch_geometric.data import Data

import accord
from accord.estimator.fitting._automatic import treatment_for
from accord.learning import TrainingOptions
from accord.tuning import edge_candidates, fit_schedule, has_sparse_features, may_be_directed, node_candidates

STATES = 3


def chains(count, seed, own=2.0, directed=False):
    """Chains whose labels step by one (upwards if directed); features show the label with noise."""
    generator = torch.Generator().manual_seed(seed)
    graphs = []
    for _ in range(count):
        length = 6
        start = int(torch.randint(STATES, (1,), generator=generator))
        steps = torch.randint(1 if directed else 2, (length - 1,), generator=generator)
        y = (start + torch.cat([torch.zeros(1), (1 + steps).cumsum(0)]).long()) % STATES
        x = own * torch.nn.functional.one_hot(y, STATES) + torch.randn(length, STATES, generator=generator)
        order = torch.arange(length - 1)
        graphs.append(Data(x=x, y=y, edge_index=torch.stack([order, order + 1])))
    return graphs


def test_where_neighbours_differ_a_network_that_keeps_the_node_apart_is_chosen():
    train, val = chains(40, 0), chains(40, 1)
    model = accord.NodeClassifier(max_epochs=30, accelerator="cpu").fit(train, val)
    encoder = model.recipe_.encoder  # an average over neighbours hides the node itself, unless a link leads past it
    assert encoder.kind != "gcn" or encoder.skip
    assert model.choice_["score"][0] > 0.85
    assert model.score(chains(60, 2)) > 0.85


def test_the_direction_of_edges_is_read_where_it_tells_something():
    train, val, test = (chains(60, seed, own=1.0, directed=True) for seed in (3, 4, 5))
    parameters = {"encoder": "mlp", "max_epochs": 40, "accelerator": "cpu"}
    chosen = accord.NodeClassifier(**parameters).fit(train, val)
    blind = accord.NodeClassifier(symmetric=True, **parameters).fit(train, val)
    assert chosen.directed_ and not blind.directed_
    assert chosen.score(test) > blind.score(test) + 0.1


def test_graphs_without_edges_train_no_edge_network_for_long():
    graphs = [Data(x=g.x, y=g.y, edge_index=torch.zeros(2, 0, dtype=torch.long)) for g in chains(30, 0)]
    model = accord.NodeClassifier(max_epochs=20, accelerator="cpu").fit(graphs[:20], graphs[20:])
    (edge,) = [row for row in model.candidates_ if row["network"] == "edge"]
    others = [row["seconds"] for row in model.candidates_ if row["network"] == "node"]
    assert edge["seconds"] < sum(others) / 2
    assert model.choice_["sharpness"] == [0.0] and model.recipe_.training.max_epochs == 20
    assert model.score(graphs[20:]) > 0.7


def test_a_saved_default_model_loads_and_says_what_was_chosen(tmp_path):
    train, val = chains(12, 0), chains(8, 1)
    model = accord.NodeClassifier(max_epochs=4, accelerator="cpu").fit(train, val)
    model.save(tmp_path)
    loaded = accord.NodeClassifier.load(tmp_path)
    assert loaded.recipe_ == model.recipe_ and loaded.directed_ == model.directed_
    for graph in val:
        assert torch.equal(loaded.predict(graph), model.predict(graph))


@pytest.mark.parametrize("method", ["gnn", "smooth"])
def test_methods_without_edges_choose_their_network_too(method):
    train, val = chains(12, 0), chains(8, 1)
    model = accord.NodeClassifier(method=method, max_epochs=6, accelerator="cpu").fit(train, val)
    scores = {
        one.encoder: accord.NodeClassifier(method="gnn", encoder=one.encoder, max_epochs=6, accelerator="cpu")
        for one in node_candidates(train)
    }
    for fitted in scores.values():
        fitted.fit(train, val)
    best = max(fitted.score(val) for fitted in scores.values())
    noise = (best * (1 - best) / sum(graph.num_nodes for graph in val)) ** 0.5
    assert scores[model.recipe_.encoder].score(val) >= best - noise - 1e-6


def test_named_benchmarks_and_presets_keep_their_encoder():
    for parameters in ({"benchmark": "cora*"}, {"preset": "paper"}, {"method": "crf"}, {"method": "gmnn"}):
        model = accord.NodeClassifier(**parameters)
        assert model.resolve_recipe(chains(3, 0)).encoder.kind == "gcnii", parameters
        assert model.candidates(chains(3, 0))[0] == ["gcnii"], parameters


def test_candidates_are_named_before_training():
    graphs = chains(3, 0)
    assert accord.NodeClassifier().candidates(graphs) == [["gcnii", "gcn", "sage", "mlp"], ["mlp", "gcn"]]
    assert accord.NodeClassifier(encoder="gcn").candidates(graphs) == [["gcn"]]
    assert accord.NodeClassifier(encoder="gcn", edge_encoder="mlp").candidates(graphs) == [["gcn"], ["mlp"]]


def test_candidates_depend_on_whether_features_are_sparse():
    words = [Data(x=torch.eye(20), edge_index=torch.tensor([[0], [1]]))]
    assert has_sparse_features(words) and not has_sparse_features(chains(3, 0))
    counts = [Data(x=1000 * torch.eye(20))]  # too large to be taken as they are
    assert not has_sparse_features(counts)
    for drawn in (node_candidates, edge_candidates):
        sparse, dense = (max(one.encoder.input_dropout for one in drawn(graphs)) for graphs in (words, chains(3, 0)))
        assert sparse > dense


def edges(pairs, attributes=None):
    return Data(
        x=torch.zeros(4, 1),
        edge_index=torch.tensor(pairs).t(),
        edge_attr=None if attributes is None else torch.tensor(attributes),
    )


def test_when_direction_may_matter():
    both = [(0, 1), (1, 0), (1, 2), (2, 1)]
    assert not may_be_directed([edges(both)])
    assert may_be_directed([edges([(0, 1), (1, 2)])])
    assert not may_be_directed([edges([*both, (3, 3)])]) and not may_be_directed([Data(x=torch.zeros(2, 1))])
    assert not may_be_directed([edges(both, [[1.0], [1.0], [2.0], [2.0]])])
    assert may_be_directed([edges(both, [[1.0], [-1.0], [2.0], [2.0]])])


def test_the_schedule_follows_the_graphs():
    base = TrainingOptions(accelerator="cpu")
    single = fit_schedule(base, [Data(x=torch.zeros(5000, 1))])
    assert single.batch_graphs is None and single.max_epochs == 3000 and single.evaluate_every == 25
    many = fit_schedule(base, [Data(x=torch.zeros(32, 1))] * 800)
    assert many.batch_graphs == 8 and many.max_epochs == 30 and many.evaluate_every == 1
    large = fit_schedule(base, [Data(x=torch.zeros(2000, 1))] * 20)
    assert large.batch_graphs == 1
    assert fit_schedule(base, [Data(x=torch.zeros(8, 1))] * 50, max_epochs=7).max_epochs == 7
    assert many.patience is not None and many.patience >= 3


def test_sparse_features_stay_raw_and_others_are_standardised():
    words = torch.zeros(10, 40)
    words[:, 0] = 1
    assert treatment_for([Data(x=words)]) == "raw"
    assert treatment_for([Data(x=words * 1000)]) == "standardised"
    assert treatment_for([Data(x=torch.randn(10, 4))]) == "standardised"
    assert accord.NodeClassifier(features="row-normalised").resolve_features([Data(x=words)]) == "row-normalised"
    assert accord.NodeClassifier(benchmark="cora*").resolve_features([Data(x=words * 1000)]) == "raw"


def test_the_recipe_of_the_winner_trains_the_same_model():
    train, val = chains(12, 0), chains(8, 1)
    model = accord.NodeClassifier(max_epochs=6, accelerator="cpu").fit(train, val)
    again = accord.NodeClassifier(recipe=model.recipe_, accelerator="cpu").fit(train, val)
    for graph in val:
        torch.testing.assert_close(again.predict_proba(graph), model.predict_proba(graph), rtol=1e-3, atol=1e-4)


def test_few_labels_try_a_smaller_network():
    many = chains(40, 0)
    (few,) = (one.encoder for one in node_candidates(many[:10]) if one.encoder.kind == "gcn")
    (usual,) = (one.encoder for one in node_candidates(many) if one.encoder.kind == "gcn")
    assert not few.skip and few.hidden < usual.hidden and usual.skip
    for graph in many:
        graph.y = torch.where(torch.arange(graph.num_nodes) < 2, graph.y, -1)  # labels that are missing do not count
    assert node_candidates(many) == node_candidates(many[:10])
