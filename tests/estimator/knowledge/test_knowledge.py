"""Known labels, constraints and preferences of predict and predict_proba, compared with enumeration."""

import math
import warnings

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from support.made_graphs import made_trees
from support.made_recipes import recipe_for
from torch.testing import assert_close
from torch_geometric.data import Batch, Data

from accord import NodeClassifier, enumerate_beliefs
from accord.encoders import GCN, MLP
from accord.errors import AccordError, GraphError, InfeasibleError, InputTypeError, OptionError
from accord.graphs import graph_topology
from accord.learning import PartOptions, TrainingOptions
from accord.learning.selection import FieldChoice
from accord.methods import METHODS

# Small loopy graphs may converge slowly, and labels under constraints depart from the network's.
pytestmark = [
    pytest.mark.filterwarnings(f"ignore::accord.errors.{name}")
    for name in ("ConvergenceWarning", "DepartureWarning", "MajorityWarning")
]
STATES = 3
NAMES = ["ant", "bee", "cat"]


def ring(seed, nodes=7, chords=2, one_way=True):
    """A ring with chords, whose labels mostly repeat; node 0 is called n0 and so on."""
    generator = torch.Generator().manual_seed(seed)
    y = ((torch.rand(nodes, generator=generator) < 0.4).cumsum(0)) % STATES
    x = torch.nn.functional.one_hot(y, STATES) + 0.8 * torch.randn(nodes, STATES, generator=generator)
    edges = torch.stack([torch.arange(nodes), (torch.arange(nodes) + 1) % nodes])
    more = torch.stack([torch.arange(chords), torch.arange(chords) + 3])
    index = torch.cat([edges, more], 1)
    graph = Data(x=x, edge_index=index if one_way else torch.cat([index, index.flip(0)], 1), y=y)
    graph.node_names = [f"n{node}" for node in range(nodes)]
    return graph


TRAIN, TEST = [ring(seed) for seed in range(12)], [ring(seed) for seed in range(50, 54)]
TREES = made_trees(4, 7, STATES)


def quick(method="spn", **changes):
    part = PartOptions(learning_rate=3e-2)
    values = {"encoder": MLP(hidden=8), "edge_encoder": GCN(hidden=8), "node": part, "edge": part}
    values["training"] = TrainingOptions(max_epochs=15, accelerator="cpu")
    options = {"method": method, "label_names": NAMES, "recipe": recipe_for(METHODS[method], values)}
    return NodeClassifier(**options | {"accelerator": "cpu"} | changes)


@pytest.fixture(scope="module")
def models():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return {method: quick(method).fit(TRAIN, TRAIN[:4]) for method in METHODS}


@pytest.fixture(scope="module")
def fitted(models):
    return models["spn"]


def field_of(model, graph):
    return model.model_.field(model.collate([graph]))


def without_calibration(model):
    model.model_.validated = type(model.model_.validated)(model.model_.validated.unseen)
    return model


def edges_of(graph):
    return graph_topology(graph).edge_index


@pytest.mark.parametrize("method", METHODS)
def test_known_labels_condition_the_field(models, method):
    """On trees, where propagation is exact, the probabilities are those of enumeration under the same field."""
    model = models[method]
    kept = model.model_.validated
    without_calibration(model)
    try:
        for graph in TREES:
            known = torch.full((graph.num_nodes,), -1)
            known[0] = 2
            given = field_of(model, graph).clamp(known[None])
            exact = enumerate_beliefs(given, semiring="sum")
            assert_close(model.predict_proba(graph, known=known), exact.node[0].exp(), atol=1e-4, rtol=0)
            assert_close(model.predict_edge_proba(graph, known=known), exact.edge[0].exp(), atol=1e-4, rtol=0)
            best = enumerate_beliefs(given, semiring="max").log_partition
            labels = model.predict(graph, known=known)
            assert_close(given.score(labels[None]), best, atol=1e-4, rtol=0)
    finally:
        model.model_.validated = kept


