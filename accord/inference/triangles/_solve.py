"""Solving fields with triangles: each graph of a batch in the way that suits it.

Exactly, by elimination, where the graph is narrow, as ego networks are. Otherwise by propagation of regions where few
triangles share an edge, as in meshes, and by propagation of factors elsewhere: with many triangles at each edge the
counting numbers of regions are far from 1, and their beliefs are wrong even for weak potentials.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, fields

import torch
from torch import Tensor

from accord.field import PairwiseField
from accord.field.factors import FactorField, FactorGroup, TableFactors
from accord.field.triangles import TriangleField
from accord.graphs import SIDES, find_sides
from accord.inference._beliefs import Beliefs
from accord.inference._options import Semiring
from accord.inference._propagate import propagate
from accord.inference._semiring import REDUCE
from accord.inference.exact import eliminate_beliefs
from accord.inference.exact._order import find_cliques
from accord.inference.search import decode_factors
from accord.inference.triangles._propagate import propagate_triangles

AnyField = PairwiseField | TriangleField
EXACT, REGIONS, FACTORS = range(3)
LARGEST_TABLE = 2**15  # entries of a clique up to which a graph is solved exactly
MOST_TRIANGLES = 3  # of an edge, for which regions are used
SMALL_GRAPH = 2000  # edges; larger graphs are not examined for their width unless they are sparse
SPARSE = 3  # edges for each node


@dataclass(frozen=True, eq=False)
class SolvedBeliefs:
    """Beliefs of all graphs, however each was solved; values are logs."""

    node: Tensor  # [*replicas, nodes, states]
    edge: Tensor  # [*replicas, edges, states, states]
    log_partition: Tensor  # [*replicas, graphs]
    converged: Tensor  # [*replicas, graphs]
    sweeps: Tensor  # [*replicas, graphs]
    residual: Tensor  # [*replicas, graphs]
    field: TriangleField
    triangle: Tensor | None = None  # [*replicas, triangles, states, states, states]; None where some replicas have none


AnyBeliefs = Beliefs | SolvedBeliefs


@torch.no_grad()
def solve_triangles(
    field: TriangleField, semiring: Semiring = "sum", damping: float = 0.5, max_sweeps: int | None = None
) -> SolvedBeliefs:
    """Beliefs of a field with triangles, without a gradient.

    Args:
        field: the field.
        semiring: "sum" for marginals, "max" for max-marginals.
        damping: of propagation, in graphs that are not solved exactly.
        max_sweeps: of propagation; None means 200.
    """
    kinds = graph_kinds(field)
    found = {
        kind: SOLVERS[kind](_of_graphs(field, kinds == kind), semiring, damping, max_sweeps)
        for kind in kinds.unique().tolist()
    }
    if len(found) == 1:
        return next(iter(found.values()))
    merged = {}
    for entry in fields(SolvedBeliefs):
        if entry.name == "field":
            continue
        parts = {kind: getattr(beliefs, entry.name) for kind, beliefs in found.items()}
        owner = kinds if entry.name not in OWNERS else kinds[OWNERS[entry.name](field)]
        axis = len(field.replicas)
        first = next(iter(parts.values()))
        whole = first.new_empty(*first.shape[:axis], len(owner), *first.shape[axis + 1 :])
        for kind, part in parts.items():
            whole.index_copy_(axis, (owner == kind).nonzero().flatten(), part.to(first.dtype))
        merged[entry.name] = whole
    return SolvedBeliefs(**merged, field=field)


@torch.no_grad()
def decode_triangles(field: TriangleField, damping: float = 0.5, max_sweeps: int | None = None) -> Tensor:
    """Joint labels [*replicas, nodes]: an optimum in narrow graphs, elsewhere the best states of max-product beliefs.

    Wide graphs are not searched for labels of a higher score, unless their labels are forbidden together: where many
    triangles repeat the same evidence, the highest score belongs to worse labels than the beliefs.
    """
    kinds = graph_kinds(field)
    node = field.node.expand(*field.replicas, *field.node.shape[-2:]).clone()
    for kind in kinds.unique().tolist():
        if kind != EXACT:
            mine = (kinds == kind)[field.graph].nonzero().flatten()
            part = _of_graphs(field, kinds == kind)
            # Only beliefs of nodes: the score of the whole field's best labels, which a solver tells too, takes longer.
            if kind == REGIONS:
                found = propagate_triangles(part, "max", damping, max_sweeps).node
            else:
                found = propagate(_as_factors(part), "max", damping, max_sweeps=max_sweeps).node
            node.index_copy_(-2, mine, found)
    labels = node.argmax(-1)
    barred = (field.score(labels) == -torch.inf).reshape(-1, field.num_graphs).any(0)
    for graphs in (kinds == EXACT, (kinds != EXACT) & barred):
        if bool(graphs.any()):
            mine = graphs[field.graph].nonzero().flatten()
            labels.index_copy_(-1, mine, _decoded(_of_graphs(field, graphs), node.index_select(-2, mine)))
    return labels


def _decoded(field: TriangleField, node: Tensor) -> Tensor:
    if not field.num_nodes:
        return field.graph.new_zeros(*field.replicas, 0)
    labels = decode_factors(field, node.reshape(-1, *node.shape[-2:]))
    return labels.reshape(*field.replicas, field.num_nodes)


def graph_kinds(field: TriangleField) -> Tensor:
    """How each graph is solved [graphs]; a graph is solved in the same way in every batch."""

    def build() -> Tensor:
        owner = field.graph[field.edge_index[0]]
        edges = torch.bincount(owner, minlength=field.num_graphs)
        nodes = torch.bincount(field.graph, minlength=field.num_graphs)
        most = torch.zeros_like(edges).scatter_reduce_(0, owner, _per_edge(field), "amax")
        kinds = torch.where(most <= MOST_TRIANGLES, REGIONS, FACTORS)
        tried = (edges <= SMALL_GRAPH) | (edges <= SPARSE * nodes)
        size = max(int(math.log(LARGEST_TABLE) / math.log(max(field.num_states, 2))), 1)
        wide = torch.zeros_like(tried)
        kept = tried[owner]
        for clique in find_cliques(field.edge_index[:, kept], field.num_nodes, size):
            if len(clique) > size:
                wide[field.graph[clique[0]]] = True
        return torch.where(tried & ~wide, EXACT, kinds)

    return field.triangles.cached(("kinds", field.num_states), build)


def _exactly(field: TriangleField, semiring: Semiring, damping: float, max_sweeps: int | None) -> SolvedBeliefs:
    beliefs = eliminate_beliefs(field, semiring)
    edge, triangle = beliefs.factors
    assert edge is not None and triangle is not None
    told = beliefs.log_partition, beliefs.converged, beliefs.sweeps, beliefs.residual
    return SolvedBeliefs(beliefs.node, edge, *told, field, triangle)


def _by_regions(field: TriangleField, semiring: Semiring, damping: float, max_sweeps: int | None) -> SolvedBeliefs:
    beliefs = propagate_triangles(field, semiring, damping, max_sweeps)
    told = beliefs.log_partition, beliefs.converged, beliefs.sweeps, beliefs.residual
    return SolvedBeliefs(beliefs.node, beliefs.edge, *told, field, beliefs.triangle)


def _as_factors(field: TriangleField) -> FactorField:
    """Edges without triangles, and triangles among which the tables of their edges are divided.

    So an edge is no factor beside its triangles. Consistent pseudomarginals are a fixed point of propagation where no
    two triangles share an edge.
    """
    triangles = field.triangles
    per_edge = _per_edge(field)
    alone = (per_edge == 0).nonzero().flatten()
    shares = (field.edge / per_edge.clamp(min=1)[:, None, None])[..., triangles.side, :, :]
    shares = torch.where(triangles.turned[..., None, None], shares.mT, shares)
    tables = field.triangle
    for side in range(len(SIDES)):
        tables = tables + shares[..., side, :, :].unsqueeze(-1 - side)
    groups: list[FactorGroup] = [
        TableFactors(field.edge_index[:, alone].t(), field.edge[..., alone, :, :]),
        TableFactors(triangles.corner, tables),
    ]
    return FactorField(field.node, groups, field.graph, field.states, field.num_graphs)


def _per_edge(field: TriangleField) -> Tensor:
    """How many triangles each edge has [edges]."""
    return torch.bincount(field.triangles.side.flatten(), minlength=field.num_edges)


def _by_factors(field: TriangleField, semiring: Semiring, damping: float, max_sweeps: int | None) -> SolvedBeliefs:
    """Propagation on factors; see `_as_factors`."""
    triangles, alone = field.triangles, (_per_edge(field) == 0).nonzero().flatten()
    beliefs = propagate(_as_factors(field), semiring, damping, max_sweeps=max_sweeps)
    pair, triangle = beliefs.factors
    assert pair is not None and triangle is not None
    reduce = REDUCE[semiring]
    sides = torch.stack([reduce(triangle, dim=-1 - side) for side in range(len(SIDES))], -3)
    sides = torch.where(triangles.turned[..., None, None], sides.mT, sides)
    edge = torch.zeros(*sides.shape[:-4], *field.edge.shape[-3:], dtype=sides.dtype, device=sides.device)
    # Of the triangles that share an edge the last one tells its belief; where messages converge they differ little.
    place = triangles.side.flatten()
    last = place.new_full((field.num_edges,), -1).scatter_reduce(0, place, torch.arange(len(place)).to(place), "amax")
    inside = (last >= 0).nonzero().flatten()
    edge[..., inside, :, :] = sides.flatten(-4, -3).index_select(-3, last[inside])
    edge[..., alone, :, :] = pair
    told = beliefs.log_partition, beliefs.converged, beliefs.sweeps, beliefs.residual
    return SolvedBeliefs(beliefs.node, edge, *told, field, triangle)


Solver = Callable[[TriangleField, Semiring, float, int | None], SolvedBeliefs]
SOLVERS: dict[int, Solver] = {EXACT: _exactly, REGIONS: _by_regions, FACTORS: _by_factors}
OWNERS: dict[str, Callable[[TriangleField], Tensor]] = {  # which graph values belong to, if not one for each
    "node": lambda field: field.graph,
    "edge": lambda field: field.graph[field.edge_index[0]],
    "triangle": lambda field: field.graph[field.triangles.corner[:, 0]],
}


def _of_graphs(field: TriangleField, mine: Tensor) -> TriangleField:
    """The field of some graphs of a batch."""
    if bool(mine.all()):
        return field
    nodes, edges, triples = (mine[OWNERS[name](field)].nonzero().flatten() for name in OWNERS)
    place = torch.zeros(field.num_nodes, dtype=torch.long, device=field.node.device)
    place[nodes] = torch.arange(len(nodes), device=nodes.device)
    number = mine.cumsum(0) - 1
    index = place[field.edge_index[:, edges]]
    pairs = PairwiseField(
        index,
        field.node[..., nodes, :],
        field.edge[..., edges, :, :],
        number[field.graph[nodes]],
        int(mine.sum()),
        field.states[nodes],
    )
    corner = place[field.triangles.corner[triples]]
    return TriangleField(pairs, find_sides(corner, index, len(nodes)), field.triangle[..., triples, :, :, :])
