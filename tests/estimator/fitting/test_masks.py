"""Masks of a PyG `Data` decide which labels train, choose and count."""

import pytest
import torch
from torch_geometric.data import Data

from accord import NodeClassifier
from accord.encoders import MLP
from accord.errors import GraphError, UnseenStatesWarning
from accord.graphs import fit_treatment
from accord.learning import CombinationGrid, PartOptions
from accord.methods import SPNRecipe

STATES, FEATURES = 4, 32
QUICK = CombinationGrid(sharpness=(1.0, 0.0), power=(1.0,), node_weight=(1.0,))


def masked_graph(nodes=100, random_labels=False, shares=(0.5, 0.2, 0.3), seed=0):
    """One random graph whose features show the labels, or have nothing to do with them, and its three masks."""
    generator = torch.Generator().manual_seed(seed)
    y = torch.randint(0, STATES, (nodes,), generator=generator)
    x = 0.4 * torch.randn(nodes, FEATURES, generator=generator)
    if not random_labels:
        x[:, :STATES] += torch.nn.functional.one_hot(y, STATES)
    edges = torch.randint(0, nodes, (2, 2 * nodes), generator=generator)
    order = torch.randperm(nodes, generator=generator).split([round(share * nodes) for share in shares])
    masks = torch.zeros(3, nodes, dtype=torch.bool)
    for row, members in zip(masks, order, strict=True):
        row[members] = True
    return Data(x=x, edge_index=edges, y=y, train_mask=masks[0], val_mask=masks[1], test_mask=masks[2])


def classifier(**changes):
    rate = PartOptions(learning_rate=1e-2)
    recipe = SPNRecipe(
        encoder=MLP(hidden=64), edge_encoder=MLP(hidden=8), edge_channels=8, node=rate, edge=rate, grid=QUICK
    )
    return NodeClassifier(**{"recipe": recipe, "max_epochs": 10, "accelerator": "cpu", "features": "raw", **changes})


def without(graph, *names):
    rest = graph.clone()
    for name in names:
        del rest[name]
    return rest


@pytest.fixture(scope="module")
def random_labels():
    graph = masked_graph(400, random_labels=True)
    return graph, classifier(max_epochs=60).fit(graph)


def test_random_labels_score_as_chance(random_labels):
    graph, model = random_labels
    chance, tested = 1 / STATES, int(graph.test_mask.sum())
    deviation = (chance * (1 - chance) / tested) ** 0.5
    assert abs(model.score(graph) - chance) < 3 * deviation
    right = model.predict(graph) == graph.y
    assert right[graph.train_mask].double().mean() > 0.9  # learned by heart, so labels that leak would show
    assert model.score(graph) == pytest.approx(float(right[graph.test_mask].double().mean()))


def test_answers_count_the_test_mask(random_labels):
    graph, model = random_labels
    truth = model.answers([graph]).truth[0]
    assert torch.equal(truth, graph.y.masked_fill(~graph.test_mask, -1))


def test_hidden_labels_change_nothing():
    graph = masked_graph()
    changed = graph.clone()
    changed.y = torch.where(graph.test_mask, (graph.y + 1) % STATES, graph.y)
    models = [classifier(features="standardised").fit(one) for one in (graph, changed)]
    assert torch.equal(models[0].predict_proba(graph), models[1].predict_proba(graph))


def test_masks_give_what_masked_labels_give():
    graph = masked_graph()
    bare = without(graph, "train_mask", "val_mask", "test_mask")
    train, val = bare.clone(), bare.clone()
    train.y = graph.y.masked_fill(~graph.train_mask, -1)
    val.y = graph.y.masked_fill(~graph.val_mask, -1)
    by_hand = classifier().fit(train, val)
    for model in (classifier().fit(graph), classifier().fit(graph, graph)):
        assert torch.equal(model.predict_proba(graph), by_hand.predict_proba(graph))
    assert by_hand.score(graph) > 2 / STATES


def test_scaling_is_fitted_on_training_nodes_only():
    graph = masked_graph()
    graph.x[graph.test_mask] += 100.0
    model = classifier(max_epochs=0, features="standardised").fit(graph)
    assert model.treatment_.equals(fit_treatment("standardised", [Data(x=graph.x[graph.train_mask])]))


def test_without_a_val_mask_training_labels_are_held_out():
    graph = without(masked_graph(random_labels=True), "val_mask")
    model = classifier(max_epochs=2)
    seen = []
    model._method = lambda: Recorder(seen)
    with pytest.raises(StopIteration):
        model.fit(graph)
    train, val = (run[0].y >= 0 for run in seen)
    assert not bool((train & val).any()) and torch.equal(train | val, graph.train_mask)
    assert int(val.sum()) == int(0.2 * int(graph.train_mask.sum()))


class Recorder:
    """Notes the graphs that a method would train on."""

    def __init__(self, seen):
        self.seen = seen

    def fit(self, run, shape, replicas):
        self.seen.extend([run.train, run.validation])
        raise StopIteration


def test_in_a_list_graphs_count_by_their_masked_nodes():
    graphs = [masked_graph(20, shares=(0.6, 0.2, 0.2), seed=seed) for seed in range(10)]
    model = classifier(max_epochs=10).fit(graphs)
    right = [(model.predict(graph) == graph.y)[graph.test_mask] for graph in graphs]
    assert model.score(graphs, level="graph") == pytest.approx(sum(bool(r.all()) for r in right) / len(graphs))


def test_graphs_that_are_masked_whole_take_one_part():
    everything, nothing = torch.ones(20, dtype=torch.bool), torch.zeros(20, dtype=torch.bool)
    graphs = [masked_graph(20, shares=(0.6, 0.2, 0.2), seed=seed) for seed in range(6)]
    for number, graph in enumerate(graphs):
        role = ("train_mask", "train_mask", "train_mask", "val_mask", "test_mask", "test_mask")[number]
        for name in ("train_mask", "val_mask", "test_mask"):
            graph[name] = everything if name == role else nothing
    seen = []
    model = classifier()
    model._method = lambda: Recorder(seen)
    with pytest.raises(StopIteration):
        model.fit(graphs)
    assert [len(part) for part in seen] == [3, 1]


def test_states_of_hidden_labels_are_counted():
    graph = masked_graph()
    graph.y[graph.test_mask.nonzero()[0]] = STATES
    with pytest.warns(UnseenStatesWarning, match="1 of 5 states"):
        model = classifier(max_epochs=2).fit(graph)
    assert 0 <= model.score(graph) <= 1


def test_masks_that_select_no_label_are_refused():
    graph = masked_graph()
    graph.train_mask = torch.zeros_like(graph.train_mask)
    with pytest.raises(GraphError, match="training graphs have no labels.*masks must select"):
        classifier().fit(graph)
    fitted = classifier(max_epochs=0).fit(masked_graph())
    graph.test_mask = torch.zeros_like(graph.test_mask)
    with pytest.raises(GraphError, match="outside their test_mask"):
        fitted.score(graph)


def test_several_splits_are_refused_with_the_remedy():
    graph = masked_graph()
    graph.train_mask = graph.train_mask[:, None].expand(-1, 10)
    with pytest.raises(GraphError, match=r"graph 0: train_mask .* 10 splits.*data.train_mask\[:, 0\]"):
        classifier().fit(graph)
