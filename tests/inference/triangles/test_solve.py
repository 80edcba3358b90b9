"""Each graph of a batch is solved in the way that suits it, and in the same way in every batch."""

import pytest
import torch
from support.triangle_cases import DTYPE, all_pairs, combined, joint_marginals, random_field

from accord import PairwiseField, enumerate_beliefs
from accord.errors import InfeasibleError
from accord.field.triangles import TriangleField
from accord.inference.triangles import _solve, decode_triangles, solve_triangles
from accord.inference.triangles._solve import EXACT, FACTORS, REGIONS, _by_factors, graph_kinds

STRIP = torch.tensor([[0, 0, 1, 1, 2, 2, 3], [1, 2, 2, 3, 3, 4, 4]])


def side_by_side(parts):
    nodes = [part.num_nodes for part in parts]
    firsts = [sum(nodes[:number]) for number in range(len(parts))]
    pairs = PairwiseField(
        torch.cat([part.edge_index + first for part, first in zip(parts, firsts, strict=True)], 1),
        torch.cat([part.node for part in parts], -2),
        torch.cat([part.edge for part in parts], -3),
        torch.arange(len(parts)).repeat_interleave(torch.tensor(nodes)),
    )
    corner = torch.cat([part.triangles.corner + first for part, first in zip(parts, firsts, strict=True)])
    return TriangleField(pairs, corner, torch.cat([part.triangle for part in parts], -4))


def test_narrow_graphs_are_solved_exactly():
    field = random_field(5, STRIP, 3, 0, replicas=(2,))
    beliefs, exact = solve_triangles(field), enumerate_beliefs(field)
    torch.testing.assert_close(beliefs.node, exact.node)
    torch.testing.assert_close(beliefs.edge, exact.factors[0])
    torch.testing.assert_close(beliefs.triangle, exact.factors[1])
    assert torch.equal(decode_triangles(field), enumerate_beliefs(field, "max").decode())


def test_a_batch_of_all_kinds_equals_its_graphs_one_by_one(monkeypatch):
    monkeypatch.setattr(_solve, "LARGEST_TABLE", 8)  # cliques of three nodes with two states
    parts = [random_field(5, STRIP, 2, 0), random_field(7, all_pairs(7), 2, 1, scale=0.1)]
    parts.append(random_field(4, all_pairs(4), 2, 2, scale=0.3))
    field = side_by_side(parts)
    assert graph_kinds(field).tolist() == [EXACT, FACTORS, REGIONS]
    whole, apart = solve_triangles(field), [solve_triangles(part) for part in parts]
    for name, axis in (("node", -2), ("edge", -3), ("triangle", -4), ("log_partition", -1), ("sweeps", -1)):
        expected = torch.cat([getattr(beliefs, name) for beliefs in apart], axis)
        torch.testing.assert_close(getattr(whole, name), expected, rtol=0, atol=1e-9)
    labels = [decode_triangles(part) for part in parts]
    assert torch.equal(decode_triangles(field), torch.cat(labels))
    assert torch.equal(labels[0], enumerate_beliefs(parts[0], "max").decode())
    assert torch.equal(labels[1], solve_triangles(parts[1], "max").node.argmax(-1))


def test_wide_graphs_never_get_labels_that_are_forbidden_together(monkeypatch):
    monkeypatch.setattr(_solve, "LARGEST_TABLE", 8)
    field = random_field(7, all_pairs(7), 2, 1, scale=0.1)
    differ = torch.zeros_like(field.triangle)
    differ[:, [0, 1], [0, 1], [0, 1]] = -torch.inf  # no three labels are equal, which seven nodes cannot do
    with pytest.raises(InfeasibleError):
        decode_triangles(field.with_potentials(triangle=differ))
    four = random_field(4, all_pairs(4), 2, 1, scale=0.1)
    labels = decode_triangles(four.with_potentials(four.node + torch.tensor([2.0, 0.0]), triangle=differ[:4]))
    assert labels.sum() == 2  # two of each


def test_propagation_of_factors_keeps_consistent_pseudomarginals_where_triangles_share_no_edge():
    edge_index = torch.tensor([[0, 1, 2, 2, 3, 4, 4], [1, 2, 0, 3, 4, 2, 5]])  # two triangles at a node, and a leaf
    node, edge, triple, corner = joint_marginals(6, edge_index, 2, 0)
    field = combined(node, edge, triple, edge_index, corner)
    beliefs = _by_factors(field, "sum", 0.0, None)
    torch.testing.assert_close(beliefs.node, node)
    torch.testing.assert_close(beliefs.edge, edge)
    torch.testing.assert_close(beliefs.triangle, triple)
    torch.testing.assert_close(beliefs.log_partition, torch.zeros(1, dtype=DTYPE), rtol=0, atol=1e-9)
