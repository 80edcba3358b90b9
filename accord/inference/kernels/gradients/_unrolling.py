"""Gradients of a given number of sweeps, which are repeated and unrolled a segment at a time."""

import math
from collections.abc import Sequence

import torch
from torch import Tensor

from accord.inference.kernels._interface import Problem
from accord.inference.kernels.reference import arc_potentials, damp, first_messages, send

SEGMENT = 16  # least number of sweeps unrolled at a time: shorter segments save little memory


def unrolled_gradient(problem: Problem, inputs: Sequence[Tensor], sweeps: Tensor, gradient: Tensor) -> list[Tensor]:
    """Gradients with respect to `inputs`, which are tensors of the problem, through `sweeps` synchronous sweeps.

    Takes the memory of one segment, sqrt(sweeps) or 16 sweeps of about 3 [R, arcs, states, states] tensors each, and of
    the messages at the beginning of every segment.

    Args:
        problem: the problem that was solved.
        inputs: autograd leaves among the problem's tensors.
        sweeps: how many sweeps each replica and graph ran [R, graphs].
        gradient: the gradient with respect to the messages [R, arcs, states]; 0 where it should be ignored.
    """
    total = int(sweeps.max()) if sweeps.numel() else 0
    segment = max(SEGMENT, math.isqrt(total))
    firsts = range(0, total, segment)
    with torch.no_grad():
        kept = [first_messages(problem)]
        for first in firsts[:-1]:
            kept.append(_run(problem, kept[-1], sweeps, first, first + segment))
    sums = [torch.zeros_like(value) for value in inputs]
    for first in reversed(firsts):
        with torch.enable_grad():
            begin = kept.pop().requires_grad_()
            end = _run(problem, begin, sweeps, first, min(first + segment, total))
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
    """Sweeps `first` to `last` of the reference; each graph is frozen after its number of sweeps."""
    potentials = arc_potentials(problem)
    for sweep in range(first, last):
        new = damp(problem, messages, send(problem, potentials, messages))
        messages = torch.where((sweeps > sweep)[:, problem.arc_graph, None], new, messages)
    return messages
