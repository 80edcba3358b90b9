"""Fields in parts, next to the same fields in one process."""

import pytest
import torch
from distributed.whole_graphs import whole_graph

from accord.distributed import cut_part, on_part, partition
from accord.errors import InfeasibleError
from accord.field import PairwiseField
from accord.graphs import graph_topology
from accord.inference import propagate as propagate_here

SOLVED = [  # strength of edges, whether a state is barred, options
    (0.5, False, {"tolerance": 1e-8}),
    (1.5, False, {"semiring": "max", "damping": 0.5, "max_sweeps": 3}),
    (0.8, True, {"semiring": "max", "max_sweeps": 5, "edge_appearance": 0.8}),
]


def grid(side):
    node = torch.arange(side * side).view(side, side)
    return torch.cat(
        [
            torch.stack([node[:, :-1].flatten(), node[:, 1:].flatten()]),
            torch.stack([node[:-1].flatten(), node[1:].flatten()]),
        ],
        1,
    )


def tree(nodes, generator):
    child = torch.arange(1, nodes)
    return torch.stack([(torch.rand(nodes - 1, generator=generator) * child).long(), child])


def graphs():
    """Edges and number of nodes, by name: loops, trees with loops, a forest, a path in node order."""
    generator = torch.Generator().manual_seed(5)
    loops = tree(80, generator)
    scattered = torch.randperm(80, generator=generator)[loops]
    return {
        "random": (graph_topology(whole_graph("random")).edge_index, 60),
        "power": (graph_topology(whole_graph("power", nodes=120)).edge_index, 120),
        "grid": (grid(9), 81),
        "trees on a loop": (torch.cat([scattered, torch.tensor([[3, 70, 11], [70, 11, 3]])], 1).unique(dim=1), 80),
        "tree": (scattered, 80),
        "path": (torch.stack([torch.arange(29), torch.arange(1, 30)]), 30),
        "no edges": (torch.empty(2, 0, dtype=torch.long), 5),
    }


def field_on(edge_index, nodes, coupling, barred=False):
    generator = torch.Generator().manual_seed(nodes)
    node = torch.randn(2, nodes, 3, generator=generator, dtype=torch.float64)
    edge = coupling * torch.randn(2, edge_index.shape[1], 3, 3, generator=generator, dtype=torch.float64)
    if barred:  # a state that is never predicted, as models have it
        node[..., 2], edge[..., 2, :], edge[..., :, 2] = -torch.inf, -torch.inf, -torch.inf
    return PairwiseField(edge_index, node, edge)


def part_of(field, part):
    """The field of a part; potentials of ghosts are its owners', as models make them."""
    return PairwiseField(part.edge_index, field.node[:, part.nodes], field.edge[:, part.edges])


def check_solving(rank, ranks):
    """Beliefs and joint labels are those of one process; how many labels decoding changed in all."""
    changed = 0
    for number, (name, (edge_index, nodes)) in enumerate(graphs().items()):
        owner = partition(edge_index, nodes, ranks, ("hash", "metis")[number % 2])
        part = cut_part(edge_index, owner, rank, ranks)
        for coupling, barred, options in SOLVED:
            whole = field_on(edge_index, nodes, coupling, barred)
            field = on_part(part_of(whole, part), part)
            assert field.peeling.is_forest == whole.peeling.is_forest, name
            assert torch.equal(field.peeling.core, whole.peeling.core[part.nodes]), name
            assert torch.equal(field.peeling.core_edge, whole.peeling.core_edge[part.edges]), name
            wanted = propagate_here(whole, **options)
            found = propagate_here(field, **options)  # which hands it to all processes
            torch.testing.assert_close(found.node, wanted.node[:, part.nodes], rtol=1e-6, atol=1e-6)
            assert torch.equal(found.converged, wanted.converged), name
            labels = wanted.decode()
            assert torch.equal(found.decode(), labels[:, part.nodes]), (name, options)
            changed += int((labels != wanted.node.argmax(-1)).sum())
    return changed


def check_infeasible(rank, ranks):
    """Contradicting constraints are refused by all processes."""
    edge_index = torch.tensor([[0, 1, 2], [1, 2, 0]])
    whole = PairwiseField(edge_index, torch.zeros(3, 2), torch.zeros(3, 2, 2)).forbid([(0, 0), (1, 1)])
    part = cut_part(edge_index, torch.tensor([0, 1, 0]), rank, ranks)
    field = on_part(PairwiseField(part.edge_index, torch.zeros(len(part.nodes), 2), whole.edge[part.edges]), part)
    with pytest.raises(InfeasibleError, match="needs the whole graph in one process"):
        propagate_here(field, semiring="max", max_sweeps=3).decode()
    return True
