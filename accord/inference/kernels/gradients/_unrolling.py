"""Gradients of a given number of sweeps: run again and unrolled, a stretch of sweeps at a time."""

import math
from collections.abc import Sequence

import torch
from torch import Tensor

from accord.inference.kernels._interface import Problem
from accord.inference.kernels.reference import arc_potentials, damp, first_messages, send

STRETCH = 16  # sweeps unrolled at a time, at least: shorter stretches save little, and all but the last run twice


def unrolled_gradient(problem: Problem, inputs: Sequence[Tensor], sweeps: Tensor, gradient: Tensor) -> list[Tensor]:
    """Gradients with respect to `inputs`, which are parts of the problem, through `sweeps` synchronous sweeps.

    Memory: the sweeps of one stretch, sqrt(sweeps) or 16, about 3 [R, arcs, states, states] tensors each, and the
    messages at the beginning of every stretch.

    Args:
        problem: what was solved.
        inputs: leaves of autograd among the problem's tensors.
        sweeps: how many each replica and graph was given [R, graphs].
        gradient: with respect to the messages [R, arcs, states]; 0 where it is not to be followed.
    """
    total = int(sweeps.max()) if sweeps.numel() else 0
    stretch = max(STRETCH, math.isqrt(total))
    firsts = range(0, total, stretch)
    with torch.no_grad():
        kept = [first_messages(problem)]
        for first in firsts[:-1]:
            kept.append(_run(problem, kept[-1], sweeps, first, first + stretch))
    sums = [torch.zeros_like(value) for value in inputs]
    for first in reversed(firsts):
        with torch.enable_grad():
            begin = kept.pop().requires_grad_()
            end = _run(problem, begin, sweeps, first, min(first + stretch, total))
        gradient, *parts = torch.autograd.grad(
            end, [begin, *inputs], gradient, allow_unused=True, materialize_grads=True
        )
        sums = _add(sums, parts)
    if problem.start is not None and problem.start.requires_grad:
        with torch.enable_grad():
            begin = first_messages(problem)
        sums = _add(sums, torch.autograd.grad(begin, inputs, gradient, allow_unused=True, materialize_grads=True))
    return sums


def _add(sums: Sequence[Tensor], parts: Sequence[Tensor]) -> list[Tensor]:
    return [so_far + part for so_far, part in zip(sums, parts, strict=True)]


def _run(problem: Problem, messages: Tensor, sweeps: Tensor, first: int, last: int) -> Tensor:
    """Sweeps `first` to `last` of the reference, graphs frozen after as many as each was given."""
    potentials = arc_potentials(problem)
    for sweep in range(first, last):
        new = damp(problem, messages, send(problem, potentials, messages))
        messages = torch.where((sweeps > sweep)[:, problem.arc_graph, None], new, messages)
    return messages
