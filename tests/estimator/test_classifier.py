"""The front door: scikit-learn's manners, prediction, saving, and clear answers to bad graphs."""

import json

import numpy as np
import pytest
import torch
from sklearn.base import clone, is_classifier
from sklearn.model_selection import GridSearchCV
from torch.testing import assert_close
from torch_geometric.data import Batch, Data

import accord
from accord.encoders import GCN, MLP, Adapter
from accord.errors import (
    AccordError,
    ConvergenceWarning,
    DataNotFoundError,
    GraphError,
    InputError,
    InputTypeError,
    OptionError,
    UnseenStatesWarning,
)
from accord.estimator.fitting import _inputs
from accord.evaluation import node_accuracy
from accord.graphs import fit_treatment, graph_topology
from accord.inference import eliminate_beliefs, propagate

STATES = 3


def made_graphs(count, seed, tasks=None):
    generator = torch.Generator().manual_seed(seed)
    graphs = []
    for _ in range(count):
        size = int(torch.randint(4, 8, (), generator=generator))
        ring = torch.stack([torch.arange(size), (torch.arange(size) + 1) % size])
        y = torch.randint(0, STATES, (), generator=generator) + (torch.rand(size, generator=generator) < 0.2).cumsum(0)
        y = y % STATES
        x = torch.nn.functional.one_hot(y, STATES) + torch.randn(size, STATES, generator=generator)
        if tasks:
            y = torch.stack([(y == task).long() for task in range(tasks)], 1)
        graphs.append(Data(x=x, edge_index=torch.cat([ring, ring.flip(0)], 1), y=y))
    return graphs


TRAIN, VAL, TEST = made_graphs(30, 0), made_graphs(15, 1), made_graphs(20, 2)


def classifier(**changes):
    options = {"encoder": MLP(hidden=8), "edge_encoder": GCN(hidden=8), "max_epochs": 20, "accelerator": "cpu"}
    return accord.NodeClassifier(**{**options, **changes})


@pytest.fixture(scope="module")
def fitted():
    return classifier().fit(TRAIN, VAL)


def test_predictions_have_the_promised_shapes(fitted):
    graph = TEST[0]
    labels, marginals, pairs = fitted.predict(graph), fitted.predict_proba(graph), fitted.predict_edge_proba(graph)
    edges = graph_topology(graph).edge_index
    assert labels.dtype == torch.long and labels.shape == (graph.num_nodes,)
    assert marginals.shape == (graph.num_nodes, STATES) and pairs.shape == (edges.shape[1], STATES, STATES)
    assert_close(marginals.sum(-1), torch.ones(graph.num_nodes))
    assert_close(pairs.sum((-1, -2)), torch.ones(edges.shape[1]))


def test_score_is_a_fraction_at_either_level(fitted):
    right = [(fitted.predict(graph) == graph.y) for graph in TEST]
    assert fitted.score(TEST) == pytest.approx(float(torch.cat(right).double().mean()))
    assert fitted.score(TEST, level="graph") == pytest.approx(sum(bool(r.all()) for r in right) / len(right))
    assert fitted.score(TEST) > 0.45  # a third by chance


def test_several_tasks_give_a_column_each():
    train, test = made_graphs(30, 0, tasks=2), made_graphs(5, 1, tasks=2)
    model = classifier().fit(train)
    assert model.predict(test[0]).shape == (test[0].num_nodes, 2)
    assert model.predict_proba(test[0]).shape == (test[0].num_nodes, 2, 2)
    assert model.predict_edge_proba(test[0]).shape[1:] == (2, 2, 2)
    right = torch.cat([(model.predict(graph) == graph.y).flatten() for graph in test])
    assert model.score(test) == pytest.approx(float(right.double().mean()), abs=1e-6)


def test_the_gnn_labels_each_node_by_itself():
    model = classifier(method="gnn").fit(TRAIN, VAL)
    for graph in TEST:
        assert torch.equal(model.predict(graph), model.predict_proba(graph).argmax(-1))