@pytest.mark.parametrize("method", METHODS)
def test_known_labels_are_certain_and_kept(models, method):
    model = models[method]
    for graph in TEST:
        known = torch.where(torch.arange(7) % 3 == 0, (graph.y + 1) % STATES, -1)
        labels, probabilities = model.predict(graph, known), model.predict_proba(graph, known)
        assert torch.equal(labels[known >= 0], known[known >= 0])
        assert_close(probabilities[known >= 0].gather(1, known[known >= 0, None]), torch.ones(3, 1))
        assert_close(probabilities.sum(-1), torch.ones(7))
        answers = model.answers(graph, known=known)
        assert torch.equal(answers.labels[answers.whole][0], labels)
        assert_close(answers.probabilities[answers.whole][0], probabilities)


def test_without_coupling_only_constraints_spread(fitted, monkeypatch):
    """Where validation data chose the node network alone, neighbours of known labels keep their probabilities."""
    alone = FieldChoice.default((0.0, 1.0, 1.0, 0.0, 1.0, 0.0, 20.0), 1)
    monkeypatch.setattr(fitted.model_, "chosen", alone)
    for graph in TEST:
        free, given = fitted.predict_proba(graph), fitted.predict_proba(graph, known={0: 2})
        assert_close(given[1:], free[1:], atol=1e-5, rtol=0)
        barred = fitted.predict_proba(graph, known={0: 2}, forbid=[("cat", "cat")])
        assert not bool(barred[[1, 3, 6], 2].any())
        labels = fitted.predict(graph, forbid=[(0, 0), (1, 1), (2, 2)])
        assert bool((labels[graph.edge_index[0]] != labels[graph.edge_index[1]]).all())


def test_forms_of_known_labels(fitted):
    graph = TEST[0]
    wanted = torch.tensor([2, -1, -1, 0, -1, -1, -1])
    forms = [
        wanted,
        wanted[:, None],
        wanted.int(),
        wanted.numpy(),
        [2, None, None, "ant", -1, None, None],
        {0: 2, 3: 0},
        {"n0": "cat", "n3": "ant"},
        {np.int64(0): np.int64(2), "n3": "ant", 5: None, 6: -1},
    ]
    first = fitted.predict_proba(graph, known=wanted)
    for form in forms:
        assert torch.equal(fitted.predict_proba(graph, known=form), first), form
    assert not torch.equal(first, fitted.predict_proba(graph))
    assert torch.equal(fitted.predict_proba(graph, known={}), fitted.predict_proba(graph))


def test_the_labels_of_a_graph_are_known_by_their_names(fitted):
    """The file numbers labels in its own way; of a graph with masks, only its training labels are known."""
    graph = TEST[0].clone()
    graph.y = torch.tensor([0, -1, 1, -1, -1, -1, 0])
    graph.label_names = ["cat", "ant"]
    assert torch.equal(
        fitted.predict_proba(graph, known="labels"), fitted.predict_proba(graph, known={0: 2, 2: 0, 6: 2})
    )
    graph.train_mask = torch.arange(7) < 3
    assert torch.equal(fitted.predict_proba(graph, known="labels"), fitted.predict_proba(graph, known={0: 2, 2: 0}))
    with pytest.raises(GraphError, match="the graph has no labels y"):
        fitted.predict(Data(x=graph.x, edge_index=graph.edge_index), known="labels")


def test_lists_of_graphs(fitted):
    known = [{0: 1}, None, torch.full((7,), 2), {"n5": "bee"}]
    forbid = [None, {("n0", "n1"): [("ant", "ant")]}, None, {}]
    for method in (fitted.predict, fitted.predict_proba, fitted.predict_edge_proba):
        found = method(TEST, known=known, forbid=forbid)
        for place, values in enumerate(found):
            assert_close(values, method(TEST[place], known=known[place], forbid=forbid[place]))
        everywhere = method(TEST, require=[("ant", "ant"), ("bee", "cat")])
        assert_close(everywhere[2], method(TEST[2], require=[("ant", "ant"), ("bee", "cat")]))
    batch = Batch.from_data_list(TEST[:2])
    assert_close(fitted.predict_proba(batch, known={8: 0})[7:], fitted.predict_proba(TEST[1], known={1: 0}))


