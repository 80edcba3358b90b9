"""What propagation on fields with triangles returns."""

from dataclasses import dataclass
from functools import cached_property

import torch
from torch import Tensor

from accord.field.triangles import TriangleField
from accord.inference._options import Semiring
from accord.inference._semiring import REDUCE
from accord.inference.triangles._regions import IMPOSSIBLE, Messages, Regions


@dataclass(frozen=True, eq=False)
class TriangleBeliefs:
    """Beliefs of nodes, edges and triangles that follow from messages; check `converged`."""

    field: TriangleField
    semiring: Semiring
    regions: Regions
    messages: Messages
    converged: Tensor  # [*replicas, graphs]
    sweeps: Tensor  # [*replicas, graphs]
    residual: Tensor  # [*replicas, graphs]: largest change of a log-message in the last sweep

    @cached_property
    def _logs(self) -> tuple[Tensor, Tensor, Tensor]:
        """Normalised logs of nodes, edges and triangles [R, ...], in float64."""
        node, edge, triangle = (
            self._normalised(belief, inner)
            for belief, inner in zip(self.regions.beliefs(self.messages, REDUCE[self.semiring]), (1, 2, 3), strict=True)
        )
        return node, edge, triangle

    def _normalised(self, totals: Tensor, inner: int) -> Tensor:
        flat = totals.flatten(-inner)
        level = flat.logsumexp(-1, keepdim=True) if self.semiring == "sum" else flat.amax(-1, keepdim=True)
        logs = flat - level
        return logs.masked_fill(logs < IMPOSSIBLE, -torch.inf).view_as(totals)

    def _shaped(self, logs: Tensor) -> Tensor:
        return logs.to(self.field.node.dtype).reshape(*self.field.replicas, *logs.shape[1:])

    @cached_property
    def node(self) -> Tensor:
        """[*replicas, nodes, states]: log-marginals ("sum"), or max-marginals whose best state is 0 ("max")."""
        return self._shaped(self._logs[0])

    @cached_property
    def edge(self) -> Tensor:
        """[*replicas, edges, states, states], like `node`."""
        return self._shaped(self._logs[1])

    @cached_property
    def triangle(self) -> Tensor:
        """[*replicas, triangles, states, states, states], like `node`."""
        return self._shaped(self._logs[2])

    @cached_property
    def log_partition(self) -> Tensor:
        """[*replicas, graphs]: by the Kikuchi free energy ("sum"); score of `decode()` ("max")."""
        if self.semiring == "max":
            return self.field.score(self.decode())
        field, regions = self.field, self.regions
        corner = field.triangles.corner[:, 0]
        total = regions.node.new_zeros(len(regions.node), field.num_graphs)
        parts = zip(
            self._logs,
            (regions.node, regions.edge, regions.triangle),
            (regions.node_counting, regions.edge_counting, torch.ones_like(corner)),
            (field.graph, field.graph[field.edge_index[0]], field.graph[corner]),
            strict=True,
        )
        for logs, potential, counting, graph in parts:
            gap = (potential - logs).masked_fill(logs == -torch.inf, 0.0)
            total = total.index_add(1, graph, counting * (logs.exp() * gap).flatten(2).sum(-1))
        return self._shaped(total)

    def decode(self) -> Tensor:
        """One joint labelling [*replicas, nodes] without forbidden states or combinations.

        An optimum where elimination solves the graph quickly. Elsewhere nodes take their best states, which are then
        improved by a fixed amount of search.

        Raises:
            InfeasibleError: no such labelling was found.
        """
        from accord.inference.search import decode_factors

        return decode_factors(self.field, self._logs[0]).reshape(*self.field.replicas, self.field.num_nodes)