def test_scikit_learn_manners():
    model = classifier()
    assert is_classifier(model) and clone(model).get_params()["max_epochs"] == 20
    assert model.set_params(seed=4).seed == 4
    assert set(model.get_params()) >= {
        "method",
        "encoder",
        "edge_encoder",
        "level",
        "refine",
        "max_epochs",
        "seed",
        "preset",
    }
    search = GridSearchCV(
        classifier(max_epochs=4), {"method": ["spn", "gnn"], "seed": [0, 1]}, cv=2, error_score="raise"
    )
    search.fit(TRAIN)
    assert search.best_params_.keys() == {"method", "seed"} and 0 <= search.best_score_ <= 1
    assert search.predict(TEST[0]).shape == (TEST[0].num_nodes,)


def test_saved_models_predict_the_same(fitted, tmp_path):
    named = clone(fitted).set_params(label_names=["a", "b", "c"]).fit(TRAIN, VAL)
    named.save(tmp_path / "run")
    again = accord.NodeClassifier.load(tmp_path / "run")
    assert again.label_names == ["a", "b", "c"]
    for graph in TEST[:5]:
        assert torch.equal(again.predict(graph), named.predict(graph))
        assert_close(again.predict_proba(graph), named.predict_proba(graph))
    assert sorted(path.name for path in (tmp_path / "run").iterdir()) == [
        "README.md",
        "model.json",
        "model.safetensors",
    ]
    assert "a, b, c" in (tmp_path / "run" / "README.md").read_text()
    assert json.loads((tmp_path / "run" / "model.json").read_text())["versions"]["torch"] == torch.__version__


@pytest.mark.filterwarnings("ignore::accord.errors.ConvergenceWarning")
def test_features_are_matched_by_name(tmp_path):
    named = [graph.clone() for graph in (*TRAIN, *VAL)]
    for graph in named:
        graph.feature_names = ["a", "b", "c"]
    model = classifier(max_epochs=5).fit(named[: len(TRAIN)], named[len(TRAIN) :])
    model.save(tmp_path)
    loaded = accord.NodeClassifier.load(tmp_path)
    assert loaded.feature_names == ["a", "b", "c"]
    graph = TEST[0]
    turned = Data(x=graph.x[:, [2, 0, 1]], edge_index=graph.edge_index, feature_names=["c", "a", "b"])
    wider = Data(x=torch.cat([turned.x, turned.x], 1), edge_index=graph.edge_index)
    wider.feature_names = ["c", "a", "b", "d", "e", "f"]
    for same in (turned, wider, graph):
        assert torch.equal(loaded.predict_proba(same), model.predict_proba(graph))
    turned.feature_names = ["c", "a", "x"]
    with pytest.raises(GraphError, match="has no feature 'b'.*It has 'c', 'a', 'x'"):
        loaded.predict(turned)
    named[1].feature_names = ["a", "c", "b"]
    with pytest.raises(GraphError, match="feature_names of graph 1 differ"):
        clone(model).fit(named, named)


def test_portions_make_no_difference(fitted, monkeypatch):
    whole = fitted.answers(TEST)
    monkeypatch.setattr(_inputs, "PORTION_NUMBERS", 100)
    assert len(list(_inputs.portions(TEST, 9))) > 5
    parts = fitted.answers(TEST)
    assert fitted.score(TEST) == float(node_accuracy(whole.labels["spn"], whole.truth))
    for name in whole.labels:
        assert torch.equal(whole.labels[name], parts.labels[name])
        assert_close(whole.probabilities[name], parts.probabilities[name])
    first = TEST[0].num_nodes
    assert torch.equal(whole.labels["spn"][0][:first], fitted.predict(TEST[0]))
    assert_close(whole.probabilities["spn"][0][:first], fitted.predict_proba(TEST[0]))


def named(graph, names, order):
    """The same graph, its labels written as names and numbered in another order, as if read from its own file."""
    used = sorted({names[state] for state in graph.y.tolist()}) if order is None else order
    y = torch.tensor([used.index(names[state]) for state in graph.y.tolist()])
    return Data(x=graph.x, edge_index=graph.edge_index, y=y, label_names=used)