@pytest.mark.parametrize("method", METHODS)
def test_constraints_are_obeyed(models, method):
    model = models[method]
    for graph in (*TEST, *TREES):
        source, target = edges_of(graph)
        labels = model.predict(graph, forbid=[("ant", "ant"), ("bee", "cat")])
        pairs = {tuple(sorted(pair)) for pair in zip(labels[source].tolist(), labels[target].tolist(), strict=True)}
        assert not pairs & {(0, 0), (1, 2)}
        table = model.predict_edge_proba(graph, forbid=[("ant", "ant"), ("bee", "cat")])
        assert not bool(table[:, [0, 1, 2], [0, 2, 1]].any())
        labels = model.predict(graph, require=[("ant", "bee"), ("cat", "cat")])
        pairs = {tuple(sorted(pair)) for pair in zip(labels[source].tolist(), labels[target].tolist(), strict=True)}
        assert pairs <= {(0, 1), (2, 2)}
        assert bool(model.predict(graph, require=[("cat", "cat")]).eq(2).all())


def test_directed_pairs_follow_the_edge_index(fitted):
    for graph in TEST:
        source, target = graph.edge_index
        labels = fitted.predict(graph, forbid_directed=[("ant", "bee"), ("bee", "cat"), ("cat", "ant")], known={0: 0})
        pairs = set(zip(labels[source].tolist(), labels[target].tolist(), strict=True))
        assert not pairs & {(0, 1), (1, 2), (2, 0)}
    both = ring(50, one_way=False)  # every edge is listed in both directions, so both orders are barred
    same = fitted.predict_proba(both, forbid=[("ant", "bee")])
    assert_close(fitted.predict_proba(both, forbid_directed=[("ant", "bee")]), same)
    one_way = fitted.predict_edge_proba(TEST[0], forbid_directed=[("ant", "bee")])
    assert not bool(one_way[:, 0, 1].any()) and bool(one_way[:, 1, 0].all())


def test_single_edges(fitted):
    graph = TEST[0]
    column = edges_of(graph).t().tolist().index([2, 3])
    free = fitted.predict_edge_proba(graph)
    for edge in ((2, 3), ("n3", "n2")):
        table = fitted.predict_edge_proba(graph, forbid={edge: [("ant", "bee")]})
        assert not bool(table[column, [0, 1], [1, 0]].any())
        others = [place for place in range(len(table)) if place != column]
        assert bool((table[others][:, [0, 1], [1, 0]] > 0).all())
        only = fitted.predict_edge_proba(graph, require={edge: [("cat", "cat")]})
        assert_close(only[column, 2, 2], torch.tensor(1.0))
    # The key says which node comes first, however the edge is stored.
    turned = fitted.predict_edge_proba(graph, forbid_directed={(3, 2): [("ant", "bee")]})
    assert turned[column, 1, 0] == 0 and turned[column, 0, 1] > 0 and free[column, 1, 0] > 0


def test_preferences_are_added_to_the_field(fitted):
    graph = TREES[1]
    kept = fitted.model_.validated
    without_calibration(fitted)
    try:
        field = field_of(fitted, graph)
        node, edge = field.node.clone(), field.edge.clone()
        source, target = edges_of(graph)[:, 0].tolist()
        node[:, :, 2] += 0.5
        node[:, 0, 1] -= 2.0
        edge[:, :, [0, 1], [1, 0]] += 1.5
        edge[:, 0, 2, 2] += 0.7
        wanted = enumerate_beliefs(field.with_potentials(node, edge)).node[0].exp()
        prefer = {"cat": 0.5, 0: {"bee": -2.0}, ("ant", "bee"): 1.5, (source, target): {("cat", "cat"): 0.7}}
        assert_close(fitted.predict_proba(graph, prefer=prefer), wanted, atol=1e-4, rtol=0)
    finally:
        fitted.model_.validated = kept
    assert bool(fitted.predict(graph, prefer={"cat": 900}).eq(2).all())


