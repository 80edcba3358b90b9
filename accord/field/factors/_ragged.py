"""Pairwise fields whose nodes have different numbers of states, without padding."""

from collections.abc import Sequence

import torch
from torch import Tensor

from accord.errors import FieldError, InputTypeError
from accord.field._checks import check_edges_once
from accord.field._forbidding import barred_pairs, chosen_edges
from accord.field.factors._field import FactorField
from accord.field.factors._groups import FactorGroup, TableFactors
from accord.graphs._checks import check_edge_index, check_tensor


class RaggedField(FactorField):
    """A pairwise field whose tables have the states of their two ends: edges of one shape are a group of factors.

    Made by `PairwiseField.ragged`.
    """

    edge_index: Tensor  # [2, edges]: each undirected edge once
    place: tuple[Tensor, ...]  # the edges of each group

    def __init__(
        self,
        edge_index: Tensor,
        node: Sequence[Tensor],
        edge: Sequence[Tensor],
        graph: Tensor | None = None,
        num_graphs: int | None = None,
    ) -> None:
        where = "PairwiseField.ragged"
        rows, tables = _listed(node, "node", 1, where), _listed(edge, "edge", 2, where)
        if not rows:
            raise FieldError(f"{where}: node holds no potentials. Give one vector of states for each node.")
        index = check_edge_index(edge_index, len(rows), where)
        if index.shape[1] != len(tables):
            raise FieldError(
                f"{where}: there are {index.shape[1]} edges but {len(tables)} edge tables. "
                "Give one table for each column of edge_index."
            )
        sizes = [row.shape[-1] for row in rows]
        shapes: dict[torch.Size, list[int]] = {}
        for number, (ends, table) in enumerate(zip(index.t().tolist(), tables, strict=True)):
            expected = tuple(sizes[end] for end in ends)
            if table.shape[-2:] != expected:
                raise FieldError(
                    f"{where}: the table of edge {number} has {list(table.shape[-2:])} states, but its ends "
                    f"{ends[0]} and {ends[1]} have {list(expected)}. Give [states of source, states of target]."
                )
            shapes.setdefault(table.shape[-2:], []).append(number)
        self.place = tuple(torch.tensor(edges, device=index.device) for edges in shapes.values())
        groups: list[FactorGroup] = [
            TableFactors(index[:, edges].t(), torch.stack([tables[each] for each in edges.tolist()], dim=-3))
            for edges in self.place
        ]
        counts = torch.tensor(sizes, device=index.device)
        super().__init__(_padded(rows), groups, graph, counts, num_graphs)
        check_edges_once(index, self.graph, self.num_graphs, where)
        self.edge_index = index

    @property
    def num_edges(self) -> int:
        """How many undirected edges, in all graphs together."""
        return int(self.edge_index.shape[1])

    @property
    def edge(self) -> list[Tensor]:
        """The table of each edge [*replicas, source states, target states]."""
        return self.by_edge([group.values for group in self.groups])

    def by_edge(self, values: Sequence[Tensor]) -> list[Tensor]:
        """Values [..., factors, source states, target states] of each group, listed by edge."""
        listed: dict[int, Tensor] = {}
        for edges, tables in zip(self.place, values, strict=True):
            listed.update(zip(edges.tolist(), tables.unbind(-3), strict=True))
        return [listed[number] for number in range(self.num_edges)]

    def forbid(
        self, pairs: Tensor | Sequence[tuple[int, int]], edges: Tensor | None = None, symmetric: bool = True
    ) -> "RaggedField":
        """Rule out pairs of states on the two ends of an edge; those that an edge does not have are ignored there.

        Args:
            pairs: [pairs, 2] states (a, b).
            edges: columns of edge_index they apply to; None for every edge.
            symmetric: (a, b) also rules out (b, a), since an undirected edge has no first end. If False, a pair is
                (state of source, state of target) in the edge's stored direction.
        """
        where = "RaggedField.forbid"
        barred = barred_pairs(pairs, symmetric, self.num_states, where)
        if barred is None:
            return self
        barred = barred.to(self.node.device)
        chosen = None if edges is None else chosen_edges(edges, self.num_edges, where).to(barred.device)
        tables = []
        for place, group in zip(self.place, self.groups, strict=True):
            out = barred[: group.shape[0], : group.shape[1]]
            if chosen is not None:
                out = chosen[place, None, None] & out
            tables.append(group.values.masked_fill(out, -torch.inf))
        return self._taken(self.with_potentials(values=tables))

    def _taken(self, field: FactorField) -> "RaggedField":
        other = object.__new__(RaggedField)
        other.__dict__.update(field.__dict__)
        other.edge_index, other.place = (
            self.edge_index.to(field.node.device),
            tuple(edges.to(field.node.device) for edges in self.place),
        )
        return other


def _listed(values: object, name: str, axes: int, where: str) -> list[Tensor]:
    if isinstance(values, Tensor) or not isinstance(values, Sequence):
        raise InputTypeError(
            f"{where}: {name} is a {type(values).__name__}, not a list of tensors. Give one for each {name}, or use "
            "PairwiseField where all nodes have the same number of states."
        )
    listed = [check_tensor(value, f"{name}[{number}]", where) for number, value in enumerate(values)]
    for number, value in enumerate(listed):
        if value.dim() < axes or not value.shape[-1]:
            form = "states" if axes == 1 else "source states, target states"
            raise FieldError(f"{where}: {name}[{number}] has shape {list(value.shape)}, but [..., {form}] is needed.")
        if value.dtype != listed[0].dtype or value.device != listed[0].device:
            raise InputTypeError(
                f"{where}: {name}[0] is {listed[0].dtype} on {listed[0].device}, {name}[{number}] {value.dtype} on "
                f"{value.device}. Convert them to one kind."
            )
        if value.shape[:-axes] != listed[0].shape[:-axes]:
            raise FieldError(
                f"{where}: {name}[{number}] has replica axes {list(value.shape[:-axes])}, {name}[0] has "
                f"{list(listed[0].shape[:-axes])}. Give all the same."
            )
    return listed


def _padded(rows: Sequence[Tensor]) -> Tensor:
    width = max(row.shape[-1] for row in rows)
    return torch.stack([torch.nn.functional.pad(row, (0, width - row.shape[-1])) for row in rows], dim=-2)
