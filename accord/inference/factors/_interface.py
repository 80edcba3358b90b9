"""Input and output of every kernel that passes messages between factors and variables."""

from collections.abc import Callable
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from accord.field.factors import FlatField


@dataclass(frozen=True, eq=False)
class FactorProblem:
    """A field as plain arrays, and the options of a run.

    Factors are numbered as in the flat field: those with tables first, then those of its rules, block by block.
    """

    flat: FlatField
    appearance: Tensor | None  # [R or 1, factors]: weight of each factor; None: 1 everywhere
    semiring: str
    damping: float
    max_sweeps: int
    tolerance: float  # of the largest change of a log-message, relative to max(1, its largest magnitude)
    start: Tensor | None  # [R, M]: messages to continue from
    schedule: str = "synchronous"  # the order in which messages are sent

    @property
    def inputs(self) -> list[Tensor]:
        """All tensors that may need a gradient."""
        given = [self.flat.unary, self.flat.tables, *(rule.final for rule in self.flat.rules)]
        return [*given, *(value for value in (self.appearance, self.start) if value is not None)]

    @property
    def wants_gradient(self) -> bool:
        """Whether autograd should record what is computed from this problem."""
        return torch.is_grad_enabled() and any(value.requires_grad for value in self.inputs)

    def with_inputs(self, inputs: list[Tensor]) -> "FactorProblem":
        """The same problem with other tensors in place of `inputs`."""
        unary, tables, *others = inputs
        count = len(self.flat.rules)
        rules = tuple(replace(rule, final=final) for rule, final in zip(self.flat.rules, others, strict=False))
        rest = iter(others[count:])
        appearance = None if self.appearance is None else next(rest)
        start = None if self.start is None else next(rest)
        flat = replace(self.flat, unary=unary, tables=tables, rules=rules)
        return replace(self, flat=flat, appearance=appearance, start=start)


@dataclass(frozen=True, eq=False)
class FactorSolution:
    """Messages from factors to variables, and how they were reached, for each replica and graph.

    There is a message for each variable of each factor, as long as the variable has states: those of factors with
    tables in the order of `flat.scope`, then those of rules, block by block, by factor and then by variable.
    """

    messages: Tensor  # [R, M]: normalised logs
    residual: Tensor  # [R, graphs]: largest change of a log-message in the last sweep, relative as in `tolerance`
    sweeps: Tensor  # [R, graphs]: sweeps until the graph was frozen, or all of them
    totals: Tensor | None = None  # [R, states of all variables]: beliefs up to a constant for each variable


FactorKernel = Callable[[FactorProblem], FactorSolution]