@pytest.mark.parametrize("method", ["spn", "gnn"])
def test_contradictions_name_the_nodes(models, method):
    model, graph = models[method], TEST[0]
    with pytest.raises(InfeasibleError, match=r"no labels can obey.* known labels of nodes 'n2', 'n3'") as caught:
        model.predict(graph, known={"n2": "ant", "n3": "ant"}, forbid=[("ant", "ant")])
    assert {2, 3} <= set(caught.value.nodes) and caught.value.proved
    with pytest.raises(InfeasibleError, match="no labels can obey"):
        model.predict(graph, forbid=[(a, b) for a in range(3) for b in range(3)])
    # An odd ring cannot alternate; only the search finds that out.
    odd = Data(x=TEST[0].x[:5], edge_index=torch.tensor([[0, 1, 2, 3, 4], [1, 2, 3, 4, 0]]))
    with pytest.raises(InfeasibleError, match="They fail at the labels of nodes 0, 1, 2, 3, 4") as caught:
        model.predict(odd, require=[("ant", "bee")])
    assert caught.value.nodes == [0, 1, 2, 3, 4]
    with pytest.raises(InfeasibleError, match=r"nodes 'n2' of graph 1, 'n3' of graph 1"):
        model.predict(TEST[:2], known=[None, {2: 0, 3: 0}], forbid=[("ant", "ant")])


def test_a_state_without_training_labels_cannot_be_known():
    model = quick(label_names=[*NAMES, "dog"], num_states=4).fit(TRAIN, TRAIN[:4])
    with pytest.raises(InfeasibleError, match="'dog' is known at node 'n1', but no training label has this state"):
        model.predict(TEST[0], known={1: "dog"})
    assert not bool(model.predict_proba(TEST[0], known={1: "cat"})[:, 3].any())
    assert 3 not in model.predict(TEST[0], forbid=[("ant", "bee"), ("ant", "cat")]).tolist()


def test_abstaining_keeps_known_labels(fitted):
    unreachable = 0.999999
    assert fitted.predict(TEST[0], precision=unreachable).eq(-1).all()
    labels = fitted.predict(TEST[0], {2: 1}, precision=unreachable)
    assert labels[2] == 1 and int((labels >= 0).sum()) == 1


def test_thresholds_take_known_labels_but_no_constraints(fitted):
    labels = fitted.predict(TEST[0], known={0: "cat", 1: "ant"}, threshold={"ant": 0.01})
    assert labels[0] == 2 and labels[1] == 0
    with pytest.raises(OptionError, match="Give either threshold or these"):
        fitted.predict(TEST[0], threshold={"ant": 0.5}, forbid=[("ant", "ant")])


def test_falling_back_obeys_constraints(fitted, monkeypatch):
    monkeypatch.setattr("accord.estimator.labelling._trust.most_departures", lambda usual, nodes: -1)
    monkeypatch.setattr(fitted, "fallback", True)
    for graph in TEST:
        given = {"known": {0: 2}, "forbid": [("ant", "ant"), ("bee", "bee")]}
        labels = fitted.predict(graph, **given)
        source, target = graph.edge_index
        assert labels[0] == 2 and not bool(((labels[source] == labels[target]) & (labels[source] < 2)).any())


def test_several_tasks():
    def tasks(graph):
        return Data(x=graph.x, edge_index=graph.edge_index, y=torch.stack([graph.y == 0, graph.y == 1], 1).long())

    model = NodeClassifier(encoder="mlp", max_epochs=10, accelerator="cpu").fit([tasks(graph) for graph in TRAIN])
    graph = TEST[0]
    known = torch.full((7, 2), -1)
    known[0, 1], known[3] = 1, torch.tensor([1, 0])
    labels = model.predict(graph, known)
    assert bool((labels[known >= 0] == known[known >= 0]).all())
    assert torch.equal(labels, model.predict(graph, {0: [-1, 1], 3: [1, 0]}))
    assert bool((model.predict_proba(graph, known)[3] == torch.tensor([[0.0, 1], [1, 0]])).all())
    labels = model.predict(graph, forbid=[(1, 1)])
    assert not bool((labels[graph.edge_index[0]] & labels[graph.edge_index[1]]).any())
    with pytest.raises(GraphError, match=r"known has shape \[7\], but \[7, 2\] is needed"):
        model.predict(graph, torch.zeros(7, dtype=torch.long))
    with pytest.raises(GraphError, match="known gives 1 labels at node 'n0', but a node has 2"):
        model.predict(graph, {0: 1})