def test_labels_are_matched_by_name(fitted, tmp_path):
    names = ["ape", "bee", "cat"]
    train, val, test = ([named(graph, names, None) for graph in graphs] for graphs in (TRAIN, VAL, TEST))
    assert any(graph.label_names != names for graph in test)  # each file numbers the names that it has
    model = classifier().fit(train, val)
    assert model.label_names_ == names and clone(model).label_names is None
    model.save(tmp_path)
    for same in (model, accord.NodeClassifier.load(tmp_path)):
        assert same.score(test) == same.score(TEST) == fitted.score(TEST)
        assert torch.equal(same.answers(test).truth, fitted.answers(TEST).truth)
        assert torch.equal(same.predict(test[0]), fitted.predict(TEST[0]))
    backwards = [named(graph, names, ["cat", "bee", "ape"]) for graph in TEST]
    assert model.score(backwards) == fitted.score(TEST)
    foreign = backwards[0].clone()
    foreign.y, foreign.label_names = torch.full_like(foreign.y, 2), ["cat", "bee", "dog"]
    with pytest.raises(GraphError, match="label 'dog' is unknown. The model knows 'ape', 'bee', 'cat'"):
        model.score([foreign])
    with pytest.raises(GraphError, match="trained on numbers"):
        fitted.score(test)


def test_a_batch_made_by_hand_is_refused(fitted):
    graph = TEST[0]
    batch = Batch(x=graph.x, edge_index=graph.edge_index, batch=torch.zeros(graph.num_nodes, dtype=torch.long))
    with pytest.raises(GraphError, match="cannot be taken apart.*Batch.from_data_list"):
        fitted.predict(batch)


def skewed(graph):
    """The same graph with features on very different scales."""
    return Data(x=graph.x * torch.tensor([1.0, 50.0, 0.1]) + 3, edge_index=graph.edge_index, y=graph.y)


@pytest.mark.filterwarnings("ignore::accord.errors.ConvergenceWarning")
@pytest.mark.parametrize("features", ["row-normalised", "standardised"])
def test_features_are_treated_by_the_model(features, tmp_path):
    train, val, test = ([skewed(graph) for graph in graphs] for graphs in (TRAIN, VAL, TEST[:4]))
    model = classifier(max_epochs=10, features=features).fit(train, val)
    model.save(tmp_path)
    loaded = accord.NodeClassifier.load(tmp_path)
    treatment = fit_treatment(features, train)

    def treated(graph):
        return Data(x=treatment.treat(graph.x), edge_index=graph.edge_index, y=graph.y)

    by_hand = classifier(max_epochs=10, features="raw").fit(
        [treated(graph) for graph in train], [treated(graph) for graph in val]
    )
    for graph in test:
        expected = by_hand.predict_proba(treated(graph))
        assert torch.equal(loaded.predict_proba(graph), expected)
        assert torch.equal(loaded.predict_proba(treatment.apply(graph)), expected)
    assert loaded.score(test) == by_hand.score([treated(graph) for graph in test])
    batch = Batch.from_data_list([treatment.apply(graph) for graph in test[:2]])
    assert torch.equal(loaded.predict(batch), torch.cat([loaded.predict(graph) for graph in test[:2]]))


def test_damaged_or_absent_models_are_refused(fitted, tmp_path):
    with pytest.raises(DataNotFoundError, match="not a saved model"):
        accord.NodeClassifier.load(tmp_path)
    fitted.save(tmp_path)
    (tmp_path / "model.safetensors").write_bytes(b"damaged")
    with pytest.raises(InputError, match="not a checkpoint"):
        accord.NodeClassifier.load(tmp_path)
    fitted.save(tmp_path)
    for text, message in (
        ("{", "not valid json"),
        ("[]", "not a model's configuration"),
        ('{"format": 7}', "format 7"),
        ('{"format": 1}', "saved in format 1.*Train it again"),
        ('{"format": 2}', "the saved model is damaged"),
    ):
        (tmp_path / "model.json").write_text(text)
        with pytest.raises(InputError, match=message):
            accord.NodeClassifier.load(tmp_path)
    with pytest.raises(OptionError, match="accelerator"):
        fitted.save(tmp_path)
        accord.NodeClassifier.load(tmp_path, accelerator="tpu")


