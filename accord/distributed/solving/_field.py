"""A field of which each process has a part, and that all processes solve together."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from accord.distributed._part import Part
from accord.distributed._together import total
from accord.distributed.decoding import PartStructure, decode_part
from accord.distributed.propagation import propagate
from accord.field import PairwiseField
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


class SolvedTogether(PartStructure):
    """The structure of a field that all processes solve together."""

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


def on_part(field: PairwiseField, part: Part) -> PairwiseField:
    """The field as a part of that of the whole graph: `accord.inference.propagate` solves it with all other processes.

    Args:
        field: of own nodes, ghosts and their edges; potentials of ghosts and of edges between parts are those that
            their other owners have.
        part: the part.
    """
    shared = field.with_potentials()
    shared.__dict__["structure"] = SolvedTogether(field.structure, part)
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
