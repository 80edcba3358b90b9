"""Elimination against enumeration on small graphs, and against dynamic programming written out on large ones."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from inference.exact_cases import EXACT, chain, complete, grid, random_field
from scipy.special import logsumexp
from support.strategies import DTYPE, fields, union
from torch.testing import assert_close

from accord import PairwiseField, enumerate_beliefs
from accord.errors import InfeasibleError, InputTypeError, OptionError, TooLargeError
from accord.inference import eliminate_beliefs
from accord.inference.exact import _elimination

SEMIRINGS = st.sampled_from(["sum", "max"])
ANY_FIELD = fields(max_nodes=7, replicas=((), (2,), (2, 3)))
BARRED_FIELD = fields(max_nodes=7, max_states=4, barred=0.2)
TIED_FIELD = fields(max_nodes=7, ties=True) | fields(max_nodes=7, ties=True, barred=0.1)


def assert_same_beliefs(found, wanted):
    assert_close(found.log_partition, wanted.log_partition, **EXACT)
    assert_close(found.node, wanted.node, **EXACT)
    assert_close(found.edge, wanted.edge, **EXACT)
    assert found.labels.shape == wanted.labels.shape
    assert_close(found.field.score(found.decode()), found.field.score(wanted.decode()), **EXACT)


# Against enumeration.


@given(ANY_FIELD | fields(max_nodes=7, tree=True) | TIED_FIELD | BARRED_FIELD, SEMIRINGS)
def test_equals_enumeration(field, semiring):
    try:
        wanted = enumerate_beliefs(field, semiring=semiring)
    except InfeasibleError:
        with pytest.raises(InfeasibleError, match="graph 0"):
            eliminate_beliefs(field, semiring=semiring)
    else:
        assert_same_beliefs(eliminate_beliefs(field, semiring=semiring), wanted)


@given(TIED_FIELD, SEMIRINGS)
def test_decoded_labels_are_an_optimum_ties_included(field, semiring):
    try:
        best = enumerate_beliefs(field, semiring="max").log_partition
    except InfeasibleError:
        return
    assert_close(field.score(eliminate_beliefs(field, semiring=semiring).decode()), best, **EXACT)


@given(fields(max_nodes=7), st.data(), SEMIRINGS)
def test_clamped_nodes(field, data, semiring):
    states = st.integers(-1, field.num_states - 1)
    labels = data.draw(st.lists(states, min_size=field.num_nodes, max_size=field.num_nodes))
    clamped = field.clamp(torch.tensor(labels))
    assert_same_beliefs(eliminate_beliefs(clamped, semiring), enumerate_beliefs(clamped, semiring))


@given(st.lists(fields(max_nodes=5, min_states=2, max_states=2, replicas=((),)), min_size=1, max_size=5), SEMIRINGS)
def test_a_batch_equals_its_graphs(parts, semiring):
    whole = eliminate_beliefs(union(parts), semiring)
    alone = [eliminate_beliefs(part, semiring) for part in parts]
    assert_close(whole.node, torch.cat([part.node for part in alone], -2), **EXACT)
    assert_close(whole.edge, torch.cat([part.edge for part in alone], -3), **EXACT)
    assert_close(whole.log_partition, torch.cat([part.log_partition for part in alone], -1), **EXACT)
    assert torch.equal(whole.converged, torch.ones(len(parts), dtype=torch.bool))


@pytest.mark.parametrize("which", ["node", "edge"])
def test_replicas_of_one_kind_of_potential_broadcast(which):
    field = random_field(grid(2, 3), 6, 3, replicas=(4,))
    one = {"node": field.node, "edge": field.edge, which: getattr(field, which)[:1].squeeze(0)}
    mixed = PairwiseField(field.edge_index, one["node"], one["edge"])
    assert_same_beliefs(eliminate_beliefs(mixed), enumerate_beliefs(mixed))


def test_replicas_with_different_clamped_states_equal_each_alone():
    field = random_field(complete(5), 5, 3).clamp(torch.tensor([[0, -1, 2, -1, -1], [1, -1, -1, -1, -1]]))
    beliefs = eliminate_beliefs(field)
    for replica in range(2):
        alone = eliminate_beliefs(PairwiseField(field.edge_index, field.node[replica], field.edge))
        assert_close(beliefs.node[replica], alone.node, **EXACT)
        assert_close(beliefs.edge[replica], alone.edge, **EXACT)


@pytest.mark.parametrize("semiring", ["sum", "max"])
@pytest.mark.parametrize(("num_nodes", "num_states"), [(0, 3), (1, 1), (4, 3), (5, 1)])
def test_fields_without_edges(num_nodes, num_states, semiring):
    field = random_field(torch.empty(2, 0, dtype=torch.long), num_nodes, num_states)
    assert_same_beliefs(eliminate_beliefs(field, semiring), enumerate_beliefs(field, semiring))


def test_graphs_without_nodes_have_one_empty_labelling():
    field = PairwiseField(chain(2), torch.zeros(2, 2), torch.zeros(1, 2, 2), graph=torch.tensor([1, 1]), num_graphs=3)
    assert_close(eliminate_beliefs(field).log_partition, torch.tensor([1.0, 4.0, 1.0]).log())


def test_one_state_needs_no_table_however_wide_the_graph():
    field = random_field(complete(80), 80, 1)
    beliefs = eliminate_beliefs(field, max_table=1)
    assert_close(beliefs.log_partition, field.score(torch.zeros(80, dtype=torch.long)), **EXACT)
    assert beliefs.node.eq(0).all() and beliefs.edge.eq(0).all()


# Gradients.


def with_gradients(field):
    return field.with_potentials(node=field.node.clone().requires_grad_(), edge=field.edge.clone().requires_grad_())


@given(fields(max_nodes=6, replicas=((), (2,))) | fields(max_nodes=6, max_states=4, barred=0.15))
def test_gradient_of_log_partition_is_the_marginals(field):
    field = with_gradients(field)
    try:
        beliefs = eliminate_beliefs(field)
    except InfeasibleError:
        return
    beliefs.log_partition.sum().backward()
    assert_close(field.node.grad, beliefs.node.exp(), **EXACT)
    assert_close(field.edge.grad, beliefs.edge.exp(), **EXACT)


@given(fields(max_nodes=6, ties=False, min_states=2))
def test_gradient_of_the_optimum_points_at_its_labels(field):
    field = with_gradients(field)
    beliefs = eliminate_beliefs(field, semiring="max")
    beliefs.log_partition.sum().backward()
    picked = torch.nn.functional.one_hot(beliefs.decode(), field.num_states).to(DTYPE)
    assert_close(field.node.grad, picked, **EXACT)


@pytest.mark.parametrize("clamped", [False, True])
def test_gradients_of_beliefs(clamped):
    field = random_field(torch.tensor([[0, 1, 2, 3, 3], [1, 2, 0, 2, 4]]), 5, 2).forbid([(1, 1)], torch.tensor([0, 4]))
    if clamped:
        field = field.clamp(torch.tensor([-1, -1, 0, -1, -1]))

    def probabilities(node, edge):
        beliefs = eliminate_beliefs(field.with_potentials(node=node, edge=edge))
        return beliefs.node.exp(), beliefs.edge.exp()

    free = with_gradients(field)
    assert torch.autograd.gradcheck(probabilities, (free.node, free.edge))


# Large graphs.


def forward_backward(field):
    """Log Z and log-marginals of a chain, one node after another."""
    node, edge = field.node.numpy(), field.edge.numpy()
    forward, backward = [node[0]], [np.zeros(node.shape[1])]
    for step in range(len(edge)):
        forward.append(node[step + 1] + logsumexp(forward[-1][:, None] + edge[step], axis=0))
    for step in reversed(range(len(edge))):
        backward.append(logsumexp((node[step + 1] + backward[-1])[None, :] + edge[step], axis=1))
    log_z = logsumexp(forward[-1])
    return log_z, np.stack(forward) + np.stack(backward[::-1]) - log_z


def test_long_chain_against_the_forward_algorithm():
    field = random_field(chain(3000), 3000, 4)
    beliefs = eliminate_beliefs(field)
    log_z, marginals = forward_backward(field)
    assert_close(beliefs.log_partition, torch.tensor([log_z]), rtol=1e-12, atol=0)
    assert_close(beliefs.node, torch.from_numpy(marginals), rtol=0, atol=1e-8)
    assert_close(beliefs.edge.logsumexp(-1), beliefs.node[:-1], rtol=0, atol=1e-8)


def test_long_chain_in_single_precision():
    field = random_field(chain(3000), 3000, 3)
    single = eliminate_beliefs(field.to(torch.float32))
    assert_close(single.node.double(), eliminate_beliefs(field).node, rtol=0, atol=1e-4)


def test_long_chain_with_hard_constraints_decodes_as_viterbi():
    field = random_field(chain(3000), 3000, 4).forbid([(0, 2), (1, 1)], symmetric=False)
    node, edge = field.node.numpy(), field.edge.numpy()
    best = node[0]
    for step in range(len(edge)):
        best = node[step + 1] + (best[:, None] + edge[step]).max(0)
    beliefs = eliminate_beliefs(field, semiring="max")
    assert_close(beliefs.log_partition, torch.tensor([best.max()]), rtol=1e-12, atol=0)
    assert_close(field.score(beliefs.decode()), beliefs.log_partition, rtol=1e-12, atol=0)


def test_narrow_grid_against_a_transfer_matrix():
    rows, columns, states = 4, 30, 2
    field = random_field(grid(rows, columns), rows * columns, states)
    column = torch.cartesian_prod(*[torch.arange(states)] * rows)  # [16, rows]: every labelling of one column
    node = field.node.reshape(rows, columns, states)
    across = field.edge[: rows * (columns - 1)].reshape(rows, columns - 1, states, states)
    down = field.edge[rows * (columns - 1) :].reshape(rows - 1, columns, states, states)
    every = torch.arange(rows)

    def inside(j):
        return node[every, j, column].sum(1) + down[every[1:] - 1, j, column[:, :-1], column[:, 1:]].sum(1)

    total = inside(0)
    for j in range(1, columns):
        step = across[every, j - 1, column[:, None, :], column[None, :, :]].sum(-1)
        total = inside(j) + (total[:, None] + step).logsumexp(0)
    last = torch.stack([total[column[:, 0] == state].logsumexp(0) for state in range(states)]) - total.logsumexp(0)
    beliefs = eliminate_beliefs(field)
    assert_close(beliefs.log_partition, total.logsumexp(0)[None], rtol=1e-12, atol=0)
    assert_close(beliefs.node[columns - 1], last, rtol=0, atol=1e-9)


def test_large_tree_is_consistent_and_its_log_partition_is_energy_plus_entropy():
    generator = torch.Generator().manual_seed(0)
    parents = torch.stack([torch.randint(child, (), generator=generator) for child in range(1, 2000)])
    field = random_field(torch.stack([parents, torch.arange(1, 2000)]), 2000, 5)
    beliefs = eliminate_beliefs(field)
    source, target = field.edge_index
    assert_close(beliefs.edge.logsumexp(-1), beliefs.node[source], rtol=0, atol=1e-8)
    assert_close(beliefs.edge.logsumexp(-2), beliefs.node[target], rtol=0, atol=1e-8)
    # Exact on trees: log Z = sum_s <theta_s> + sum_st <theta_st> + sum_st H_st - sum_s (degree_s - 1) H_s.
    p, q = beliefs.node, beliefs.edge
    degree = torch.bincount(field.edge_index.flatten(), minlength=2000)[:, None]
    energy = (p.exp() * (field.node + (degree - 1) * p)).sum() + (q.exp() * (field.edge - q)).sum()
    assert_close(beliefs.log_partition, energy[None], rtol=1e-10, atol=0)


# What is refused.


def test_wide_graphs_are_refused_with_their_clique():
    field = random_field(complete(8), 8, 3)
    with pytest.raises(TooLargeError, match=r"clique of 8 nodes.*3\*\*8.*max_table = 6560"):
        eliminate_beliefs(field, max_table=3**8 - 1)
    assert_close(eliminate_beliefs(field, max_table=3**8).node, enumerate_beliefs(field).node, **EXACT)
    with pytest.raises(TooLargeError, match="2 replicas"):
        eliminate_beliefs(random_field(complete(8), 8, 3, replicas=(2,)), max_table=2 * 3**8 - 1)


def test_a_hundred_tables_that_fit_one_by_one_are_refused_together(monkeypatch):
    field = random_field(grid(3, 40), 120, 2)
    monkeypatch.setattr(_elimination, "MAX_TABLES", 16)
    with pytest.raises(TooLargeError, match="all tables together"):
        eliminate_beliefs(field, max_table=32)


def test_clamping_makes_wide_graphs_narrow():
    field = random_field(complete(40), 40, 3)
    with pytest.raises(TooLargeError):
        eliminate_beliefs(field)
    labels = torch.arange(40) % 3
    labels[[3, 7, 20]] = -1
    beliefs = eliminate_beliefs(field.clamp(labels))
    # All 27 completions, by hand.
    completions = torch.cartesian_prod(*[torch.arange(3)] * 3)
    every = labels.repeat(27, 1)
    every[:, [3, 7, 20]] = completions
    scores = field.score(every)[:, 0]
    assert_close(beliefs.log_partition, scores.logsumexp(0)[None], **EXACT)
    marginal = torch.stack([scores[completions[:, 1] == state].logsumexp(0) for state in range(3)])
    assert_close(beliefs.node[7], marginal - scores.logsumexp(0), **EXACT)
    assert torch.equal(beliefs.decode(), every[scores.argmax()])


def test_infeasible_graphs_are_named():
    free = random_field(chain(3), 3, 2)
    barred = free.with_potentials(edge=torch.full_like(free.edge, -torch.inf))
    with pytest.raises(InfeasibleError, match="graph 1 has no labelling"):
        eliminate_beliefs(union([free, barred, free]))
    with pytest.raises(InfeasibleError, match="graph 0 of replica 1"):
        eliminate_beliefs(PairwiseField(chain(3), free.node, torch.stack([free.edge, barred.edge])))


@pytest.mark.parametrize(
    ("options", "error", "words"),
    [
        ({"semiring": "min"}, OptionError, "semiring 'min'"),
        ({"semiring": ["sum"]}, OptionError, "semiring"),
        ({"max_table": 0}, OptionError, "max_table is 0"),
        ({"max_table": 1e6}, InputTypeError, "float"),
        ({"max_table": True}, InputTypeError, "bool"),
        ({"field": "field"}, InputTypeError, "PairwiseField"),
    ],
)
def test_bad_options(options, error, words):
    with pytest.raises(error, match=words):
        eliminate_beliefs(**{"field": random_field(chain(3), 3, 2), **options})
