"""Gradients and losses added up over processes, in one message."""

from collections.abc import Mapping, Sequence

import torch
from torch import Tensor, nn

from accord.learning.training.processes._group import Processes


@torch.no_grad()
def add_up(
    parameters: Sequence[nn.Parameter], losses: Mapping[str, Tensor], processes: Processes, idle: bool
) -> dict[str, Tensor]:
    """Replace gradients by their sums over all processes, and return the sums of the losses.

    A parameter without a gradient here may have one elsewhere: its own share of it is zero. Parameters that have none
    anywhere still have none afterwards.

    Args:
        parameters: the same in every process.
        losses: [R] each, the same names in every process.
        processes: that share a batch.
        idle: whether this process has no share of the batch, so that what it computed does not count.
    """
    pieces = [_own_gradient(parameter, idle) for parameter in parameters]
    numbers = [loss.detach().new_zeros(loss.shape) if idle else loss.detach() for loss in losses.values()]
    given = [float(parameter.grad is not None) for parameter in parameters]
    kind = torch.float32
    for piece in (*pieces, *numbers):
        kind = torch.promote_types(kind, piece.dtype)
    device = pieces[0].device
    flat = [piece.flatten().to(kind) for piece in (*pieces, *numbers)]
    total = processes.sum(torch.cat([*flat, torch.tensor(given, dtype=kind, device=device)]))
    found = total.split([piece.numel() for piece in (*pieces, *numbers)] + [len(given)])
    anywhere = (found[-1] > 0).tolist()
    for parameter, gradient, present in zip(parameters, found, anywhere, strict=False):
        parameter.grad = gradient.view_as(parameter).to(parameter.dtype, copy=True) if present else None
    after = found[len(pieces) : -1]
    return {name: own.view_as(loss).to(loss.dtype) for (name, loss), own in zip(losses.items(), after, strict=True)}


def _own_gradient(parameter: nn.Parameter, idle: bool) -> Tensor:
    return torch.zeros_like(parameter) if idle or parameter.grad is None else parameter.grad
