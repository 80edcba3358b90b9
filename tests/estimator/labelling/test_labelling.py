"""Labels and probabilities of lists of graphs, and thresholds of rare states."""

from itertools import product

import pytest
import torch
from support.made_graphs import made_trees
from torch.testing import assert_close
from torch_geometric.data import Batch, Data

from accord import NodeClassifier
from accord.errors import InputError, InputTypeError, OptionError
from accord.estimator.fitting import _inputs
from accord.estimator.labelling._thresholds import allowed_states
from accord.graphs import graph_topology

STATES = 3
TRAIN, TEST = made_trees(30, 0, STATES), made_trees(6, 1, STATES)
EMPTY = Data(x=torch.empty(0, STATES), edge_index=torch.empty(2, 0, dtype=torch.long))


def fit(graphs=TRAIN, **options):
    return NodeClassifier(encoder="mlp", max_epochs=15, accelerator="cpu", **options).fit(graphs)


@pytest.fixture(scope="module")
def fitted():
    return fit(label_names=["apple", "bee", "cat"])


@pytest.mark.parametrize("portion", [50, 2**25])
@pytest.mark.parametrize("listed", [list, tuple])
def test_a_list_gives_what_its_graphs_give(fitted, listed, portion, monkeypatch):
    monkeypatch.setattr(_inputs, "PORTION_NUMBERS", portion)
    graphs = listed([TEST[0], EMPTY, Batch.from_data_list(TEST[1:4]), *TEST[4:], EMPTY])
    for method in (fitted.predict, fitted.predict_proba, fitted.predict_edge_proba):
        found = method(graphs)
        assert isinstance(found, list) and len(found) == len(graphs)
        for graph, values in zip(graphs, found, strict=True):
            assert_close(values, method(graph))
    edges = [graph_topology(graph).num_edges for graph in graphs]
    assert [len(values) for values in fitted.predict_edge_proba(graphs)] == edges


def test_an_empty_list_gives_an_empty_list(fitted):
    assert fitted.predict([]) == fitted.predict_proba(()) == fitted.predict_edge_proba([]) == []
    with pytest.raises(InputError, match="not fitted"):
        NodeClassifier().predict([])


def test_several_tasks_in_a_list():
    several = [Data(x=g.x, edge_index=g.edge_index, y=torch.stack([g.y == 0, g.y == 1], 1).long()) for g in TRAIN]
    model = fit(several[:20])
    for graph, labels in zip(several[20:], model.predict(several[20:]), strict=True):
        assert torch.equal(labels, model.predict(graph)) and labels.shape == (graph.num_nodes, 2)


def test_what_is_no_graph_is_refused(fitted):
    for wrong, message in (([TEST[0], 3], "got a int, not a"), (3, "got a int; a .*Data or a list"), ("ab", "str")):
        with pytest.raises(InputTypeError, match=message):
            fitted.predict(wrong)


def test_a_threshold_decides_by_the_marginal(fitted):
    rare = torch.cat(fitted.predict_proba(TEST))[:, 1]
    for limit in (0.1, 0.5, 0.9):
        labels = torch.cat(fitted.predict(TEST, threshold={"bee": limit}))
        assert torch.equal(labels == 1, rare >= limit)
        assert torch.equal(labels, torch.cat(fitted.predict(TEST, threshold={1: limit})))


def test_other_states_are_labelled_jointly_given_the_decisions(fitted):
    """What remains is the best labelling of the field among those that agree with the decisions."""
    for graph in TEST:
        labels = fitted.predict(graph, threshold={2: 0.4})
        field = fitted.model_.field(fitted.collate([graph]))
        decided = fitted.predict_proba(graph)[:, 2] >= 0.4
        options = [[2] if given else [0, 1] for given in decided.tolist()]
        best = max(float(field.score(torch.tensor([row]))) for row in product(*options))
        assert float(field.score(labels[None])) == pytest.approx(best, abs=1e-4)


