"""What propagation on a field with factors returns."""

from dataclasses import dataclass
from functools import cached_property

import torch
from torch import Tensor

from accord.field.factors import FactorField, RaggedField, TableBlock, TableFactors
from accord.inference import trees
from accord.inference._beliefs import check_feasible
from accord.inference._extended import Extended
from accord.inference._options import DEFAULT_TOLERANCE
from accord.inference.factors._interface import FactorProblem
from accord.inference.factors._layout import Layout
from accord.inference.factors._reference import collect, factor_beliefs, factor_partition, weights


@dataclass(frozen=True, eq=False)
class FactorBeliefs:
    """Beliefs of variables and factors that follow from messages; those of factors are computed when first used.

    Propagation may not converge on loopy graphs: check `converged`.
    """

    field: FactorField
    semiring: str
    messages: Tensor  # [*replicas, M]: normalised logs, from factors to variables
    converged: Tensor  # [*replicas, graphs]
    sweeps: Tensor  # [*replicas, graphs]
    residual: Tensor  # [*replicas, graphs]: largest change of a log-message in the last sweep
    backend: str  # which kernel passed the messages
    problem: FactorProblem  # the field as the kernel saw it
    totals: Tensor | None = None  # [R, states of all variables]: `node` up to a constant for each variable, if known

    @cached_property
    def _layout(self) -> Layout:
        return Layout.of(self.problem.flat)

    @cached_property
    def _flat_messages(self) -> Tensor:
        return self.messages.reshape(self.field.replicas.numel(), -1)

    @cached_property
    def _collected(self) -> tuple[Extended, Tensor]:
        return collect(self.problem, self._layout, self._flat_messages)

    def _unflatten(self, values: Tensor) -> Tensor:
        return values.reshape(*self.field.replicas, *values.shape[1:])

    def _shifted(self, totals: Tensor) -> Tensor:
        """Log-marginals from beliefs [..., labellings] up to a constant, or max-marginals whose best is 0."""
        return totals.log_softmax(-1) if self.semiring == "sum" else totals - totals.amax(-1, keepdim=True)

    @cached_property
    def node(self) -> Tensor:
        """[*replicas, nodes, states]: log-marginals ("sum"), or max-marginals whose best state is 0 ("max").

        -inf beyond a variable's own states.
        """
        totals = self.totals
        if totals is None:
            totals = self._collected[0].join().to(self.messages.dtype)
        padded = self.problem.flat.padded(totals, self.field.num_states)
        check_feasible(padded)
        return self._unflatten(self._shifted(padded))

    @cached_property
    def factors(self) -> tuple[Tensor | None, ...]:
        """For each group [*replicas, factors, states, ..., states], like `node`; None for rules."""
        count = len(self._flat_messages)
        found: list[Tensor | None] = [
            self._flat_messages.new_full((count, group.num_factors, *group.shape), -torch.inf)
            if isinstance(group, TableFactors)
            else None
            for group in self.field.groups
        ]
        for alike in self._layout.alike:
            if isinstance(alike.block, TableBlock):
                total = factor_beliefs(self.problem, alike, self._flat_messages, self._collected[0])
                belief = self._shifted(total.flatten(2)).reshape(total.shape)
                group = found[alike.block.group]
                assert group is not None
                place: tuple[slice | Tensor, ...] = (slice(None), alike.block.factors, *map(slice, alike.shape))
                group[place] = belief
        return tuple(None if group is None else self._unflatten(group) for group in found)

    @property
    def edge(self) -> list[Tensor]:
        """Of a field made by `PairwiseField.ragged`: for each edge [*replicas, source states, target states]."""
        if not isinstance(self.field, RaggedField):
            raise AttributeError("these beliefs are of a field with factors; their tables are in `factors`")
        return self.field.by_edge([group for group in self.factors if group is not None])

    @property
    def _is_exact_on_forests(self) -> bool:
        """Whether messages are at the fixed point that is exact if factors are edges without loops."""
        problem = self.problem
        return (
            self.backend == "native"
            and problem.appearance is None
            and 0 < problem.tolerance <= DEFAULT_TOLERANCE[self.messages.dtype]
            and not (problem.start is not None and problem.start.requires_grad)
            and bool(self.converged.all())
        )

    @cached_property
    def log_partition(self) -> Tensor:
        """[*replicas, graphs]: Bethe (or reweighted) log-partition ("sum"); score of `decode()` ("max").

        sum_v log Z_v + sum_f rho_f (log Z_f - sum over variables v of f of log Z_v): exact on trees of factors.
        """
        if self.semiring == "max":
            return self.field.score(self.decode())
        if self._is_exact_on_forests:
            pairs = trees.Pairs.of_flat(self.problem.flat)
            exact = None if pairs is None else trees.log_partition(pairs)
            if exact is not None:
                return self._unflatten(exact.to(self.messages.dtype))
        flat, (totals, levels) = self.problem.flat, self._collected
        node = _log_sums(totals.join(), self._layout.variable_of_state, flat.num_nodes)
        result = torch.zeros(len(node), flat.num_graphs, dtype=node.dtype, device=node.device)
        result = result.index_add(-1, flat.graph, node + levels)
        for alike in self._layout.alike:
            inside = factor_partition(self.problem, alike, self._flat_messages, totals).to(node.dtype)
            bethe = inside - node[:, alike.scope].sum(-1)
            weight = weights(self.problem, alike)
            bethe = bethe if weight is None else weight * bethe
            result = result.index_add(-1, flat.graph[alike.scope[:, 0]], bethe)
        return self._unflatten(result.to(self.messages.dtype))

    def decode(self) -> Tensor:
        """One joint labelling [*replicas, nodes] without forbidden states or combinations.

        An optimum where factors form trees or few loops. Elsewhere variables take their best states, which are then
        improved by a fixed amount of search.

        Raises:
            InfeasibleError: no such labelling was found.
        """
        return self._labels

    @cached_property
    def _labels(self) -> Tensor:
        from accord.inference.search import decode_factors

        node = self.node.detach().reshape(len(self._flat_messages), self.field.num_nodes, self.field.num_states)
        flat = self.problem.flat
        pairs = trees.Pairs.of_flat(flat)
        labels = None if pairs is None else trees.best_labels(pairs, flat.cut(node))
        if labels is None:
            labels = decode_factors(self.field, node)
        return labels.reshape(*self.field.replicas, self.field.num_nodes)


def _log_sums(values: Tensor, variable: Tensor, count: int) -> Tensor:
    """Log-sum of the states of each variable [R, nodes]; the best state of each is near 0."""
    index = variable.expand_as(values)
    return (
        torch.zeros(len(values), count, dtype=values.dtype, device=values.device)
        .scatter_add(-1, index, values.exp())
        .log()
    )