def is_hashable(key):
    try:
        hash(key)
    except TypeError:
        return False
    return True


REFUSED = [
    ({"known": torch.zeros(6, dtype=torch.long)}, GraphError, r"known has shape \[6\], but \[7\] is needed"),
    ({"known": torch.zeros(7)}, InputTypeError, "known has dtype torch.float32"),
    ({"known": torch.zeros(7, dtype=torch.bool)}, InputTypeError, "known has dtype torch.bool"),
    ({"known": torch.full((7,), 3)}, GraphError, "known is 3 at node 'n0', but states are 0 to 2"),
    ({"known": torch.full((7,), -2)}, GraphError, "known is -2 at node"),
    ({"known": [0, 1]}, GraphError, "known has 2 entries, but the graph has 7 nodes"),
    ({"known": 3}, InputTypeError, "known is a int"),
    ({"known": "nonsense"}, GraphError, "known is the text 'nonsense'"),
    ({"known": {"nobody": 0}}, GraphError, "names the node 'nobody', which is not among node_names"),
    ({"known": {7: 0}}, GraphError, "names the node '7', but nodes are numbered from 0 to 6"),
    ({"known": {2.5: 0}}, InputTypeError, "names a node by a float"),
    ({"known": {True: 0}}, InputTypeError, "names a node by a bool"),
    ({"known": {0: "dog"}}, OptionError, "at node 'n0', names the state 'dog', which is unknown"),
    ({"known": {0: 1.5}}, OptionError, "names the state '1.5', which is unknown"),
    ({"forbid": [("ant", "dog")]}, OptionError, "forbid names the state 'dog'"),
    ({"forbid": ["ant"]}, InputTypeError, "forbid holds 'ant', which is no pair"),
    ({"forbid": [("ant", "bee", "cat")]}, InputTypeError, "which is no pair"),
    ({"forbid": "ant"}, InputTypeError, "forbid holds a str"),
    ({"forbid": 3}, InputTypeError, "forbid holds a int"),
    ({"forbid": {(0, 2): [("ant", "ant")]}}, GraphError, "between nodes 'n0' and 'n2', but the graph has no such edge"),
    ({"forbid": {0: [("ant", "ant")]}}, InputTypeError, "Give an edge as a pair of nodes"),
    ({"forbid_directed": {("n0", "n9"): [(0, 1)]}}, GraphError, "forbid_directed names the node 'n9'"),
    ({"require": []}, OptionError, "require lists no pair"),
    ({"prefer": {("ant", "bee"): math.nan}}, OptionError, "prefer holds nan nats"),
    ({"prefer": {"ant": -math.inf}}, OptionError, "prefer holds -inf nats"),
    ({"prefer": {"ant": True}}, InputTypeError, "but a number"),
    ({"prefer": {"ant": "much"}}, InputTypeError, "but a number"),
    ({"prefer": {"dog": 1.0}}, OptionError, "prefer names the state 'dog'"),
    ({"prefer": {(0, 2): {(0, 0): 1.0}}}, GraphError, "no such edge"),
    ({"prefer": [1.0]}, InputTypeError, "prefer is a list"),
]


@pytest.mark.parametrize(("given", "error", "message"), REFUSED, ids=[message for *_, message in REFUSED])
def test_what_cannot_be_used_is_refused(fitted, given, error, message):
    for method in (fitted.predict, fitted.predict_proba):
        with pytest.raises(error, match=message) as caught:
            method(TEST[0], **given)
        assert isinstance(caught.value, AccordError)


