"""Error messages say where, what, and how to fix it."""

import re

import pytest
import torch
from support.fuzzing import MESSAGE
from torch_geometric.data import Data

from accord import NodeClassifier, PairwiseField, enumerate_beliefs, propagate
from accord.errors import (
    FieldError,
    GraphError,
    InfeasibleError,
    InputError,
    InputTypeError,
    OptionError,
    TooLargeError,
)
from accord.field import Combination, Pseudomarginals, symmetrise
from accord.graphs import graph_topology, topology
from accord.graphs._checks import check_same_device

INDEX = torch.tensor([[0, 1], [1, 2]])
NODE, EDGE = torch.zeros(3, 2), torch.zeros(2, 2, 2)
FIELD = PairwiseField(INDEX, NODE, EDGE)
MARGINALS = Pseudomarginals.from_logits(NODE, EDGE)
NAN, INF = float("nan"), float("inf")


GRAPH = Data(x=torch.eye(4)[:, :2], edge_index=INDEX, y=torch.tensor([0, 1, 0, 1]))


def named_graph(*names):
    graph = GRAPH.clone()
    graph.feature_names = list(names)
    return graph


def fitted(graph):
    return NodeClassifier("gnn", "linear", max_epochs=0, accelerator="cpu").fit(graph, graph)


def with_entry(values, number):
    broken = values.clone()
    broken.view(-1)[0] = number
    return broken


def columns(*pairs):
    return torch.tensor(pairs).t()


