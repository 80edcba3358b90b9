"""Runs that leave the road: found, stopped, and sent back to their best parameters; companions go on."""

import warnings
from collections.abc import Iterable, Mapping

import torch
from torch import Tensor, nn

from accord.errors import DivergenceWarning
from accord.learning._replicas import Replicas, learned, owner, spread


def finite_replicas(modules: Iterable[nn.Module], num_replicas: int) -> Tensor:
    """Replicas whose every learned number is finite [R], on the CPU."""
    sound = torch.ones(num_replicas, dtype=torch.bool)
    for module in modules:
        for name, value in learned(module).items():
            if not value.is_floating_point():
                continue
            mine = owner(value, name)
            if mine is None:
                sound &= value.isfinite().flatten(1).all(1).cpu()
            else:
                sound[mine] &= bool(value.isfinite().all())
    return sound


@torch.no_grad()
def halt_gradients(parameters: Iterable[nn.Parameter], halted: Tensor) -> None:
    """Nothing is learned any more by these replicas [R]."""
    for parameter in parameters:
        if parameter.grad is not None:
            parameter.grad.masked_fill_(spread(halted, parameter), 0.0)


@torch.no_grad()
def forget_momentum(optimiser: torch.optim.Optimizer, halted: Tensor) -> None:
    """Empty an optimiser's running averages of these replicas [R], so that it moves them no further."""
    for parameter, state in optimiser.state.items():
        for value in state.values():
            if isinstance(value, Tensor) and value.shape == parameter.shape:
                value.masked_fill_(spread(halted, parameter), 0.0)


def warn_of_divergence(replicas: Replicas, diverged: Tensor, kept: Mapping[str, Tensor]) -> None:
    """Say which replicas diverged, when, and what was kept instead.

    Args:
        replicas: seeds and tasks.
        diverged: [R], epoch in which it was noticed, -1 for none.
        kept: [R] for each part, epoch of the parameters that were kept.
    """
    lost = (diverged >= 0).nonzero().flatten().tolist()
    if not lost:
        return
    said = []
    for replica in lost[:5]:
        seed, task = replicas.seeds[replica // replicas.num_tasks], replica % replicas.num_tasks
        who = f"seed {seed}" + (f", task {task}" if replicas.num_tasks > 1 else "")
        best = ", ".join(f"{part} of epoch {int(epoch[replica])}" for part, epoch in kept.items())
        said.append(f"{who} in epoch {int(diverged[replica])} (kept: {best})")
    more = f" and {len(lost) - 5} more" if len(lost) > 5 else ""
    warnings.warn(
        f"Training diverged, scores or weights were no longer finite: {'; '.join(said)}{more}. The best parameters on "
        "validation data so far are used. Lower the learning rate, or set training.clip_norm.",
        DivergenceWarning,
        stacklevel=3,
    )