def test_graphs_that_differ_from_training_get_a_clear_answer(fitted):
    no_edges = Data(x=torch.randn(4, STATES), edge_index=torch.empty(2, 0, dtype=torch.long))
    assert fitted.predict(no_edges).shape == (4,)
    assert fitted.predict(Data(x=torch.randn(0, STATES), edge_index=no_edges.edge_index)).shape == (0,)
    with pytest.raises(GraphError, match="5 features a node, the model was trained on 3"):
        fitted.predict(Data(x=torch.randn(4, 5), edge_index=no_edges.edge_index))
    with pytest.raises(GraphError, match="knows states 0 to 2"):
        fitted.score([Data(x=torch.randn(2, 3), edge_index=no_edges.edge_index, y=torch.tensor([0, 7]))])
    with pytest.raises(GraphError, match="no labels"):
        fitted.score([no_edges])
    with pytest.raises(InputTypeError, match="not a torch_geometric"):
        fitted.predict([1, 2])
    with pytest.raises(AccordError):
        fitted.predict(Data(x=torch.full((4, STATES), torch.nan), edge_index=no_edges.edge_index))
    batch = Batch.from_data_list(TEST[:3])
    assert torch.equal(fitted.predict(batch), torch.cat([fitted.predict(graph) for graph in TEST[:3]]))


def test_bad_choices_are_refused_before_any_work():
    for changes, message in (
        ({"method": "svm"}, "method 'svm' is unknown"),
        ({"encoder": "perceptron"}, "perceptron"),
        ({"level": "word"}, "level 'word' is unknown"),
        ({"preset": "best"}, "preset 'best' is unknown"),
        ({"label_names": ["only one"]}, "label_names"),
        ({"benchmark": "corra*"}, "no benchmark called 'corra\\*'"),
        ({"accelerator": "tpu"}, "accelerator 'tpu'"),
        ({"max_epochs": -1}, "max_epochs is -1"),
        ({"symmetric": "maybe"}, "symmetric is 'maybe'; give True, False or 'auto'"),
    ):
        with pytest.raises(OptionError, match=message):
            classifier(**changes).fit(TRAIN, VAL)
    for changes in (
        *({"seed": "a"}, {"num_states": "3"}, {"recipe": 3}, {"encoder": 3}, {"label_names": "abc"}),
        *({"symmetric": None}, {"symmetric": 1}, {"symmetric": torch.tensor([True, False])}),
    ):
        with pytest.raises(InputTypeError):
            classifier(**changes).fit(TRAIN, VAL)
    x, edges = torch.randn(2, 3), torch.empty(2, 0, dtype=torch.long)
    for y in (np.zeros(2), torch.tensor(1), torch.tensor([0.5, 1.0])):
        with pytest.raises(AccordError):
            classifier().fit([Data(x=x, edge_index=edges, y=y)] * 4)
    with pytest.raises(GraphError, match="without gaps"):
        classifier().fit([Data(x=x, edge_index=edges, y=torch.tensor([0, 100_000]))] * 4)
    with pytest.raises(GraphError, match="num_states=2"):
        classifier(num_states=2).fit(TRAIN, VAL)
    with pytest.raises(GraphError, match="have no labels"):
        classifier().fit([Data(x=graph.x, edge_index=graph.edge_index) for graph in TRAIN], VAL)
    with pytest.raises(GraphError, match="empty"):
        classifier().fit([])
    with pytest.raises(InputError, match="not fitted"):
        classifier().predict(TEST[0])
    with pytest.raises(InputError, match="not fitted"):
        classifier().save("nowhere")


def test_a_single_graph_and_foreign_encoders_will_do():
    large = Batch.from_data_list(TRAIN)
    one = Data(x=large.x, edge_index=large.edge_index, y=large.y)
    model = classifier(encoder=Adapter(lambda i, o: Plain(i, o))).fit(one)
    assert model.predict(TEST[0]).shape == (TEST[0].num_nodes,)
    with pytest.raises(AccordError, match="(?i)adapt"):
        model.save("nowhere")


class Plain(torch.nn.Module):
    def __init__(self, inputs, outputs):
        super().__init__()
        self.map = torch.nn.Linear(inputs, outputs)

    def forward(self, x, edge_index):
        return self.map(x)


def test_sharper_prediction_from_joint_labels():
    """On rings whose labels agree along edges the field pays, on graphs never seen."""
    val, test = made_graphs(60, 1), made_graphs(100, 9)
    alone = classifier(method="gnn", level="graph", max_epochs=60).fit(TRAIN, val).score(test)
    joint = classifier(level="graph", max_epochs=60).fit(TRAIN, val).score(test)
    assert joint > alone + 0.03