# Call, error, and patterns in the message: where, what, how to fix.
MESSAGES = {
    "NaN potential": (
        lambda: PairwiseField(INDEX, with_entry(NODE, NAN), EDGE),
        FieldError,
        ["PairwiseField:", "node potentials hold NaN", r"\[0, 0\]", "look for 0/0"],
    ),
    "+inf potential": (
        lambda: PairwiseField(INDEX, NODE, with_entry(EDGE, INF)),
        FieldError,
        ["PairwiseField:", r"edge potentials hold \+inf", "-inf for what is forbidden"],
    ),
    "potential that overflows": (
        lambda: PairwiseField(INDEX, with_entry(NODE, torch.finfo(torch.float32).min), EDGE),
        FieldError,
        ["PairwiseField:", r"hold -3\.4e\+38", "overflow torch.float32", "Use -inf"],
    ),
    "too few axes": (
        lambda: PairwiseField(INDEX, NODE[0], EDGE),
        FieldError,
        ["PairwiseField:", r"shape \[2\]", r"\[\.\.\., nodes, states\] is needed"],
    ),
    "no states": (
        lambda: PairwiseField(INDEX, NODE[:, :0], EDGE[:, :0, :0]),
        FieldError,
        ["PairwiseField:", "no states", "at least one"],
    ),
    "mismatched states": (
        lambda: PairwiseField(INDEX, torch.zeros(3, 4), EDGE),
        FieldError,
        ["PairwiseField:", r"\[2, 2\] states but node potentials have 4", "same number of states"],
    ),
    "mismatched replicas": (
        lambda: PairwiseField(INDEX, NODE.expand(2, 3, 2), EDGE.expand(3, 2, 2, 2)),
        FieldError,
        ["PairwiseField:", r"node \[2\], edge \[3\]", "same replicas"],
    ),
    "no replicas": (
        lambda: PairwiseField(INDEX, NODE.expand(0, 3, 2), EDGE),
        FieldError,
        ["PairwiseField:", "length 0", "at least one replica"],
    ),
    "mismatched dtypes": (
        lambda: PairwiseField(INDEX, NODE.double(), EDGE),
        InputTypeError,
        ["PairwiseField:", "float64, edge potentials torch.float32", "Convert"],
    ),
    "whole numbers as potentials": (
        lambda: PairwiseField(INDEX, NODE.long(), EDGE),
        InputTypeError,
        ["PairwiseField:", "node potentials have dtype torch.int64", r"\.float\(\)"],
    ),
    "half precision": (
        lambda: PairwiseField(INDEX, NODE, EDGE.half()),
        InputTypeError,
        ["PairwiseField:", "torch.float16", r"\.float\(\) or \.double\(\)"],
    ),
    "list for a tensor": (
        lambda: PairwiseField(INDEX, NODE.tolist(), EDGE),
        InputTypeError,
        ["PairwiseField:", "node is a list", "torch.as_tensor"],
    ),
    "sparse tensor": (
        lambda: PairwiseField(INDEX, NODE, EDGE.to_sparse()),
        InputTypeError,
        ["PairwiseField:", "edge is a sparse_coo tensor", r"\.to_dense\(\)"],
    ),
    "meta device": (
        lambda: PairwiseField(INDEX, NODE.to("meta"), EDGE.to("meta")),
        InputTypeError,
        ["PairwiseField:", "node is on the meta device", "no numbers", "real device"],
    ),
    "two devices": (
        lambda: check_same_device("PairwiseField", node=NODE, edge=EDGE.to("meta")),
        InputError,
        ["PairwiseField:", "node on cpu, edge on meta", r"\.to\(device\)"],
    ),
    "unknown device": (
        lambda: FIELD.to("nowhere"),
        OptionError,
        [r"PairwiseField\.to:", "'nowhere'", "Name a device"],
    ),
    "no edge index": (
        lambda: PairwiseField(None, NODE, EDGE),
        InputTypeError,
        ["PairwiseField:", "edge_index is a NoneType", "torch.as_tensor"],
    ),
    "float edge index": (
        lambda: PairwiseField(INDEX.float(), NODE, EDGE),
        InputTypeError,
        ["PairwiseField:", "edge_index has dtype torch.float32", r"\.long\(\)"],
    ),
    "edge index as a list of pairs": (
        lambda: PairwiseField(torch.zeros(3, 2, dtype=torch.long), NODE, EDGE),
        GraphError,
        ["PairwiseField:", r"shape \[3, 2\]", r"\[2, edges\] is needed", r"\.t\(\)"],
    ),
    "node that is not there": (
        lambda: PairwiseField(columns((0, 1), (1, 7)), NODE, EDGE),
        GraphError,
        ["PairwiseField:", "names node 7", "column: 1", "0 to 2", "Renumber"],
    ),
    "negative node": (
        lambda: PairwiseField(columns((0, -1), (1, 2)), NODE, EDGE),
        GraphError,
        ["PairwiseField:", "names node -1", "column: 0", "Renumber"],
    ),
    "self-loop": (
        lambda: PairwiseField(columns((0, 1), (2, 2)), NODE, EDGE),
        GraphError,
        ["PairwiseField:", "edge 1 joins node 2 to itself", "accord.graphs.topology"],
    ),
    "edge twice": (
        lambda: PairwiseField(columns((0, 1), (1, 0)), NODE, EDGE),
        GraphError,
        ["PairwiseField:", "more than once", "Keep each edge once"],
    ),
    "tables missing": (
        lambda: PairwiseField(INDEX, NODE, EDGE[:1]),
        FieldError,
        ["PairwiseField:", "2 edges but 1 edge tables", "one table for each column"],
    ),
    "edge across graphs": (
        lambda: PairwiseField(INDEX, NODE, EDGE, torch.tensor([0, 0, 1])),
        GraphError,
        ["PairwiseField:", "edge 1 joins two graphs", "same graph number"],
    ),
    "short graph vector": (
        lambda: PairwiseField(INDEX, NODE, EDGE, torch.tensor([0, 0])),
        GraphError,
        ["PairwiseField:", r"graph has shape \[2\]", "each of 3 nodes", r"Batch\.batch"],
    ),
    "graph number out of range": (
        lambda: PairwiseField(INDEX, NODE, EDGE, torch.tensor([4, 4, 4]), 2),
        GraphError,
        ["PairwiseField:", "from 4 to 4", "0 to 1", "from 0"],
    ),
    "no graphs": (
        lambda: PairwiseField(INDEX, NODE, EDGE, num_graphs=0),
        GraphError,
        ["PairwiseField:", "num_graphs is 0", "Give the actual number of graphs"],
    ),
    "label out of range": (
        lambda: FIELD.clamp(torch.tensor([0, -1, 2])),
        FieldError,
        [r"PairwiseField\.clamp:", "from -1 to 2", r"-1 \(free\) and 0 to 1", "Number the states from 0"],
    ),
    "float labels": (
        lambda: FIELD.score(torch.zeros(3, requires_grad=True)),
        InputTypeError,
        [r"PairwiseField\.score:", "labels has dtype torch.float32", r"\.long\(\)"],
    ),
    "too few labels": (
        lambda: FIELD.score(torch.tensor([0, 1])),
        FieldError,
        [r"PairwiseField\.score:", r"\[\.\.\., 3\] is needed", "one for each node"],
    ),
    "pairs of unknown states": (
        lambda: FIELD.forbid([(0, 2)]),
        FieldError,
        [r"PairwiseField\.forbid:", "states 0 to 2", "0 to 1", "from 0"],
    ),
    "mask for edges": (
        lambda: FIELD.forbid([(0, 1)], edges=torch.tensor([True, False])),
        InputTypeError,
        [r"PairwiseField\.forbid:", "torch.bool", r"\.nonzero\(\)"],
    ),
    "potentials of another graph": (
        lambda: FIELD.with_potentials(node=torch.zeros(4, 2)),
        FieldError,
        [r"PairwiseField\.with_potentials:", "3 nodes", "Build a new PairwiseField"],
    ),
    "not a field": (
        lambda: propagate((INDEX, NODE, EDGE)),
        InputTypeError,
        ["propagate:", "got a tuple", "not a PairwiseField", "Build one"],
    ),
    "no labelling": (
        lambda: propagate(FIELD.with_potentials(edge=torch.full_like(EDGE, -INF)), max_sweeps=0).edge,
        InfeasibleError,
        ["propagate:", "nodes 0 and 1", "forbidden", "Relax"],
    ),
    "full damping": (
        lambda: propagate(FIELD, damping=1),
        OptionError,
        ["propagate:", "damping is 1", r"\[0, 1\)", "try 0.5"],
    ),
    "damping of the wrong type": (
        lambda: propagate(FIELD, damping="a"),
        InputTypeError,
        ["propagate:", "damping is a str", "Give a float"],
    ),
    "negative sweeps": (
        lambda: propagate(FIELD, max_sweeps=-1),
        OptionError,
        ["propagate:", "max_sweeps is -1", "lie in 0", "None is the default"],
    ),
    "half a sweep": (
        lambda: propagate(FIELD, max_sweeps=1.5),
        InputTypeError,
        ["propagate:", "max_sweeps is a float", "whole number"],
    ),
    "NaN tolerance": (
        lambda: propagate(FIELD, tolerance=NAN),
        OptionError,
        ["propagate:", "tolerance is nan", "0 runs all sweeps"],
    ),
    "no appearance": (
        lambda: propagate(FIELD, edge_appearance=0),
        OptionError,
        ["propagate:", r"edge_appearance must lie in \(0, 1\]", "1 is plain"],
    ),
    "appearance of other edges": (
        lambda: propagate(FIELD, edge_appearance=torch.ones(5)),
        OptionError,
        ["propagate:", r"shape \[5\]", r"\[edges\] = \[2\]", "one for each column"],
    ),
    "appearance by an unknown name": (
        lambda: propagate(FIELD, edge_appearance="foo"),
        OptionError,
        ["propagate:", "'foo' is unknown", "'spanning'"],
    ),
    "appearance so small that potentials overflow": (
        lambda: propagate(FIELD.with_potentials(edge=EDGE + 1), edge_appearance=1e-37),
        OptionError,
        ["propagate:", "edge_appearance goes down to 1e-37", "overflow torch.float32", "larger"],
    ),
    "unknown semiring": (
        lambda: propagate(FIELD, semiring="min"),
        OptionError,
        ["propagate:", "semiring 'min' is unknown", "Choose 'sum'"],
    ),
    "unknown backend": (
        lambda: propagate(FIELD, backend="cuda!"),
        OptionError,
        ["propagate:", "backend 'cuda!' is unknown", "Choose one of"],
    ),
    "start of another field": (
        lambda: propagate(FIELD, start=torch.zeros(2, 2)),
        FieldError,
        ["propagate:", r"shape \[2, 2\]", r"needs \[4, 2\]", "same graphs"],
    ),
    "start that is no start": (
        lambda: propagate(FIELD, start=[0.0]),
        InputTypeError,
        ["propagate:", "start is a list", "what propagate returned"],
    ),
    "too much to enumerate": (
        lambda: enumerate_beliefs(PairwiseField(columns((0, 1)), torch.zeros(30, 2), EDGE[:1])),
        TooLargeError,
        ["enumerate_beliefs:", r"2\*\*30 labellings", "Use eliminate_beliefs"],
    ),
    "nothing to enumerate": (
        lambda: enumerate_beliefs(None),
        InputTypeError,
        ["enumerate_beliefs:", "got a NoneType", "Build one"],
    ),
    "scores that leave nothing": (
        lambda: Pseudomarginals.from_logits(torch.full_like(NODE, -INF), EDGE),
        InfeasibleError,
        [r"Pseudomarginals\.from_logits:", "every state of node 0", "at least one"],
    ),
    "sharpness of the wrong type": (
        lambda: Pseudomarginals.from_logits(NODE, EDGE, sharpness="a"),
        InputTypeError,
        [r"Pseudomarginals\.from_logits:", "sharpness is a str", "Give a float"],
    ),
    "scores for probabilities": (
        lambda: Pseudomarginals.from_probabilities(NODE - 1, EDGE),
        FieldError,
        [r"Pseudomarginals\.from_probabilities:", "run from -1", "use from_logits"],
    ),
    "not pseudomarginals": (
        lambda: Combination().field((NODE, EDGE), INDEX),
        InputTypeError,
        [r"Combination\.field:", "got a tuple", "from_logits"],
    ),
    "powers for other replicas": (
        lambda: Combination(power=torch.ones(3)).field(Pseudomarginals(NODE.expand(2, 3, 2), EDGE), INDEX),
        FieldError,
        [r"Combination\.field:", r"node \[2\].*power \[3\]", "same replicas"],
    ),
    "unknown normaliser": (
        lambda: Combination(normaliser=3).field(MARGINALS, INDEX),
        InputTypeError,
        ["Combination:", "normaliser is a int", "Choose one of"],
    ),
    "tables that are not square": (
        lambda: symmetrise(torch.zeros(1, 2, 3), torch.zeros(1, 2, 3)),
        FieldError,
        ["symmetrise:", r"\[1, 2, 3\]", r"\[\.\.\., states, states\]", "both directions"],
    ),
    "nodes without a number": (
        lambda: topology(INDEX, 2.0),
        InputTypeError,
        ["topology:", "num_nodes is a float", "number of nodes"],
    ),
    "graph without nodes": (
        lambda: graph_topology(Data(edge_index=INDEX)),
        GraphError,
        ["graph_topology:", "no node features x and no num_nodes", "Set one"],
    ),
    "unknown method": (
        lambda: NodeClassifier(method="svm").resolve_recipe(),
        OptionError,
        ["NodeClassifier:", "method 'svm' is unknown", "Choose one of"],
    ),
    "unknown treatment of features": (
        lambda: NodeClassifier(features="bleached").fit(GRAPH),
        OptionError,
        ["NodeClassifier:", "features 'bleached' is unknown", "Choose one of auto, raw, row-normalised, standardised"],
    ),
    "names of tasks that are no names": (
        lambda: NodeClassifier(task_names=[1]).fit(GRAPH),
        InputTypeError,
        ["NodeClassifier:", "task_names", "a list of strings, one for each task"],
    ),
    "too many names of tasks": (
        lambda: NodeClassifier(task_names=["a", "b"], max_epochs=0).fit(GRAPH, GRAPH),
        OptionError,
        ["NodeClassifier:", "2 task_names for 1 task"],
    ),
    "too few names of features": (
        lambda: NodeClassifier(max_epochs=0).fit(named_graph("a"), named_graph("a")),
        GraphError,
        [r"NodeClassifier\.fit:", "1 feature_names", "2 feature columns", "Name each column once"],
    ),
    "a name of features twice": (
        lambda: NodeClassifier(max_epochs=0).fit(named_graph("a", "a"), named_graph("a", "a")),
        GraphError,
        [r"NodeClassifier\.fit:", "1 different", "Name each column once"],
    ),
    "features of another name": (
        lambda: fitted(named_graph("a", "b")).predict(named_graph("a", "c")),
        GraphError,
        ["NodeClassifier:", "no feature 'b'", "It has 'a', 'c'"],
    ),
    "a model that is not fitted": (
        lambda: NodeClassifier().predict(GRAPH),
        InputError,
        ["NodeClassifier:", "not fitted", "Call fit"],
    ),
    "not a graph": (
        lambda: graph_topology({"edge_index": INDEX}),
        InputTypeError,
        ["graph_topology:", "got a dict", "Build one with Data"],
    ),
}


@pytest.mark.parametrize(("call", "error", "words"), MESSAGES.values(), ids=MESSAGES)
def test_errors_say_where_what_and_how_to_fix(call, error, words):
    with pytest.raises(error) as caught:
        call()
    assert type(caught.value) is error
    assert MESSAGE.fullmatch(str(caught.value))
    for word in words:
        assert re.search(word, str(caught.value)), f"{word!r} is not in {str(caught.value)!r}"
    assert re.match(words[0], str(caught.value))


def test_a_damping_that_rounds_to_zero_is_zero():
    """Times the -inf of a forbidden state, it would give NaN."""
    field = FIELD.forbid([(0, 1)], symmetric=False).clamp(torch.tensor([0, -1, -1]))
    torch.testing.assert_close(propagate(field, damping=1e-60).node, propagate(field).node)


def test_enumeration_is_accurate_with_large_potentials():
    beliefs = enumerate_beliefs(FIELD.with_potentials(node=NODE + 1e30))
    torch.testing.assert_close(beliefs.node, enumerate_beliefs(FIELD).node)
