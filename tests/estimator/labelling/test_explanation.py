"""Explanations of labels: they add up, equal predictions, and tell what would change them."""

import json

import pytest
import torch
from support.made_graphs import made_trees
from support.made_recipes import recipe_for
from torch.testing import assert_close
from torch_geometric.data import Data

from accord import NodeClassifier
from accord.encoders import GCN, MLP
from accord.errors import GraphError, InfeasibleError, InputTypeError, OptionError
from accord.learning import PartOptions, TrainingOptions
from accord.methods import METHODS

pytestmark = [
    pytest.mark.filterwarnings(f"ignore::accord.errors.{name}")
    for name in ("ConvergenceWarning", "DepartureWarning", "MajorityWarning")
]
STATES, NAMES = 3, ["ant", "bee", "cat"]


def named(graph):
    graph.node_names = [f"n{node}" for node in range(graph.num_nodes)]
    return graph


def loopy(seed):
    """Rings with chords, repeated columns, a self-loop and an isolated node."""
    generator = torch.Generator().manual_seed(seed)
    y = ((torch.rand(8, generator=generator) < 0.4).cumsum(0)) % STATES
    x = torch.nn.functional.one_hot(y, STATES) + 0.8 * torch.randn(8, STATES, generator=generator)
    index = torch.tensor([[0, 1, 2, 3, 4, 5, 6, 0, 1, 2, 2], [1, 2, 3, 4, 5, 6, 0, 1, 4, 6, 2]])
    return named(Data(x=x, edge_index=index, y=y))


TRAIN, TEST = [loopy(seed) for seed in range(12)], [loopy(60), loopy(61)]
TREES = [named(tree) for tree in made_trees(3, 5, STATES)]


def fit(method="spn", **changes):
    part = PartOptions(learning_rate=3e-2)
    values = {"encoder": MLP(hidden=8), "edge_encoder": GCN(hidden=8), "node": part, "edge": part}
    values["training"] = TrainingOptions(max_epochs=15, accelerator="cpu")
    options = {"method": method, "label_names": NAMES, "recipe": recipe_for(METHODS[method], values)}
    return NodeClassifier(**options | {"accelerator": "cpu"} | changes).fit(TRAIN, TRAIN[:4])


@pytest.fixture(scope="module")
def models():
    return {"ensemble": fit(ensemble=2), **{method: fit(method) for method in METHODS}}


@pytest.fixture(scope="module")
def fitted(models):
    return models["crf"]  # its edges always count


def adds_up(e):
    gap = e.evidence + sum(e.messages.values()) - e.log_belief
    possible = e.log_belief.isfinite()
    assert_close(gap[possible], gap[possible].mean().expand(int(possible.sum())), rtol=0, atol=1e-6)


@pytest.mark.parametrize("kind", ["ensemble", *METHODS])
def test_explanations_add_up_and_equal_predictions(models, kind):
    model = models[kind]
    for graph in (TEST[0], TREES[0]):
        labels, probabilities = model.predict(graph), model.predict_proba(graph)
        for node in range(0, graph.num_nodes, 3):
            e = model.explain(graph, node)
            adds_up(e)
            assert e.label == labels[node] and e.label_name == NAMES[labels[node]]
            assert_close(e.probabilities, probabilities[node])
            assert e.log_odds() == pytest.approx(e.log_odds(e.evidence) + sum(e.contributions().values()), abs=1e-6)
    lonely = model.explain(TEST[0], 7)
    assert lonely.messages == {} and lonely.paths == []
    assert set(model.explain(TEST[0], 2).messages) == {1, 3, 6}  # once each; the self-loop says nothing


@pytest.mark.parametrize("method", ["gnn", "smooth", "gmnn"])
def test_without_an_edge_network_neighbours_add_nothing(models, method):
    for message in models[method].explain(TEST[0], 1).messages.values():
        assert_close(message, torch.zeros(STATES, dtype=torch.float64))
    barred = models[method].explain(TEST[0], 1, known={0: "ant"}, forbid=[("ant", "ant")])
    assert barred.messages[0][0] == -torch.inf and barred.label != 0
    adds_up(barred)


def test_what_is_known_counts(fitted):
    graph, given = TEST[0], {"known": {"n0": "cat"}, "forbid": [("ant", "bee")], "prefer": {"bee": 0.4}}
    for node in (0, 1, 6):
        e = fitted.explain(graph, node, **given)
        adds_up(e)
        assert_close(e.probabilities, fitted.predict_proba(graph, **given)[node])
        assert e.label == fitted.predict(graph, **given)[node]
    known = fitted.explain(graph, "n0", **given)
    assert known.rival is None and "No other label is possible" in str(known) and known.paths == []
    assert known.to_json()["lead"] is None


