"""What propagation returns: beliefs at nodes and edges, and how they were reached."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import torch
from torch import Tensor

from accord.errors import InfeasibleError
from accord.field import PairwiseField
from accord.inference import trees
from accord.inference._blocks import blocks
from accord.inference._extended import Extended
from accord.inference._options import DEFAULT_SWEEPS, DEFAULT_TOLERANCE
from accord.inference.decoding._decoding import decode
from accord.inference.kernels import Problem
from accord.inference.kernels.reference import cavities, collect_with_levels

UNSETTLED = 1e-3  # of `residual`: beliefs that change less differ too little to decode others


def check_feasible(node: Tensor) -> None:
    """Refuse nodes [..., nodes, states] that have no state left."""
    if not node.numel() or node.detach().amin().item() > -torch.inf:  # quicker than a mask, and mostly so
        return
    barred = (node == -torch.inf).all(-1)
    if bool(barred.any()):
        raise InfeasibleError(
            f"propagate: every state of node {int(barred.nonzero()[0, -1])} is forbidden. "
            "Relax its potentials, its clamped label or the forbidden pairs around it."
        )


@dataclass(frozen=True, eq=False)
class Beliefs:
    """Beliefs that follow from messages; those of edges and partition functions are computed when first used.

    Propagation may not converge on loopy graphs: check `converged`.
    """

    field: PairwiseField
    semiring: str
    messages: Tensor  # [*replicas, arcs, states]: normalised logs; arc e runs along edge e, arc edges + e against it
    converged: Tensor  # [*replicas, graphs]
    sweeps: Tensor  # [*replicas, graphs]
    residual: (
        Tensor  # [*replicas, graphs]: largest change of a log-message in the last sweep, relative like `tolerance`
    )
    backend: str  # which kernel passed the messages
    problem: Problem  # the field as the kernel saw it
    totals: Tensor | None = None  # [R, nodes, states]: `node` before it is normalised, if the kernel returns it

    def _unflatten(self, values: Tensor) -> Tensor:
        return values.reshape(*self.field.replicas, *values.shape[1:])

    @cached_property
    def _flat_messages(self) -> Tensor:
        return self.messages.reshape(self.field.replicas.numel(), *self.messages.shape[-2:])

    @cached_property
    def _collected(self) -> tuple[Extended, Tensor]:
        return collect_with_levels(self.problem, self._flat_messages)

    @cached_property
    def _node_totals(self) -> Tensor:
        """Node beliefs up to a constant for each node [R, nodes, states]."""
        return self._collected[0].join().to(self.messages.dtype)

    def _edge_blocks(self) -> Iterator[slice]:
        """Ranges of edges to work on; a single range if autograd records, since it would keep every block anyway."""
        if torch.is_grad_enabled() and (self.problem.wants_gradient or self.messages.requires_grad):
            return iter([slice(0, self.field.num_edges)])
        return blocks(self.field.num_edges, self.problem.edge[:, :1].numel())

    def _edge_totals(self, edges: slice) -> Tensor:
        """Beliefs of a range of edges, without the constants of both ends [R, edges, states, states]."""
        problem = self.problem
        near, far = cavities(problem, self._flat_messages, self._collected[0], edges).chunk(2, dim=-2)
        potentials = problem.edge[:, edges] / problem.appearance[:, edges, None, None]
        totals = potentials + near[..., :, None] + far[..., None, :]
        barred = totals.detach().flatten(-2).amax(-1) == -torch.inf
        if bool(barred.any()):
            source, target = self.field.edge_index[:, edges][:, int(barred.nonzero()[0, -1])].tolist()
            raise InfeasibleError(
                f"propagate: every pair of states of nodes {source} and {target} is forbidden. "
                "Relax their potentials, their clamped labels or the forbidden pairs between them."
            )
        return totals

    @cached_property
    def node(self) -> Tensor:
        """[*replicas, nodes, states]: log-marginals ("sum"), or max-marginals whose best state is 0 ("max")."""
        totals = self._node_totals if self.totals is None else self.totals
        check_feasible(totals)
        if self.semiring == "sum":
            return self._unflatten(totals.log_softmax(-1))
        return self._unflatten(totals - totals.amax(-1, keepdim=True))

    @cached_property
    def edge(self) -> Tensor:
        """[*replicas, edges, states, states]: the same for the pair of ends of each edge."""
        result = torch.empty_like(self.problem.edge, requires_grad=False)
        for edges in self._edge_blocks():
            totals = self._edge_totals(edges).flatten(-2)
            shifted = totals.log_softmax(-1) if self.semiring == "sum" else totals - totals.amax(-1, keepdim=True)
            result[:, edges] = shifted.unflatten(-1, result.shape[-2:])
        return self._unflatten(result)

    @property
    def _is_exact_on_forests(self) -> bool:
        """Whether messages are at the fixed point that is exact if the graphs have no loops, gradients included."""
        problem = self.problem
        return (
            self.backend == "native"
            and not problem.weighted
            and 0 < problem.tolerance <= DEFAULT_TOLERANCE[self.messages.dtype]
            and not any(given is not None and given.requires_grad for given in (problem.appearance, problem.start))
            and bool(self.converged.all())
        )

    @cached_property
    def log_partition(self) -> Tensor:
        """[*replicas, graphs]: Bethe (or tree-reweighted) log-partition ("sum"); score of `decode()` ("max").

        In terms of messages: sum_s log Z_s + sum_st rho_st (log Z_st - log Z_s - log Z_t), which is stationary in the
        messages at a fixed point, exact on forests, and with "spanning" appearance an upper bound once converged.
        """
        if self.semiring == "max":
            return self.field.score(self.decode())
        if self._is_exact_on_forests:
            exact = trees.log_partition(trees.Pairs.of(self.field, self.problem.node, self.problem.edge))
            if exact is not None:
                return self._unflatten(exact.to(self.messages.dtype))
        field, problem = self.field, self.problem
        node, levels = self._node_totals.logsumexp(-1), self._collected[1]
        # The levels count only here: in an edge's term they cancel, and there they would cost digits.
        total = torch.zeros(node.shape[0], field.num_graphs, dtype=levels.dtype, device=node.device)
        total = total.index_add(-1, field.graph, node + levels)
        for edges in self._edge_blocks():
            edge = self._edge_totals(edges).flatten(-2).logsumexp(-1)
            source, target = field.edge_index[:, edges]
            bethe = problem.appearance[:, edges] * (edge - node[..., source] - node[..., target])
            total = total.index_add(-1, problem.edge_graph[edges], bethe.to(levels.dtype))
        return self._unflatten(total.to(node.dtype))

    def decode(self) -> Tensor:
        """One joint labelling [*replicas, nodes], decoded from the beliefs (Eq. 13).

        Trees attached to the graph are labelled optimally given the rest, so forests are solved exactly, ties
        included. Nodes on loops take their best state, then single nodes change while that raises the joint score.
        Graphs with a tied node on a loop, and those that did not converge in 200 sweeps or more, are also searched for
        labels with a higher score, with an amount of work that depends on their size alone. Forbidden pairs are
        repaired. For the best state of each node on its own, use `beliefs.node.argmax(-1)`.

        Raises:
            InfeasibleError: there is no labelling without forbidden states or pairs, or none was found; `proved` tells
                which.
        """
        return self._labels

    @cached_property
    def _labels(self) -> Tensor:
        unsettled = None
        if not bool(self.converged.all()):
            # Fewer sweeps are a choice: labels are then those of the beliefs as far as they got.
            unsettled = ~self.converged & (self.residual > UNSETTLED) & (self.sweeps >= DEFAULT_SWEEPS)
        return decode(self.field, self.node.detach(), unsettled)