SCALARS = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-3, 9),
    st.floats(),
    st.sampled_from(["ant", "bee", "dog", "n0", "n1", "labels", ""]),
    st.sampled_from([torch.tensor(1), torch.full((7,), -1), np.ones(7), np.array(["ant"] * 7), object()]),
)
PAIRS = st.tuples(SCALARS, SCALARS)
KEYS = st.one_of(st.none(), st.integers(-1, 7), st.sampled_from(["n0", "n6", "x"]), st.tuples(st.integers(0, 7)), PAIRS)
JUNK = st.recursive(
    SCALARS | PAIRS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS.filter(is_hashable), inner, max_size=3),
    max_leaves=6,
)


@settings(max_examples=150)
@given(st.dictionaries(st.sampled_from(["known", "forbid", "forbid_directed", "require", "prefer"]), JUNK, max_size=2))
def test_junk_is_refused_in_words_or_obeyed(fitted, given):
    """Whatever is given: labels of the graph, or an error of Accord's own that says where."""
    try:
        assert fitted.predict(TEST[0], **given).shape == (7,)
    except AccordError as error:
        assert str(error).startswith("NodeClassifier") and len(str(error)) < 600


def test_lists_of_the_wrong_length_are_refused(fitted):
    with pytest.raises(OptionError, match="known has 1 entries for 4 graphs"):
        fitted.predict(TEST, known=[{0: 1}])
    with pytest.raises(InputTypeError, match="known is a Tensor, but there is a list of 4 graphs"):
        fitted.predict(TEST, known=torch.zeros(7, dtype=torch.long))
    with pytest.raises(OptionError, match="forbid has 2 entries for 4 graphs"):
        fitted.predict(TEST, forbid=[None, {}])
    with pytest.raises(GraphError, match="graph 2: known names the node"):
        fitted.predict(TEST, known=[None, None, {9: 0}, None])
    with pytest.raises(OptionError, match="'forbidden' is unknown"):
        fitted.answers(TEST, forbidden=[(0, 0)])


def test_nodes_without_names_are_given_by_number(fitted):
    graph = Data(x=TEST[0].x, edge_index=TEST[0].edge_index)
    with pytest.raises(GraphError, match="the graph has no node_names"):
        fitted.predict(graph, known={"n0": 0})
    graph.node_names = ["a"] * 7
    with pytest.raises(GraphError, match="several nodes have this name"):
        fitted.predict(graph, known={"a": 0})
    graph.node_names = ["a"]
    with pytest.raises(GraphError, match="7 nodes and 1 node_names"):
        fitted.predict(graph, known={"a": 0})


def test_graphs_without_edges_or_nodes(fitted):
    lonely = Data(x=TEST[0].x[:2], edge_index=torch.empty(2, 0, dtype=torch.long))
    given = {"known": {1: 2}, "forbid": [("ant", "ant")], "forbid_directed": [("ant", "bee")], "prefer": {(0, 1): 2.0}}
    assert fitted.predict(lonely, **given)[1] == 2
    empty = Data(x=torch.empty(0, STATES), edge_index=torch.empty(2, 0, dtype=torch.long))
    assert fitted.predict(empty, known={}, forbid=[("ant", "ant")]).tolist() == []


def test_partly_labelled_training_graphs_and_partly_observed_test_graphs():
    hidden = []
    for number, graph in enumerate(TRAIN):
        part = graph.clone()
        part.y = graph.y.masked_fill(torch.arange(7) % 3 == number % 3, -1)
        hidden.append(part)
    model = quick().fit(hidden[:8], hidden[8:])
    observed = TEST[0].clone()
    observed.y = observed.y.masked_fill(torch.arange(7) % 2 == 0, -1)
    labels = model.predict(observed, known=observed.y)
    assert torch.equal(labels[observed.y >= 0], observed.y[observed.y >= 0])
    assert 0 <= model.score([observed]) <= 1
