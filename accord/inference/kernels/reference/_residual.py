"""Residual belief propagation: messages with the largest pending change are sent first (Elidan et al. 2006).

The pending change of a message is bounded without computing it, by how far its cavity has moved since it was last sent
(as in Sutton and McCallum 2007): no log-message changes by more than the spread of that move. So no message is computed
that is not sent. Changes are relative to the message's `magnitude`, and a graph has converged when no pending change
exceeds the tolerance. In each round a fixed share of each graph's arcs, those with the largest pending changes, is sent
at the same time. Plain torch, differentiable by unrolling.
"""

import torch
from torch import Tensor

from accord.inference._extended import Extended
from accord.inference.kernels._interface import Problem, Solution
from accord.inference.kernels.reference._synchronous import (
    arc_potentials,
    cavities,
    collect,
    damp,
    first_messages,
    magnitude,
    new_messages,
)

SENT_SHARE = 0.125  # of a graph's arcs, sent in one round; chosen in docs/adr/0006


def solve(problem: Problem) -> Solution:
    """Send until no pending change exceeds the tolerance, or a graph has sent `max_sweeps` times as many as its arcs.

    The number of sweeps is messages sent / arcs, rounded up; the residual is the largest pending change.
    """
    num_arcs = torch.bincount(problem.arc_graph, minlength=problem.num_graphs)
    potentials, messages = arc_potentials(problem), first_messages(problem)
    sent = torch.zeros(len(messages), problem.num_graphs, dtype=torch.long, device=messages.device)
    last_cavity = torch.zeros_like(messages, requires_grad=False)  # of each arc when it was last sent
    held_back = messages.new_full(
        messages.shape[:2], torch.inf
    )  # change that damping held back; infinite if never sent
    while True:
        cavity = cavities(problem, messages, collect(problem, messages))
        pending = (held_back + _spread(last_cavity, cavity.detach())) / magnitude(messages.detach())
        chosen = _choose(problem, pending, num_arcs, problem.max_sweeps * num_arcs - sent)
        replica, arc = chosen.nonzero(as_tuple=True)
        if not len(arc):
            break
        old, source = messages[replica, arc], cavity[replica, arc]
        new = new_messages(problem, potentials[replica, arc], source, arc)
        messages = messages.index_put((replica, arc), damp(problem, old, new))
        last_cavity[replica, arc] = source.detach()
        held_back[replica, arc] = problem.damping * _spread(old.detach(), new.detach()) if problem.damping else 0.0
        sent += _count(problem, chosen)
    residual = pending.new_zeros(sent.shape).scatter_reduce(
        -1, problem.arc_graph.expand_as(pending), pending, reduce="amax"
    )
    return Solution(messages, residual, -(-sent // num_arcs.clamp(min=1)))


def _choose(problem: Problem, pending: Tensor, num_arcs: Tensor, budget: Tensor) -> Tensor:
    """Which arcs are sent [R, arcs]: of each graph those with the largest pending changes, within its budget.

    All arcs that were never sent go in the first round.
    """
    order = pending.argsort(dim=-1, descending=True, stable=True)
    order = order.gather(
        -1, problem.arc_graph[order].argsort(dim=-1, stable=True)
    )  # by graph, then by what there is to tell
    first = num_arcs.cumsum(0) - num_arcs
    place = torch.arange(pending.shape[-1], device=pending.device) - first[problem.arc_graph.sort().values]
    rank = torch.empty_like(order).scatter_(-1, order, place.expand_as(order))
    share = (num_arcs * SENT_SHARE).ceil().long()
    quota = torch.maximum(share, _count(problem, pending == torch.inf)).minimum(budget)
    return (rank < quota[:, problem.arc_graph]) & (pending > problem.tolerance)


def _count(problem: Problem, chosen: Tensor) -> Tensor:
    """Chosen arcs of each replica and graph [R, graphs]."""
    none = torch.zeros(len(chosen), problem.num_graphs, dtype=torch.long, device=chosen.device)
    return none.index_add_(-1, problem.arc_graph, chosen.long())


def _spread(old: Tensor, new: Tensor) -> Tensor:
    """Largest minus smallest change over the states [...]; infinite if a state became possible or impossible."""
    step = Extended.split(new) - Extended.split(old)
    spread = step.finite.amax(-1) - step.finite.amin(-1)
    return spread.masked_fill((step.infinities != 0).any(-1), torch.inf)
