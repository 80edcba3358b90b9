"""How the node and the edge network combine, and how the field is solved: a few numbers per replica."""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any

import torch
from torch import Tensor

from accord.errors import InputError
from accord.field import Combination, PairwiseField, Pseudomarginals, blend, own_sums
from accord.graphs import Topology
from accord.inference import Beliefs, Semiring, propagate, spanning_tree_probabilities
from accord.inference.chains import path_labels

SPANNING = 0.0  # stands for the edge probabilities of the uniform spanning tree
DECODED_FROM: tuple[Semiring, ...] = ("max", "sum")  # labels are decoded jointly from either's beliefs
ADDED_LATER = ("node_shrinkage", "edge_shrinkage")  # models saved before have no such values, which means 0
Shrinkage = tuple[Tensor, Tensor]  # shares for nodes and for edges [*replicas], see `Pseudomarginals.shrunk`


@dataclass(frozen=True, eq=False)
class FieldChoice:
    """What was chosen on validation data: one value for each replica [*replicas]; all broadcast against each other."""

    sharpness: Tensor  # multiplies the edge scores before the softmax
    power: Tensor  # of the normaliser
    node_weight: Tensor  # of the node evidence
    node_share: Tensor  # of the node network's marginals in the normaliser; the rest are the table's own sums
    appearance: Tensor  # of every edge in tree-reweighted propagation; 1 is plain, SPANNING the spanning tree's
    semiring: Tensor  # position in DECODED_FROM
    sweeps: Tensor
    score: Tensor  # on validation data; NaN where nothing was chosen
    node_shrinkage: Tensor  # of the pseudomarginals of nodes and edges, set by how many training labels there are;
    edge_shrinkage: Tensor  # 0 is none

    @classmethod
    def default(cls, candidate: Sequence[float], num_replicas: int) -> "FieldChoice":
        """One candidate for all replicas, without a score: nothing was chosen yet."""
        rows = torch.tensor(candidate).expand(num_replicas, -1)
        return cls.from_rows(rows, torch.full((num_replicas,), torch.nan))

    @classmethod
    def from_rows(cls, rows: Tensor, score: Tensor, shrinkage: Shrinkage | None = None) -> "FieldChoice":
        """From rows [*replicas, numbers] in the order of the fields, a score [*replicas], and a shrinkage or none."""
        names = [entry.name for entry in fields(cls)]
        shares = (torch.zeros_like(score),) * 2 if shrinkage is None else (part.to(score) for part in shrinkage)
        return cls(**dict(zip(names, [*rows.unbind(-1), score, *shares], strict=True)))

    @classmethod
    def from_config(cls, config: Mapping[str, Sequence[Any]]) -> "FieldChoice":
        """Read what `to_config` wrote."""
        values = {name: list(column) for name, column in config.items()}
        unknown = [name for name in values["semiring"] if name not in DECODED_FROM]
        if unknown:
            raise InputError(f"The saved semiring {unknown[0]!r} is unknown. Choose one of {', '.join(DECODED_FROM)}.")
        values["semiring"] = [DECODED_FROM.index(name) for name in values["semiring"]]
        values["appearance"] = [SPANNING if value == "spanning" else value for value in values["appearance"]]
        values["score"] = [math.nan if value is None else value for value in values["score"]]
        for name in ADDED_LATER:
            values.setdefault(name, [0.0] * len(values["score"]))
        return cls(**{name: torch.tensor(column, dtype=torch.float32) for name, column in values.items()})

    def to_config(self) -> dict[str, list[Any]]:
        """Plain values for each replica, by field: names for semirings, None for no score. Numbers are exact."""
        values = {name: tensor.tolist() for name, tensor in self.tensors().items()}
        values["semiring"] = [DECODED_FROM[int(number)] for number in values["semiring"]]
        values["appearance"] = ["spanning" if value == SPANNING else value for value in values["appearance"]]
        values["sweeps"] = [int(value) for value in values["sweeps"]]
        values["score"] = [None if math.isnan(value) else value for value in values["score"]]
        return values

    def tensors(self) -> dict[str, Tensor]:
        """The fields by name."""
        return {entry.name: getattr(self, entry.name) for entry in fields(self)}

    def to(self, device: torch.device) -> "FieldChoice":
        """The same on another device."""
        return FieldChoice(**{name: value.to(device) for name, value in self.tensors().items()})

    def field(self, node: Tensor, edge: Tensor, topology: Topology) -> PairwiseField:
        """The field (Eq. 5) of logits [R, nodes, states] and [R, edges, states, states]."""
        return self.combine(self.pseudomarginals(node, edge), topology)

    def pseudomarginals(self, node: Tensor, edge: Tensor) -> Pseudomarginals:
        """Logits, sharpened and shrunk."""
        marginals = Pseudomarginals.from_logits(node, edge, self.sharpness)
        return marginals.shrunk(self.node_shrinkage, self.edge_shrinkage)

    def combine(self, marginals: Pseudomarginals, topology: Topology) -> PairwiseField:
        """The field of pseudomarginals, which have been sharpened and shrunk already."""
        own = not self.node_share.requires_grad and not bool(self.node_share.any())
        normaliser = own_sums if own else blend(self.node_share)
        combination = Combination(normaliser=normaliser, power=self.power, node_weight=self.node_weight)
        return combination.field(marginals, topology.edge_index, topology.graph, topology.num_graphs)

    def beliefs(self, field: PairwiseField, semiring: Semiring, damping: float) -> Beliefs:
        """Beliefs with each replica's own reweighting, propagated until they converge; exact on forests."""
        return propagate(
            field,
            semiring=semiring,
            damping=0.0 if field.peeling.is_forest else damping,  # forests converge faster without
            edge_appearance=self._edge_appearance(field),
        )

    def labels(self, field: PairwiseField, damping: float) -> Tensor:
        """Joint labels [*replicas, nodes], each replica solved with its own settings; sequences in one pass."""
        exact = path_labels(field)
        if exact is not None:
            return exact
        labels = torch.zeros(*field.replicas, field.num_nodes, dtype=torch.long, device=field.node.device)
        appearance = self._edge_appearance(field).expand(*field.replicas, field.num_edges)
        for number, sweeps, mine in self._groups(field.replicas):
            alike = bool(mine.all())  # the usual case: nothing needs to be copied
            beliefs = propagate(
                field if alike else field.with_potentials(*_of_replicas(field, mine)),
                semiring=DECODED_FROM[number],
                damping=damping,
                edge_appearance=appearance if alike else appearance[mine],
                max_sweeps=sweeps,
            )
            labels[mine] = beliefs.decode().flatten(0, -2)
        return labels

    def _groups(self, replicas: torch.Size) -> Iterator[tuple[int, int, Tensor]]:
        """Each pair of semiring and sweeps that occurs, and a mask of the replicas that have it."""
        semiring, sweeps = self.semiring.expand(replicas), self.sweeps.expand(replicas)
        for number, count in torch.stack([semiring, sweeps]).flatten(1).unique(dim=1).t().tolist():
            yield int(number), int(count), (semiring == number) & (sweeps == count)

    def _edge_appearance(self, field: PairwiseField) -> Tensor:
        """[*replicas, edges]."""
        wanted = self.appearance.to(field.edge)[..., None].expand(*self.appearance.shape, field.num_edges)
        if bool((self.appearance == SPANNING).any()):
            tree = spanning_tree_probabilities(field.edge_index, field.num_nodes).to(field.edge)
            wanted = torch.where(wanted == SPANNING, tree, wanted)
        return wanted.expand(*field.replicas, field.num_edges)


def _of_replicas(field: PairwiseField, mine: Tensor) -> tuple[Tensor, Tensor]:
    """Potentials of some replicas, [some, ...]."""
    node = field.node.expand(*field.replicas, *field.node.shape[-2:])
    edge = field.edge.expand(*field.replicas, *field.edge.shape[-3:])
    return node[mine], edge[mine]
