"""Hypothesis strategies for fields with triangles, and consistent pseudomarginals."""

from itertools import combinations

import torch
from hypothesis import strategies as st
from support.strategies import DTYPE, edge_lists

from accord import PairwiseField
from accord.field import Combination, Pseudomarginals
from accord.field.triangles import TriangleField, TrianglePseudomarginals
from accord.graphs import find_sides, triangles


@st.composite
def junction_trees(draw, max_nodes=7):
    """Edges of a chordal graph without four nodes that are all linked: triangles, edges and nodes hang together."""
    edges, count = [], 1
    while count < max_nodes and draw(st.integers(0, 5)):
        kind = draw(st.sampled_from(["edge", "edge", "node", "leaf"]))
        if kind == "edge" and edges:
            first, second = draw(st.sampled_from(edges))
            edges += [(first, count), (second, count)]
        elif kind == "node" and count + 2 <= max_nodes:
            first = draw(st.integers(0, count - 1))
            edges += [(first, count), (first, count + 1), (count, count + 1)]
            count += 1
        else:
            edges.append((draw(st.integers(0, count - 1)), count))
        count += 1
    flipped = [edge[::-1] if draw(st.booleans()) else edge for edge in edges]
    return count, torch.tensor(draw(st.permutations(flipped)), dtype=torch.long).reshape(-1, 2).t()


@st.composite
def loopy_graphs(draw, max_nodes=6):
    """Any graph, with many triangles."""
    count = draw(st.integers(3, max_nodes))
    return count, draw(edge_lists(count, max_extra=8))


def random_field(count, edge_index, states, seed, scale=1.0, replicas=(), barred=0.0):
    """A field with random potentials on nodes, edges and triangles."""
    generator = torch.Generator().manual_seed(seed)
    corner = triangles(edge_index, count)

    def potentials(*shape):
        values = scale * torch.randn(*replicas, *shape, generator=generator, dtype=DTYPE)
        return values.masked_fill(torch.rand(values.shape, generator=generator) < barred, -torch.inf)

    pairs = PairwiseField(edge_index, potentials(count, states), potentials(edge_index.shape[1], states, states))
    return TriangleField(pairs, corner, potentials(len(corner), *(states,) * 3))


def joint_marginals(count, edge_index, states, seed):
    """Log-marginals of nodes, edges and triangles of a random joint distribution: consistent on any graph."""
    generator = torch.Generator().manual_seed(seed)
    joint = torch.randn(*(states,) * count, generator=generator, dtype=DTYPE).flatten().softmax(0)
    joint = joint.reshape((states,) * count)

    def marginal(*nodes):
        others = [node for node in range(count) if node not in nodes]
        kept = joint.sum(others) if others else joint
        order = sorted(nodes)
        return kept.permute([order.index(node) for node in nodes]).log()

    corner = triangles(edge_index, count)
    node = torch.stack([marginal(node) for node in range(count)])
    edges = [marginal(*edge) for edge in edge_index.t().tolist()]
    triples = [marginal(*triple) for triple in corner.tolist()]
    shape = (states,) * 3
    return (
        node,
        torch.stack(edges) if edges else torch.zeros(0, *shape[:2], dtype=DTYPE),
        torch.stack(triples) if triples else torch.zeros(0, *shape, dtype=DTYPE),
        corner,
    )


def combined(node, edge, triple, edge_index, corner):
    """The field of consistent pseudomarginals."""
    pairs = Combination(normaliser="node").field(Pseudomarginals(node, edge), edge_index)
    interaction = TrianglePseudomarginals(triple).interaction()
    return TriangleField(pairs, find_sides(corner, edge_index, len(node)), interaction)


def all_pairs(count):
    """Edges of a complete graph."""
    return torch.tensor(list(combinations(range(count), 2))).t()