def test_two_states_need_only_a_number():
    pairs = made_trees(30, 2)
    model = fit(pairs, method="gnn")
    graph = made_trees(1, 3)[0]
    assert torch.equal(model.predict(graph, threshold=0.2), (model.predict_proba(graph)[:, 1] >= 0.2).long())
    assert torch.equal(model.predict([graph], threshold={1: 0.2})[0], model.predict(graph, threshold=0.2))


def test_where_no_state_is_left_the_nearest_is_given():
    probabilities = torch.tensor([[[0.2, 0.5, 0.3], [0.6, 0.1, 0.3], [0.0, 0.3, 0.7], [0.0, 0.5, 0.5]]])
    every = allowed_states(probabilities, {0: 0.9, 1: 0.9, 2: 0.5})
    assert every.long().argmax(-1).tolist() == [[2, 0, 2, 2]] and bool((every.sum(-1) == 1).all())
    some = allowed_states(probabilities, {1: 0.4, 2: 0.9})  # state 0 is impossible at the last two nodes
    assert some.tolist() == [[[False, True, False], [True, False, False], [False, False, True], [False, True, False]]]


@pytest.mark.parametrize(
    ("threshold", "error", "message"),
    [
        (0.3, OptionError, "has 3 states. Say which state"),
        ({"dog": 0.3}, OptionError, "'dog', which is unknown. States: 'apple'"),
        ({3: 0.3}, OptionError, "'3', which is unknown"),
        ({"bee": 0.0}, OptionError, "a threshold is 0;"),
        ({"bee": 1.5}, OptionError, "a threshold is 1.5"),
        ({"bee": "a"}, InputTypeError, "'a'; a number is needed"),
        ([0.1, 0.2, 0.3], InputTypeError, "threshold is a list"),
    ],
)
def test_thresholds_that_cannot_be_used_are_refused(fitted, threshold, error, message):
    with pytest.raises(error, match=message):
        fitted.predict(TEST[0], threshold=threshold)


def test_a_diagnosis_gathers_what_speaks_against_labels(fitted):
    found = fitted.diagnose([*TEST, EMPTY])
    answers = fitted.answers([*TEST, EMPTY])
    assert torch.equal(found.labels, answers.labels["spn"]) and torch.equal(found.alone, answers.labels["gnn"])
    assert_close(found.probabilities, answers.probabilities["spn"])
    assert torch.equal(found.truth, answers.truth) and found.converged.shape == (1, len(TEST) + 1)
    pairs = torch.cat(fitted.predict_edge_proba(TEST))
    source, target = found.topology.edge_index
    labels = found.labels[0]
    assert_close(found.pair_probability[0], pairs[torch.arange(len(source)), labels[source], labels[target]])
    summary = found.summary()
    assert summary.nodes == sum(graph.num_nodes for graph in TEST) and summary.graphs == len(TEST) + 1
    one = fitted.diagnose(TEST[0])
    assert torch.equal(one.labels, found.labels[:, : TEST[0].num_nodes])


def test_known_labels_are_not_compared_with_the_truth(fitted):
    graph = TEST[0]
    found = fitted.diagnose(graph, known={0: int(graph.y[0])}, forbid=[("apple", "bee")])
    assert found.labels[0, 0] == graph.y[0] == fitted.predict(graph, known={0: int(graph.y[0])})[0]
    assert found.truth[0, 0] == -1 and found.entropy[0, 0] == 0
    bare = Data(x=graph.x, edge_index=graph.edge_index)
    assert fitted.diagnose(bare).truth is None and fitted.diagnose(bare).calibration_error == [None]


def test_portions_are_diagnosed_as_a_whole(fitted, monkeypatch):
    whole = fitted.diagnose(TEST, known=[None, {0: 1}, *[None] * (len(TEST) - 2)])
    monkeypatch.setattr(_inputs, "PORTION_NUMBERS", 50)
    parts = fitted.diagnose(TEST, known=[None, {0: 1}, *[None] * (len(TEST) - 2)])
    assert torch.equal(whole.labels, parts.labels) and torch.equal(whole.truth, parts.truth)
    assert_close(whole.lift, parts.lift)
