"""Exact beliefs of chains: by the compiled kernel on CPUs, elsewhere by the plain recursions."""

from collections.abc import Hashable
from dataclasses import dataclass
from functools import cached_property

import torch
from torch import Tensor

from accord._eager import eager
from accord.errors import FieldError, InfeasibleError, InputTypeError
from accord.field import ChainField
from accord.inference._direct import Direct
from accord.inference._options import Semiring
from accord.inference._semiring import REDUCE
from accord.inference.chains import _native, _partition, _reference
from accord.inference.chains._native import ForwardPass
from accord.inference.chains._problem import ChainProblem, as_problem


@dataclass(frozen=True, eq=False)
class ChainBeliefs(Direct):
    """Beliefs of chains without approximation; those of positions and steps are computed when first used."""

    field: ChainField
    semiring: str
    log_partition: Tensor  # [*replicas, chains]: log Z ("sum"), score of the optimum ("max")
    problem: ChainProblem  # the field as the solver saw it
    forward: ForwardPass | None  # messages of the compiled kernel; None if it was not used
    version: Hashable  # of the field when it was solved

    @property
    def backend(self) -> str:
        """What passed the messages: "native" or "reference"."""
        return "reference" if self.forward is None else "native"

    @cached_property
    def node(self) -> Tensor:
        """[*replicas, chains, length, states]: log-marginals ("sum"), or max-marginals whose best state is 0 ("max").

        -inf beyond the end of a chain. Where the field requires a gradient, autograd records the plain recursions.
        """
        self._check_unchanged()
        if self.forward is None or self.problem.wants_gradient:
            return self._shaped(_reference.beliefs(self.problem, self.semiring))
        return self._shaped(self.forward.beliefs())

    @cached_property
    def edge(self) -> Tensor:
        """[*replicas, chains, length - 1, states, states]: the same for neighbouring positions."""
        self._check_unchanged()
        if self.forward is None or self.problem.wants_gradient:
            return self._shaped(_reference.edge_beliefs(self.problem, self.semiring))
        return self._shaped(_reference.join(self.problem, *self.forward.messages(), self.semiring))

    def decode(self) -> Tensor:
        """A labelling [*replicas, chains, length] with the highest score of each chain; -1 beyond its end."""
        return self._labels

    @cached_property
    def _labels(self) -> Tensor:
        self._check_unchanged()
        return self._shaped(_best_labels(self.problem, self.forward if self.semiring == "max" else None))

    def _check_unchanged(self) -> None:
        """Messages of the old potentials and the new potentials together would give wrong beliefs."""
        if self.field.version != self.version:
            raise FieldError(
                "eliminate_beliefs: the field's tensors were changed after it was solved, before these beliefs were "
                "asked for. Ask for them before the change, or solve the field again."
            )

    def _shaped(self, values: Tensor) -> Tensor:
        values = values.reshape(*self.field.replicas, *values.shape[1:])
        return values.to(self.field.node.dtype) if values.is_floating_point() else values


@eager
def solve_chains(
    field: ChainField, semiring: Semiring, where: str = "eliminate_beliefs", native: bool = True
) -> ChainBeliefs:
    """Exact beliefs of a chain field; `native=False` leaves the compiled kernel out."""
    if not isinstance(field, ChainField):
        raise InputTypeError(f"{where}: got a {type(field).__name__}, not a ChainField. Build one first.")
    field.check_changes(where)
    problem = as_problem(field)
    forward = None
    if native and _native.fits(problem):
        forward = _native.run_forward(problem, semiring == "max")
        total = forward.log_partition
    else:
        total = _reference.log_partition(_reference.messages_behind(problem, REDUCE[semiring]), REDUCE[semiring])
    check_feasible(field, total.detach(), where)
    if forward is not None and problem.wants_gradient:
        if semiring == "sum":
            total = _partition.log_partition(problem, forward)
        else:
            labels = forward.labels().reshape(*field.replicas, field.num_chains, field.length)
            total = field.score(labels)
    total = total.to(field.node.dtype).reshape(*field.replicas, field.num_chains)
    return ChainBeliefs(field, semiring, total, problem, forward, field.version)


def check_feasible(field: ChainField, total: Tensor, where: str) -> None:
    """Refuse chains [R, chains] whose best score or log Z is -inf."""
    barred = total == -torch.inf
    if bool(barred.any()):
        replica, chain = barred.nonzero()[0].tolist()
        which = f"chain {chain}" + (f" of replica {replica}" if field.replicas else "")
        raise InfeasibleError(
            f"{where}: {which} has no labelling without forbidden states or pairs. "
            "Relax a clamped label, a forbidden state or a forbidden pair there."
        )


def _best_labels(problem: ChainProblem, forward: ForwardPass | None) -> Tensor:
    with torch.no_grad():
        if not _native.fits(problem):
            return _reference.best_labels(problem)
        return (forward or _native.run_forward(problem, best=True)).labels()
