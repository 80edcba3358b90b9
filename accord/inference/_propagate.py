"""`propagate`: loopy belief propagation on a field."""

from typing import Any, Literal, overload

from torch import Tensor

from accord._eager import eager
from accord.errors import InputTypeError
from accord.field import PairwiseField
from accord.field.factors import FactorField
from accord.inference._beliefs import Beliefs
from accord.inference._options import Schedule, Semiring
from accord.inference._prepared import Propagation
from accord.inference.factors._beliefs import FactorBeliefs


@overload
def propagate(
    field: PairwiseField,
    semiring: Semiring = ...,
    damping: float = ...,
    edge_appearance: float | Tensor | Literal["spanning"] = ...,
    max_sweeps: int | None = ...,
    tolerance: float | None = ...,
    backend: str = ...,
    start: Beliefs | Tensor | None = ...,
    schedule: Schedule = ...,
) -> Beliefs: ...


@overload
def propagate(
    field: FactorField,
    semiring: Semiring = ...,
    damping: float = ...,
    edge_appearance: float | Tensor | Literal["spanning"] = ...,
    max_sweeps: int | None = ...,
    tolerance: float | None = ...,
    backend: str = ...,
    start: FactorBeliefs | Tensor | None = ...,
    schedule: Schedule = ...,
) -> FactorBeliefs: ...


@eager
def propagate(
    field: PairwiseField | FactorField,
    semiring: Semiring = "sum",
    damping: float = 0.0,
    edge_appearance: float | Tensor | Literal["spanning"] = 1.0,
    max_sweeps: int | None = None,
    tolerance: float | None = None,
    backend: str = "auto",
    start: Beliefs | FactorBeliefs | Tensor | None = None,
    schedule: Schedule = "synchronous",
) -> Beliefs | FactorBeliefs:
    """Pass messages along every arc until they converge (Eq. 12 of the paper; Murphy, Weiss and Jordan 1999).

    Exact on forests. On loopy graphs it is an approximation and may not converge: see `converged`. Graphs and replicas
    that have converged are frozen, so a batch gives the same results as its graphs one by one.

    Args:
        field: the field to solve.
        semiring: "sum" for marginals, "max" for the best labelling.
        damping: message <- damping * old + (1 - damping) * new, on normalised log-messages.
        edge_appearance: tree-reweighted propagation (Wainwright et al. 2005): a number in (0, 1], a tensor
            [edges] or [*replicas, edges] of such numbers, or "spanning": the edge probabilities of the uniform spanning
            tree, with which the converged log-partition is an upper bound. 1 is plain propagation.
        max_sweeps: when to stop; by default 200, and on forests as many as the exact answer needs without damping.
        tolerance: a graph has converged when no log-message changes by more, relative to max(1, its largest finite
            magnitude); `residual` is that change. 0 runs all `max_sweeps`. By default 1e-5 in float32 and 1e-12 in
            float64.
        backend: "reference" (plain torch, any device), "native" (a CPU kernel, compiled at first use; needs a C++
            compiler), "triton" (fused GPU kernels, compiled at first use), or "auto", the fastest of them that can
            solve the problem. `beliefs.backend` names the one that was used.
        start: beliefs of an earlier run on the same graphs, or their messages, to continue from.
        schedule: "synchronous" (all messages at once), "sequential" (from the rim of each graph to its centre and back,
            each message computed from the newest others) or "residual" (largest pending change first). The last two
            need several times fewer sweeps and converge more often. They are compiled on CPUs; GPUs use the reference.
            A sweep is as many messages as there are arcs; with "residual", `residual` bounds the pending change of any
            message.

    Gradients reach the field, `edge_appearance` and `start`. Where a graph converged (and tolerance is not 0) they are
    those of the fixed point, in the memory of one sweep; elsewhere they are those of the sweeps that were run, in the
    memory of about sqrt(sweeps) sweeps. Only first derivatives are available. backend="reference" instead unrolls every
    sweep in autograd.
    """
    if isinstance(field, PairwiseField) and isinstance(start, FactorBeliefs):
        raise InputTypeError("propagate: start holds beliefs of a field with factors. Give those of a PairwiseField.")
    if isinstance(field, PairwiseField) and field.structure.solver is not None:
        beliefs: Beliefs = field.structure.solver(
            field,
            semiring=semiring,
            damping=damping,
            edge_appearance=edge_appearance,
            max_sweeps=max_sweeps,
            tolerance=tolerance,
        )
        return beliefs
    prepare: Any = Propagation
    solver = prepare(field, semiring, damping, edge_appearance, max_sweeps, tolerance, backend, schedule)
    solved: Beliefs | FactorBeliefs = solver(start=start)
    return solved
