"""Synchronous belief propagation (Eq. 12) in plain torch, in log space, differentiable by unrolling.

Every other kernel is tested against this one, and this one against enumeration.
"""

import torch
from torch import Tensor

from accord.errors import InfeasibleError
from accord.field._field import sum_dtype
from accord.inference._blocks import blocks
from accord.inference._extended import Extended, has_infinity
from accord.inference._semiring import REDUCE
from accord.inference.kernels._interface import Problem, Solution

ALL = slice(None)


def normalise(messages: Tensor, semiring: str) -> Tensor:
    """Log-messages that sum to one ("sum"), or whose best state is 0 ("max")."""
    return messages - REDUCE[semiring](messages, dim=-1, keepdim=True)


def arc_potentials(problem: Problem) -> Tensor:
    """Tables of both directions [R, arcs, source states, target states], divided by the appearance probability."""
    table = problem.edge / problem.appearance[..., None, None]
    return torch.cat([table, table.transpose(-1, -2)], dim=-3)


def collect(problem: Problem, messages: Tensor) -> Extended:
    """Node beliefs, shifted so that the best state is 0: each node's potential plus all messages to it.

    In float64: a node may have a million neighbours, and a cavity is a difference of two such sums.
    """
    return collect_with_levels(problem, messages)[0]


def collect_with_levels(problem: Problem, messages: Tensor) -> tuple[Extended, Tensor]:
    """The same, and the shift of each node [R, nodes]."""
    return _collect(problem, messages).shifted()


def _collect(problem: Problem, messages: Tensor) -> Extended:
    wide = sum_dtype(problem.node.device)
    if problem.wants_gradient or (torch.is_grad_enabled() and messages.requires_grad):
        weight = problem.appearance.repeat(1, 2)[..., None]
        received = Extended.split(messages.to(wide))
        return Extended.split(problem.node.to(wide)).scatter_add(problem.arcs.target, received, weight)
    totals = Extended.split(problem.node.detach().to(wide))
    source, target = problem.arcs.edge_index
    along, against = messages.detach().chunk(2, dim=-2)
    barred = has_infinity(messages)
    for incoming, ends in ((along, target), (against, source)):
        for block in blocks(len(ends), messages[:, :1].numel()):
            totals.scatter_add_(ends[block], incoming[:, block], barred, problem.appearance[:, block, None])
    return totals


def cavities(problem: Problem, messages: Tensor, totals: Extended, edges: slice = ALL) -> Tensor:
    """Cavities: the belief of each arc's source without the target's own message [R, arcs, states].

    Without the subtraction, the target's evidence would return to it. The arcs are those along a range of edges, then
    those against them. With tree-reweighting, the target's message enters the total with weight rho and is removed with
    weight 1 (exponent rho - 1, Wainwright et al. 2005), so the subtraction is the same.
    """
    along, against = messages.chunk(2, dim=-2)
    source, target = problem.arcs.edge_index[:, edges]
    reverse = Extended.split(torch.cat([against[:, edges], along[:, edges]], dim=-2))
    return (totals.rows(torch.cat([source, target])) - reverse).join().to(messages.dtype)


def send(problem: Problem, potentials: Tensor, messages: Tensor) -> Tensor:
    """One synchronous sweep: the new message of every arc (Eq. 12)."""
    return new_messages(problem, potentials, cavities(problem, messages, collect(problem, messages)))


def new_messages(problem: Problem, potentials: Tensor, cavity: Tensor, arcs: Tensor | None = None) -> Tensor:
    """Messages of all arcs, or of `arcs` only, from their tables and cavities."""
    messages = REDUCE[problem.semiring](potentials + cavity[..., :, None], dim=-2)
    barred = (messages == -torch.inf).all(-1)
    if bool(barred.any()):
        row = int(barred.nonzero()[0, -1])
        arc = row if arcs is None else int(arcs[row])
        raise InfeasibleError(
            f"propagate: no state is left for node {problem.arcs.target_of(arc)} in graph "
            f"{int(problem.arc_graph[arc])}: clamped labels and forbidden states or pairs contradict each other. "
            "Relax one of them."
        )
    return normalise(messages, problem.semiring)


def damp(problem: Problem, old: Tensor, new: Tensor) -> Tensor:
    """Mix old and new messages by the problem's damping."""
    if not problem.damping:
        return new
    return normalise(problem.damping * old + (1 - problem.damping) * new, problem.semiring)


def magnitude(messages: Tensor) -> Tensor:
    """What changes of each message are relative to [...]: its largest finite magnitude, but at least 1."""
    return messages.masked_fill(messages == -torch.inf, 0.0).abs().amax(-1).clamp(min=1.0)


def change(problem: Problem, old: Tensor, new: Tensor, relative: bool = False) -> Tensor:
    """Largest change of a log-message, for each replica and graph [R, graphs]; absolute, or relative to `magnitude`."""
    step = Extended.split(new) - Extended.split(old)
    moved = step.finite.abs().masked_fill(step.infinities != 0, torch.inf).amax(-1)
    if relative:
        moved = moved / magnitude(new)
    index = problem.arc_graph.expand_as(moved)
    still = moved.new_zeros(moved.shape[0], problem.num_graphs)
    return still.scatter_reduce(-1, index, moved, reduce="amax")


def first_messages(problem: Problem) -> Tensor:
    """Messages to start from: those given, or uniform ones."""
    messages = problem.start
    if messages is None:
        messages = problem.node.new_zeros(problem.node.shape[0], len(problem.arc_graph), problem.node.shape[-1])
    return normalise(messages, problem.semiring)


def first_state(problem: Problem) -> tuple[Tensor, Tensor, Tensor]:
    """Which graphs run, their residuals and their sweeps, each [R, graphs]; a graph without edges does not run."""
    has_arcs = torch.bincount(problem.arc_graph, minlength=problem.num_graphs) > 0
    running = has_arcs.expand(problem.node.shape[0], -1)
    residual = torch.where(running, torch.inf, 0.0).to(problem.node)
    return running, residual, torch.zeros_like(residual, dtype=torch.long)


def solve(problem: Problem) -> Solution:
    """Sweep until all graphs of all replicas have converged; each is then frozen, so that a batch equals its parts."""
    messages, potentials = first_messages(problem), arc_potentials(problem)
    running, residual, sweeps = first_state(problem)
    for _ in range(problem.max_sweeps):
        new = damp(problem, messages, send(problem, potentials, messages))
        residual = torch.where(running, change(problem, messages.detach(), new.detach(), relative=True), residual)
        messages = torch.where(running[:, problem.arc_graph, None], new, messages)
        sweeps += running
        if problem.tolerance:
            running = running & (residual > problem.tolerance)
            if not bool(running.any()):
                break
    return Solution(messages, residual, sweeps)
