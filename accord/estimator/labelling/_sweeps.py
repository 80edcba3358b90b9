"""What a model believes after each sweep of belief propagation."""

from collections.abc import Iterator
from dataclasses import dataclass

import torch
from torch import Tensor

from accord.errors import OptionError
from accord.field import PairwiseField
from accord.inference import Beliefs, trace
from accord.methods import FieldModel


@dataclass(frozen=True, eq=False)
class Sweep:
    """Probabilities after a number of sweeps; before the first, each node knows its own evidence alone."""

    number: int
    probabilities: Tensor  # [nodes, states], calibrated as `predict_proba` is
    message_change: Tensor  # [edges]: largest change of a probability in the messages along an edge, in this sweep
    residual: float | None  # largest relative change of a log-message; None before the first sweep
    converged: bool


def sweeps_of(model: FieldModel, field: PairwiseField, task: int, max_sweeps: int) -> Iterator[Sweep]:
    """The sweeps that lead to the marginals of one label task.

    Args:
        model: solves the field with settings of its own; the sweeps use the same.
        field: [tasks, ...], of one graph.
        task: which task to follow.
        max_sweeps: how many to show at most.
    """
    if isinstance(max_sweeps, bool) or not isinstance(max_sweeps, int) or max_sweeps < 1:
        raise OptionError(f"NodeClassifier.sweeps: max_sweeps is {max_sweeps!r}; give a whole number from 1 on.")
    solved = model.beliefs_of(field, "sum")
    assert isinstance(solved, Beliefs)  # the field has no triangles
    settings = solved.problem
    appearance = settings.appearance.expand(field.replicas.numel(), field.num_edges).reshape(*field.replicas, -1)
    before: Beliefs | None = None
    for number, beliefs in enumerate(trace(field, "sum", settings.damping, appearance, max_sweeps)):
        yield Sweep(
            number,
            model.calibrated(beliefs)[task].cpu(),
            _change(before, beliefs, task),
            None if before is None else float(beliefs.residual[task].max()),
            before is not None and bool(beliefs.converged[task].all()),
        )
        before = beliefs


def _change(before: Beliefs | None, now: Beliefs, task: int) -> Tensor:
    """Largest change of a probability in the messages of both directions [edges]."""
    if before is None:
        return torch.zeros(now.field.num_edges)
    change = (now.messages[task].exp() - before.messages[task].exp()).abs().amax(-1)
    return change.reshape(2, -1).amax(0).cpu()