def test_without_a_neighbour(fitted):
    """The field loses the edge and is solved again; the evidence of the networks stays."""
    for graph in (TEST[0], TREES[0]):
        e = fitted.explain(graph, 0)
        neighbour = next(iter(e.messages))
        other = e.without(neighbour)
        adds_up(other)
        assert neighbour not in other.messages and other.before is e
        assert_close(other.evidence, e.evidence)
        assert f"without node 'n{neighbour}'" in str(other) and "Before: label" in str(other)
    # On a tree, nothing but the message is lost.
    assert_close((e.log_belief - e.messages[neighbour]).log_softmax(-1), other.log_belief, atol=1e-5, rtol=0)
    with pytest.raises(GraphError, match="node 'n7' is no neighbour of node 'n0'"):
        fitted.explain(TEST[0], 0).without("n7")


def test_given_labels_equal_conditioning(fitted):
    graph = TEST[0]
    e = fitted.explain(graph, 3).given({"n5": "ant", 0: 2})
    assert_close(e.probabilities, fitted.predict_proba(graph, known={5: 0, 0: 2})[3])
    assert_close(e.log_belief, fitted.explain(graph, 3, known={5: 0, 0: 2}).log_belief)
    assert "with node 'n0' known to be 'cat', node 'n5' known to be 'ant'" in str(e)
    adds_up(e)
    barred = fitted.explain(graph, 3, forbid=[("ant", "ant")])
    with pytest.raises(InfeasibleError, match="'ant' at node 'n0' and 'ant' at node 'n1' are known, but .*forbid"):
        barred.given({0: "ant", 1: "ant"})
    assert fitted.explain(graph, 1, forbid=[("ant", "ant")]).given({0: "ant"}).probabilities[0] == 0


def test_words(fitted):
    e = fitted.explain(TEST[0], "n2")
    text = str(e)
    assert text.startswith(f"Node 'n2': label '{e.label_name}', probability {e.probabilities[e.label]:.3f}.")
    assert "own evidence" in text and "node 'n1'" in text
    numbers = [line.split()[-1] for line in text.splitlines() if line.startswith("  ")][:4]
    assert sum(map(float, numbers)) == pytest.approx(e.log_odds(), abs=0.03)
    plain = json.loads(json.dumps(e.to_json(), allow_nan=False))
    assert plain["name"] == "n2" and {entry["name"] for entry in plain["messages"]} == {"n1", "n3", "n6"}
    total = [a + sum(m["nats"][s] for m in plain["messages"]) for s, a in enumerate(plain["evidence"])]
    gaps = [a - b for a, b in zip(total, plain["log_belief"], strict=True)]
    assert max(gaps) - min(gaps) < 1e-6


def test_several_tasks():
    def tasks(graph):
        return Data(x=graph.x, edge_index=graph.edge_index, y=torch.stack([graph.y == 0, graph.y == 1], 1).long())

    model = NodeClassifier(encoder="mlp", max_epochs=10, accelerator="cpu", task_names=["first", "second"])
    model.fit([tasks(graph) for graph in TRAIN])
    for task in (0, 1):
        e = model.explain(TEST[0], 2, task)
        adds_up(e)
        assert_close(e.probabilities, model.predict_proba(TEST[0])[2, task])
        assert e.label == model.predict(TEST[0])[2, task]
        other = e.given({3: 1})
        known = torch.full((8, 2), -1)
        known[3, task] = 1
        assert_close(other.probabilities, model.predict_proba(TEST[0], known)[2, task])
    assert_close(model.explain(TEST[0], 2, "second").log_belief, e.log_belief)
    with pytest.raises(OptionError, match="task 'third' is unknown. Tasks: 0 to 1, or 'first', 'second'"):
        model.explain(TEST[0], 2, "third")


def test_falling_back(fitted, monkeypatch):
    monkeypatch.setattr("accord.estimator.labelling._trust.most_departures", lambda usual, nodes: -1)
    monkeypatch.setattr(fitted, "fallback", True)
    for node in (0, 3):
        assert fitted.explain(TEST[0], node).label == fitted.predict(TEST[0])[node]


def test_what_cannot_be_explained_is_refused(fitted):
    with pytest.raises(GraphError, match="names the node '8', but nodes are numbered from 0 to 7"):
        fitted.explain(TEST[0], 8)
    with pytest.raises(GraphError, match="'nobody', which is not among node_names"):
        fitted.explain(TEST[0], "nobody")
    with pytest.raises(InputTypeError, match="got a list, not a"):
        fitted.explain(TEST, 0)
    with pytest.raises(OptionError, match="task '1' is unknown"):
        fitted.explain(TEST[0], 0, task=1)