def test_marginals_are_exact_on_trees(fitted):
    length = 60
    path = torch.stack([torch.arange(length - 1), torch.arange(1, length)])
    graph = Data(x=torch.randn(length, STATES, generator=torch.Generator().manual_seed(0)), edge_index=path)
    exact = eliminate_beliefs(fitted.model_.field(fitted.collate([graph])))
    beliefs = fitted.model_.beliefs(fitted.collate([graph]))  # before calibration
    assert_close(beliefs.node[0].exp(), exact.node[0].exp(), rtol=0, atol=1e-4)
    assert_close(fitted.predict_edge_proba(graph), exact.edge[0].exp(), rtol=0, atol=1e-4)


def test_marginals_that_did_not_settle_come_with_a_warning(fitted, monkeypatch):
    field = fitted.model_.field(fitted.collate(TEST[:1]))
    strong = torch.randn(field.edge.shape, generator=torch.Generator().manual_seed(0))
    rough = propagate(field.with_potentials(field.node, strong), max_sweeps=1)
    monkeypatch.setattr(fitted.model_, "beliefs", lambda batch, semiring: rough)
    with pytest.warns(ConvergenceWarning, match="did not converge"):
        fitted.predict_proba(TEST[0])


def test_features_of_any_float_type_will_do(fitted):
    graph = TEST[0]
    for dtype in (torch.float64, torch.float16):
        other = Data(x=graph.x.to(dtype), edge_index=graph.edge_index)
        assert_close(fitted.predict_proba(other), fitted.predict_proba(graph), rtol=0, atol=2e-2)


def test_score_compares_like_with_like(fitted):
    graph = TEST[0]
    three = Data(x=graph.x, edge_index=graph.edge_index, y=graph.y[:, None].expand(-1, 3))
    with pytest.raises(GraphError, match="3 labels a node, the model was trained on 1"):
        fitted.score([three])
    with pytest.raises(GraphError, match="every label"):
        fitted.score([Data(x=graph.x, edge_index=graph.edge_index, y=torch.full_like(graph.y, -1))])


def test_edge_attributes_may_be_absent_where_there_are_no_edges():
    def attributed(graph):
        return Data(
            x=graph.x, edge_index=graph.edge_index, y=graph.y, edge_attr=torch.ones(graph.edge_index.shape[1], 2)
        )

    model = classifier(max_epochs=3).fit([attributed(graph) for graph in TRAIN], [attributed(graph) for graph in VAL])
    assert model.shape_.edge_attributes == 2
    assert model.predict(Data(x=torch.randn(3, STATES), edge_index=torch.empty(2, 0, dtype=torch.long))).shape == (3,)
    with pytest.raises(GraphError, match="edge_attr"):
        model.predict(TEST[0])


def test_a_second_save_replaces_the_card(fitted, tmp_path):
    fitted.save(tmp_path)
    classifier(method="gnn").fit(TRAIN, VAL).save(tmp_path)
    assert "`gnn`" in (tmp_path / "README.md").read_text()
    assert oct((tmp_path / "model.safetensors").stat().st_mode & 0o444) == oct(
        (tmp_path / "model.json").stat().st_mode & 0o444
    )


@pytest.mark.parametrize("method", ["crf", "gmnn", "gnn", "smooth", "spn"])
def test_features_in_double_precision_are_welcome(method):
    def double(graph):
        return Data(x=graph.x.double(), edge_index=graph.edge_index, y=graph.y)

    model = classifier(method=method, max_epochs=2).fit([double(g) for g in TRAIN[:10]], [double(g) for g in VAL[:5]])
    assert model.predict(double(TEST[0])).shape == (TEST[0].num_nodes,)


def test_states_that_never_occur_come_with_a_warning():
    def renumbered(graph):
        return Data(x=graph.x, edge_index=graph.edge_index, y=torch.tensor([0, 4, 9])[graph.y])

    train, held_out = [renumbered(g) for g in TRAIN[:10]], [renumbered(g) for g in VAL[:5]]
    with pytest.warns(UnseenStatesWarning, match=r"7 of 10 states never occur .*\(1, 2, 3, 5, 6, \.\.\.\)"):
        classifier(max_epochs=1).fit(train, held_out)
    classifier(max_epochs=1, num_states=10).fit(train, held_out)  # asked for: no warning
