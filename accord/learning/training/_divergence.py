"""Replicas that diverge are found, stopped and returned to their best parameters; the others continue."""

import warnings
from collections.abc import Iterable, Mapping

import torch
from torch import Tensor, nn

from accord.errors import DivergenceWarning
from accord.learning.training._replicas import Replicas, learned, owner, spread


@torch.no_grad()
def finite_replicas(modules: Iterable[nn.Module], num_replicas: int) -> Tensor:
    """Replicas whose learned numbers are all finite [R], on the device of the modules."""
    all_finite: Tensor | None = None
    for module in modules:
        for name, value in learned(module).items():
            if all_finite is None:
                all_finite = torch.ones(num_replicas, dtype=torch.bool, device=value.device)
            if not value.is_floating_point() or not value.numel():
                continue
            mine = owner(value, name)
            # The extremes are NaN if any number is, and take one pass.
            low, high = torch.aminmax(value.flatten(1) if mine is None else value.flatten()[None], dim=1)
            finite = low.isfinite() & high.isfinite()
            if mine is None:
                all_finite &= finite
            else:
                all_finite[mine] &= finite[0]
    return torch.ones(num_replicas, dtype=torch.bool) if all_finite is None else all_finite


@torch.no_grad()
def halt_gradients(parameters: Iterable[nn.Parameter], halted: Tensor) -> None:
    """Set the gradients of these replicas [R] to zero."""
    for parameter in parameters:
        if parameter.grad is not None:
            parameter.grad.masked_fill_(spread(halted, parameter), 0.0)


@torch.no_grad()
def forget_momentum(optimiser: torch.optim.Optimizer, halted: Tensor) -> None:
    """Set an optimiser's running averages of these replicas [R] to zero, so that their parameters stay."""
    for parameter, state in optimiser.state.items():
        for value in state.values():
            if isinstance(value, Tensor) and value.shape == parameter.shape:
                value.masked_fill_(spread(halted, parameter), 0.0)


def warn_of_divergence(replicas: Replicas, diverged: Tensor, kept: Mapping[str, Tensor]) -> None:
    """Warn of replicas that diverged: which, when, and which parameters were kept.

    Args:
        replicas: seeds and tasks.
        diverged: [R], epoch in which divergence was found, -1 for none.
        kept: [R] for each part, epoch of the parameters that were kept.
    """
    lost = (diverged >= 0).nonzero().flatten().tolist()
    if not lost:
        return
    listed = []
    for replica in lost[:5]:
        seed, task = replicas.seed_and_task(replica)
        who = f"seed {seed}" + (f", task {task}" if replicas.num_tasks > 1 else "")
        best = ", ".join(f"{part} of epoch {int(epoch[replica])}" for part, epoch in kept.items())
        listed.append(f"{who} in epoch {int(diverged[replica])} (kept: {best})")
    more = f" and {len(lost) - 5} more" if len(lost) > 5 else ""
    warnings.warn(
        f"Training diverged, scores or weights were no longer finite: {'; '.join(listed)}{more}. The best parameters "
        "on validation data so far are used. Lower the learning rate, or set training.clip_norm.",
        DivergenceWarning,
        stacklevel=3,
    )
