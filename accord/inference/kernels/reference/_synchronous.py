"""Belief propagation as the equations have it: plain torch, log space, differentiable by unrolling.

Every other kernel is checked against this one, and this one against enumeration.
"""

import torch
from torch import Tensor

from accord.errors import InfeasibleError
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
    """What each node believes before normalising: its potential and all that is said to it."""
    if problem.wants_gradient or (torch.is_grad_enabled() and messages.requires_grad):
        weight = problem.appearance.repeat(1, 2)[..., None]
        return Extended.split(problem.node).scatter_add(problem.arcs.target, Extended.split(messages), weight)
    totals = Extended.split(problem.node.detach())
    source, target = problem.arcs.edge_index
    along, against = messages.detach().chunk(2, dim=-2)
    barred = has_infinity(messages)
    for heard, listener in ((along, target), (against, source)):
        for block in blocks(len(listener), messages[:, :1].numel()):
            totals.scatter_add_(listener[block], heard[:, block], barred, problem.appearance[:, block, None])
    return totals


def cavities(problem: Problem, messages: Tensor, totals: Extended, edges: slice = ALL) -> Tensor:
    """What each arc's source believes, less what the target itself said, or its own evidence echoes back.

    Of the arcs along a range of edges, and then of those against them [R, arcs, states].

    With tree-reweighting the target's message enters the total with weight rho and must go with weight 1
    (exponent rho - 1, Wainwright et al. 2005), so the subtraction is the same.
    """
    along, against = messages.chunk(2, dim=-2)
    source, target = problem.arcs.edge_index[:, edges]
    heard = Extended.split(torch.cat([against[:, edges], along[:, edges]], dim=-2))
    return (totals.rows(torch.cat([source, target])) - heard).join()


def send(problem: Problem, potentials: Tensor, messages: Tensor) -> Tensor:
    """One synchronous sweep: what each arc's source tells its target (Eq. 9)."""
    return say(problem, potentials, cavities(problem, messages, collect(problem, messages)))


def say(problem: Problem, potentials: Tensor, cavity: Tensor, arcs: Tensor | None = None) -> Tensor:
    """Messages of all arcs, or of those named by `arcs`, from the tables and cavities of these."""
    said = REDUCE[problem.semiring](potentials + cavity[..., :, None], dim=-2)
    barred = (said == -torch.inf).all(-1)
    if bool(barred.any()):
        row = int(barred.nonzero()[0, -1])
        arc = row if arcs is None else int(arcs[row])
        raise InfeasibleError(
            f"propagate: no state is left for node {problem.arcs.target_of(arc)} in graph "
            f"{int(problem.arc_graph[arc])}: clamped labels and forbidden states or pairs contradict each other. "
            "Relax one of them."
        )
    return normalise(said, problem.semiring)


def damp(problem: Problem, old: Tensor, new: Tensor) -> Tensor:
    """Part of the way from the old messages to the new."""
    if not problem.damping:
        return new
    return normalise(problem.damping * old + (1 - problem.damping) * new, problem.semiring)


def change(problem: Problem, old: Tensor, new: Tensor) -> Tensor:
    """Largest change of a log-message, for each replica and graph [R, graphs]."""
    step = Extended.split(new) - Extended.split(old)
    moved = step.finite.abs().masked_fill(step.infinities != 0, torch.inf).amax(-1)
    index = problem.arc_graph.expand_as(moved)
    still = moved.new_zeros(moved.shape[0], problem.num_graphs)
    return still.scatter_reduce(-1, index, moved, reduce="amax")


def first_messages(problem: Problem) -> Tensor:
    """Where to start: messages that were given, or such as say nothing."""
    messages = problem.start
    if messages is None:
        messages = problem.node.new_zeros(problem.node.shape[0], len(problem.arc_graph), problem.node.shape[-1])
    return normalise(messages, problem.semiring)


def first_state(problem: Problem) -> tuple[Tensor, Tensor, Tensor]:
    """What still runs, its residual and its sweeps, each [R, graphs]; a graph without edges has nothing to settle."""
    has_arcs = torch.bincount(problem.arc_graph, minlength=problem.num_graphs) > 0
    running = has_arcs.expand(problem.node.shape[0], -1)
    residual = torch.where(running, torch.inf, 0.0).to(problem.node)
    return running, residual, torch.zeros_like(residual, dtype=torch.long)


def solve(problem: Problem) -> Solution:
    """Sweep until every graph of every replica has settled; settled ones are frozen, so a batch equals its parts."""
    messages, potentials = first_messages(problem), arc_potentials(problem)
    running, residual, sweeps = first_state(problem)
    for _ in range(problem.max_sweeps):
        new = damp(problem, messages, send(problem, potentials, messages))
        residual = torch.where(running, change(problem, messages.detach(), new.detach()), residual)
        messages = torch.where(running[:, problem.arc_graph, None], new, messages)
        sweeps += running
        if problem.tolerance:
            running = running & (residual > problem.tolerance)
            if not bool(running.any()):
                break
    return Solution(messages, residual, sweeps)
