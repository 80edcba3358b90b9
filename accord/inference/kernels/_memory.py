"""How much memory a call needs: logged before it starts, and refused if it is not available."""

import logging
from collections.abc import Callable

import torch

from accord._memory import available_memory
from accord.errors import TooLargeError
from accord.inference._blocks import NUMBERS_PER_BLOCK
from accord.inference.kernels import cpu, reference, triton
from accord.inference.kernels._interface import Problem
from accord.inference.kernels.cpu import _ordered as ordered

log = logging.getLogger("accord.inference")

LARGE_BYTES = 2**28  # a call that needs less is neither logged nor checked
NEEDED: dict[str, Callable[[Problem], int]] = {
    "native": cpu.needed_bytes,
    "reference": reference.needed_bytes,
    "triton": triton.needed_bytes,
}


def needed_bytes(backend: str, problem: Problem) -> int:
    """Peak memory of `propagate` on top of the field: that of the kernel, or of node beliefs made from its messages.

    Gradients are not included: see docs/adr/0006-gradients-and-schedules.md.
    """
    each = problem.node.element_size()
    messages = problem.node[:, :1].numel() * 2 * problem.arcs.num_edges * each
    # Finite parts, infinities, totals, beliefs and a mask, and a few blocks of messages.
    collecting = 5 * problem.node.numel() * each + 3 * NUMBERS_PER_BLOCK * each
    graphs = 8 * problem.arcs.num_edges if problem.num_graphs > 1 else 0
    graphs += problem.num_graphs * (16 + len(problem.node) * (each + 9))  # offsets; residual, sweeps, converged
    needed = ordered.needed_bytes if backend == "native" and problem.schedule != "synchronous" else NEEDED[backend]
    return graphs + max(needed(problem), messages + collecting)


def check_memory(backend: str, problem: Problem) -> bool:
    """Log how much memory a large call needs, and refuse it if that is more than is available. Is the call large?"""
    needed = needed_bytes(backend, problem)
    if needed < LARGE_BYTES:
        return False
    device = problem.node.device
    available = available_memory(device)
    left = "an unknown amount" if available is None else f"{available / 1e9:.2f} GB"
    what = f"{problem.arcs.num_edges} edges with {problem.node.shape[-1]} states"
    if len(problem.node) > 1:
        what += f" in {len(problem.node)} replicas"
    takes = f"propagate: {what} take {needed / 1e9:.2f} GB on top of the field with backend {backend!r}"
    log.info("%s; %s is available on %s.", takes, left, device)
    if available is not None and needed > available:
        raise TooLargeError(f"{takes}, but {left} is available on {device}. {_remedy(backend, problem)}")
    return True


def _remedy(backend: str, problem: Problem) -> str:
    """Ways to need less memory, as a sentence."""
    ways = ["free memory"]
    if len(problem.node) > 1:
        ways.append("solve fewer replicas at a time")
    if problem.num_graphs > 1:
        ways.append("solve fewer graphs at a time")
    if problem.node.dtype == torch.float64:
        ways.append("use float32: field.to(torch.float32)")
    if problem.node.is_cuda:
        ways.append("move the field to the CPU: field.to('cpu')")
    if backend == "reference" and problem.schedule == "synchronous":
        ways.append("use backend 'auto', whose kernels need several times less")
    elif problem.schedule != "synchronous":
        ways.append("use schedule 'synchronous', whose kernels need several times less")
    listed = ways[0] if len(ways) == 1 else f"{', '.join(ways[:-1])}, or {ways[-1]}"
    return f"{listed[0].upper()}{listed[1:]}."
