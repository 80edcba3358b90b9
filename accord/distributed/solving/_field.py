"""A field of which each process has a part, and that all processes solve together."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import torch
from torch import Tensor

from accord.distributed._part import Part
from accord.distributed._together import total
from accord.distributed.propagation import propagate
from accord.distributed.solving._decoding import decode_part
from accord.distributed.solving._peeling import PartPeeling, peel_part
from accord.field import PairwiseField
from accord.field._structure import Structure
from accord.inference import Propagation
from accord.inference._options import DEFAULT_SWEEPS


@dataclass(frozen=True, eq=False)
class PartBeliefs:
    """Beliefs at own nodes and ghosts; labels are decoded together with the other processes."""

    field: PairwiseField
    part: Part
    node: Tensor  # [*replicas, own + ghosts, states], as `Beliefs.node`
    converged: Tensor  # [*replicas, 1], of the whole graph
    residual: Tensor  # [*replicas, 1]

    def decode(self) -> Tensor:
        """Joint labels [*replicas, own + ghosts]; all processes call it together."""
        return decode_part(self.field, self.part, self.node)


class PartStructure(Structure):
    """Own nodes, ghosts and their edges, with what follows from the whole graph."""

    def __init__(self, own: Structure, part: Part) -> None:
        super().__init__(own.edge_index, own.graph, own.num_graphs, own.num_nodes)
        self.part = part

    def solver(self, field: PairwiseField, **options: Any) -> PartBeliefs:
        """Solve such a field; a field without interactions needs no messages."""
        if not int(total(torch.tensor(int(bool(field.edge.any()))), self.part.halo.group)):
            node = field.node.log_softmax(-1) if options["semiring"] == "sum" else _from_best(field.node)
            done = torch.ones(*field.replicas, 1, dtype=torch.bool, device=node.device)
            return PartBeliefs(field, self.part, node, done, torch.zeros_like(done, dtype=node.dtype))
        if options["max_sweeps"] is None:
            options = options | {"max_sweeps": max(DEFAULT_SWEEPS, self.forest_sweeps)}
        if self.part.ranks == 1:  # the whole graph is here
            whole = Propagation(field, **options)()
            return PartBeliefs(field, self.part, whole.node, whole.converged, whole.residual)
        found = [propagate(self.part, one, **own) for one, own in _one_by_one(field, options)]
        node, converged, residual = (
            torch.stack(each).reshape(*field.replicas, *each[0].shape)
            for each in zip(*((one.node, one.converged, one.residual) for one in found), strict=True)
        )
        return PartBeliefs(field, self.part, node, converged, residual)

    @cached_property
    def peeling(self) -> PartPeeling:
        """The peeling of the whole graph, as this part sees it; all processes call it together."""
        return peel_part(self.part, self.edge_index.device)

    @cached_property
    def paths(self) -> None:
        """None: a path is solved like any other graph."""

    @cached_property
    def forest_sweeps(self) -> int:
        """Sweeps after which no message of a forest changes; 0 if the whole graph has loops."""
        return 2 * len(self.peeling.rounds) + 2 if self.peeling.is_forest else 0


def on_part(field: PairwiseField, part: Part) -> PairwiseField:
    """The field as a part of that of the whole graph: `accord.inference.propagate` solves it with all other processes.

    Args:
        field: of own nodes, ghosts and their edges; potentials of ghosts and of edges between parts are those that
            their other owners have.
        part: the part.
    """
    shared = field.with_potentials()
    shared.__dict__["structure"] = PartStructure(field.structure, part)
    return shared


def _one_by_one(field: PairwiseField, options: dict[str, Any]) -> Iterator[tuple[PairwiseField, dict[str, Any]]]:
    """The field of each replica, and its options: weights of edges may differ between replicas."""
    node, edge = field.expanded()
    weights = options["edge_appearance"]
    each = [weights] * len(node)
    if isinstance(weights, Tensor) and weights.dim() > 1:
        each = list(weights.expand(*field.replicas, field.num_edges).reshape(len(node), field.num_edges))
    for number, own in enumerate(each):
        yield field.with_potentials(node[number], edge[number]), options | {"edge_appearance": own}


def _from_best(node: Tensor) -> Tensor:
    return node - node.amax(-1, keepdim=True)
