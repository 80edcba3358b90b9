"""Bad input never goes through, and never crashes: a door gives a sane result, or one of `accord.errors`.

The first half draws more than 10,000 calls with broken arguments (`fuzzing.py`, `breaking.py`); the second half is a
table of what a user is told: where, what, and how to fix it.
"""

import re

import pytest
import torch
from fuzzing import DOORS, Case, draw_case
from torch import Tensor
from torch_geometric.data import Data

from accord import PairwiseField, enumerate_beliefs, propagate
from accord.errors import (
    AccordError,
    FieldError,
    GraphError,
    InfeasibleError,
    InputError,
    InputTypeError,
    OptionError,
    TooLargeError,
)
from accord.field import Combination, Pseudomarginals, symmetrise
from accord.graphs import Topology, graph_topology, topology
from accord.graphs._checks import check_same_device
from accord.inference import Beliefs, ExactBeliefs

# Where: what, and how to fix it ("not an int" says that, too).
MESSAGE = re.compile(r"[A-Za-z_.]+: .+(\. |; |, but |, not an? ).+\.", re.DOTALL)


def check_no_nan(**tensors):
    for name, values in tensors.items():
        assert not bool((values.isnan() | (values == torch.inf)).any()), f"{name} holds NaN or +inf"


def check_field(field):
    check_no_nan(node=field.node, edge=field.edge)
    assert field.edge_index.shape == (2, field.num_edges) and field.edge_index.dtype == torch.long
    assert field.node.shape[-2:] == (field.num_nodes, field.num_states)
    assert field.edge.shape[-3:] == (field.num_edges, field.num_states, field.num_states)
    assert field.graph.shape == (field.num_nodes,) and field.num_graphs >= 1


def check_beliefs(beliefs):
    field = beliefs.field
    lead = field.replicas
    assert beliefs.node.shape == (*lead, field.num_nodes, field.num_states)
    assert beliefs.edge.shape == (*lead, field.num_edges, field.num_states, field.num_states)
    assert beliefs.log_partition.shape == beliefs.converged.shape == (*lead, field.num_graphs)
    check_no_nan(node=beliefs.node, edge=beliefs.edge, log_partition=beliefs.log_partition)
    assert not bool(beliefs.residual.isnan().any())
    reduce = torch.logsumexp if beliefs.semiring == "sum" else torch.amax
    for values in (beliefs.node, beliefs.edge.flatten(-2)):
        total = reduce(values, dim=-1)
        torch.testing.assert_close(total, torch.zeros_like(total), rtol=0, atol=1e-4)
    best = beliefs.decode()
    assert best.shape == (*lead, field.num_nodes)
    assert bool((field.score(best) > -torch.inf).all()), "decoded labels are forbidden"


def check_pseudomarginals(marginals, normalised):
    check_no_nan(node=marginals.node, edge=marginals.edge)
    if normalised:
        for values in (marginals.node, marginals.edge.flatten(-2)):
            total = values.logsumexp(-1)
            torch.testing.assert_close(total, torch.zeros_like(total), rtol=0, atol=1e-4)


def check_topology(found):
    low, high = found.edge_index.min(0).values, found.edge_index.max(0).values
    assert bool((low < high).all()) and bool((low >= 0).all()) and bool((high < found.num_nodes).all())
    assert found.column.shape == (found.num_edges,) and found.graph.shape == (found.num_nodes,)
    assert found.num_graphs >= 1


def check_result(case, result):
    """A result that can be used, whatever went in."""
    if isinstance(result, PairwiseField):
        check_field(result)
    elif isinstance(result, (Beliefs, ExactBeliefs)):
        check_beliefs(result)
    elif isinstance(result, Pseudomarginals):
        check_pseudomarginals(result, normalised=case.door.endswith("from_logits"))
    elif isinstance(result, Topology):
        check_topology(result)
    elif isinstance(result, Data):
        result.validate()
        assert result.centre == 0
    elif isinstance(result, list):
        for part in result:
            check_result(case, part)
    else:
        assert isinstance(result, Tensor), type(result)
        assert not bool(result.isnan().any())
        if case.door == "PairwiseField.score":
            field = case.arguments["field"]
            assert result.shape[-1] == field.num_graphs and result.dim() >= 1 + len(field.replicas)


def is_rejected(case: Case) -> bool:
    """Run one case: True if it was refused by name, False if the result is sane; all else fails the test."""
    try:
        check_result(case, case.run())
    except AccordError as error:
        assert isinstance(error, (ValueError, TypeError)), f"{type(error)} from {case}"
        assert MESSAGE.fullmatch(str(error)), f"says too little: {error}\nfrom {case}"
        return True
    except Exception as error:
        raise AssertionError(f"{type(error).__name__}: {error}\nfrom {case}") from error
    return False


@pytest.fixture(autouse=True)
def one_thread():
    """Tensors of a dozen numbers are done before a second thread has woken up."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


@pytest.mark.parametrize("door", DOORS)
def test_broken_input_is_refused_by_name_or_gives_a_sane_result(door):
    refused = [is_rejected(draw_case(door, number)) for number in range(DOORS[door].cases)]
    assert len(refused) == DOORS[door].cases
    # Were most cases healthy after all, this would prove nothing.
    assert sum(refused) >= 0.6 * len(refused), f"only {sum(refused)} of {len(refused)} cases were refused"


@pytest.mark.parametrize("door", DOORS)
def test_what_is_drawn_is_healthy_before_it_is_broken(door):
    """Were it not, refusals would say nothing about what was broken. A few fields have no labelling at all."""
    refused = [is_rejected(draw_case(door, number, broken=0)) for number in range(50)]
    assert sum(refused) <= 0.3 * len(refused)


def test_there_are_enough_cases():
    assert sum(door.cases for door in DOORS.values()) >= 10_000


INDEX = torch.tensor([[0, 1], [1, 2]])
NODE, EDGE = torch.zeros(3, 2), torch.zeros(2, 2, 2)
FIELD = PairwiseField(INDEX, NODE, EDGE)
MARGINALS = Pseudomarginals.from_logits(NODE, EDGE)
NAN, INF = float("nan"), float("inf")


def with_entry(values, number):
    broken = values.clone()
    broken.view(-1)[0] = number
    return broken


def columns(*pairs):
    return torch.tensor(pairs).t()


# What is called, what is raised, and words of the message: where, what, how to fix.
TOLD = {
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
    "not a graph": (
        lambda: graph_topology({"edge_index": INDEX}),
        InputTypeError,
        ["graph_topology:", "got a dict", "Build one with Data"],
    ),
}


@pytest.mark.parametrize(("call", "error", "words"), TOLD.values(), ids=TOLD)
def test_errors_say_where_what_and_how_to_fix(call, error, words):
    with pytest.raises(error) as caught:
        call()
    assert type(caught.value) is error
    assert MESSAGE.fullmatch(str(caught.value))
    for word in words:
        assert re.search(word, str(caught.value)), f"{word!r} is not in {str(caught.value)!r}"
    assert re.match(words[0], str(caught.value))


def test_a_damping_that_rounds_to_nothing_is_nothing():
    """Times the -inf of a forbidden state, it would be NaN."""
    field = FIELD.forbid([(0, 1)], symmetric=False).clamp(torch.tensor([0, -1, -1]))
    torch.testing.assert_close(propagate(field, damping=1e-60).node, propagate(field).node)


def test_the_oracle_keeps_its_digits_on_large_potentials():
    beliefs = enumerate_beliefs(FIELD.with_potentials(node=NODE + 1e30))
    torch.testing.assert_close(beliefs.node, enumerate_beliefs(FIELD).node)
