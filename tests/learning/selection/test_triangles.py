"""How much triangles count: chosen on validation data, and order 2 where they do not help."""

from dataclasses import replace

import pytest
import torch
from torch_geometric.data import Batch

from accord.datasets import make_triples
from accord.errors import OptionError
from accord.field.triangles import TriangleField
from accord.graphs import graph_topology, topology_triangles
from accord.inference import eliminate_beliefs
from accord.learning.selection import CombinationGrid, FieldChoice, TriangleChoice, TriangleGrid, choose_triangles

ALONE = CombinationGrid(sharpness=(0.0,), power=(1.0,), node_weight=(1.0,))


@pytest.fixture(scope="module")
def made():
    """Validation graphs, the logits that perfect networks of local features have, and what was chosen for pairs."""
    bench = make_triples(1, 60, 1)
    whole = Batch.from_data_list(bench.val)
    field, topology = bench.truth.field(whole), graph_topology(whole)
    node = field.node.float()[None]
    edge = torch.zeros(1, topology.num_edges, 3, 3)
    corner = node[:, topology_triangles(topology).corner].unbind(2)
    own = corner[0][..., :, None, None] + corner[1][..., None, :, None] + corner[2][..., None, None, :]
    return node, edge, own + field.triangle.float(), whole.y[None], topology, field


def pairs(replicas=1):
    return FieldChoice.default(ALONE.candidates()[0], replicas)


def test_perfect_networks_get_the_true_field(made):
    node, edge, triangle, targets, topology, truth = made
    chosen = choose_triangles(node, edge, triangle, targets, topology, "node", TriangleGrid(), 0.5, pairs())
    assert float(chosen.triangle_share) == 1.0 and float(chosen.triangle_weight) > 0
    exact = chosen
    for name in ("triangle_sharpness", "triangle_weight", "triangle_node_weight", "triangle_edge_weight"):
        exact = replace(exact, **{name: torch.ones(1)})
    field = exact.field(node, edge, triangle, topology)
    assert isinstance(field, TriangleField)
    found, best = eliminate_beliefs(field).node[0], eliminate_beliefs(truth).node
    torch.testing.assert_close(found.exp(), best.exp().float(), rtol=0, atol=1e-4)
    right = (chosen.labels(field, 0.5) == targets).double().mean()
    assert float(right) > float((node.argmax(-1) == targets).double().mean()) + 0.08


def test_noise_is_left_out(made):
    node, edge, triangle, targets, topology, _ = made
    noise = torch.randn(triangle.shape, generator=torch.Generator().manual_seed(0))
    chosen = choose_triangles(node, edge, noise, targets, topology, "node", TriangleGrid(), 0.5, pairs())
    assert chosen.is_pairwise
    plain = pairs().field(node, edge, topology)
    field = chosen.field(node, edge, noise, topology)
    assert torch.equal(chosen.labels(field, 0.5), pairs().labels(plain, 0.5))
    assert torch.equal(chosen.beliefs(field, "sum", 0.5).node, pairs().beliefs(plain, "sum", 0.5).node)


def test_replicas_of_both_kinds_are_solved_as_if_alone(made):
    node, edge, triangle, _, topology, _ = made
    one = TriangleChoice.default(pairs())
    two = replace(one, triangle_weight=torch.ones(1), triangle_share=torch.ones(1))
    mixed = TriangleChoice(pairs(2), **{name: torch.cat([value, two.own()[name]]) for name, value in one.own().items()})
    twice = [value.repeat(2, *(1,) * (value.dim() - 1)) for value in (node, edge, triangle)]
    field = mixed.field(*twice, topology)
    apart = [choice.field(node, edge, triangle, topology) for choice in (one, two)]
    labels = torch.cat([choice.labels(part, 0.5) for choice, part in zip((one, two), apart, strict=True)])
    assert torch.equal(mixed.labels(field, 0.5), labels)
    beliefs = mixed.beliefs(field, "sum", 0.5)
    for name in ("node", "edge", "converged"):
        parts = [
            getattr(choice.beliefs(part, "sum", 0.5), name) for choice, part in zip((one, two), apart, strict=True)
        ]
        torch.testing.assert_close(getattr(beliefs, name), torch.cat(parts))


def test_a_choice_converts_to_json_and_back():
    chosen = replace(TriangleChoice.default(pairs(2)), triangle_weight=torch.tensor([0.0, 0.75]))
    again = TriangleChoice.from_config(chosen.to_config())
    assert again.to_config() == chosen.to_config()


def test_a_grid_without_numbers_is_refused():
    for weight in ((), (-1.0,), (True,), 1.0):
        with pytest.raises(OptionError, match="weight"):
            TriangleGrid(weight=weight)
