"""Messages that have most to tell go first (Elidan, McGraw and Koller 2006).

What an arc has to tell is bounded, without computing it, by how far the beliefs behind it have moved since it last
spoke (as in Sutton and McCallum 2007): no log-message changes by more than the spread of that move. So no message is
computed that is not sent, and a graph has settled when no arc has more than the tolerance to tell. Each round, the
share of each graph's arcs that has most to tell speaks at the same time. Plain torch, differentiable by unrolling.
"""

import torch
from torch import Tensor

from accord.inference._extended import Extended
from accord.inference.kernels._interface import Problem, Solution
from accord.inference.kernels.reference._synchronous import arc_potentials, cavities, collect, damp, first_messages, say

SENT_SHARE = 0.125  # of a graph's arcs that speak in one round; chosen in docs/adr/0006


def solve(problem: Problem) -> Solution:
    """Send until no graph of any replica has more than the tolerance to tell, or `max_sweeps` times its arcs were sent.

    Sweeps are messages sent over arcs, rounded up; the residual is the most that any arc had left to tell.
    """
    num_arcs = torch.bincount(problem.arc_graph, minlength=problem.num_graphs)
    potentials, messages = arc_potentials(problem), first_messages(problem)
    sent = torch.zeros(len(messages), problem.num_graphs, dtype=torch.long, device=messages.device)
    told = torch.zeros_like(messages, requires_grad=False)  # what was behind each arc when it last spoke
    unsaid = messages.new_full(messages.shape[:2], torch.inf)  # what damping held back of it; at first, everything
    while True:
        cavity = cavities(problem, messages, collect(problem, messages))
        pending = unsaid + _spread(told, cavity.detach())
        chosen = _choose(problem, pending, num_arcs, problem.max_sweeps * num_arcs - sent)
        replica, arc = chosen.nonzero(as_tuple=True)
        if not len(arc):
            break
        old, behind = messages[replica, arc], cavity[replica, arc]
        said = say(problem, potentials[replica, arc], behind, arc)
        messages = messages.index_put((replica, arc), damp(problem, old, said))
        told[replica, arc] = behind.detach()
        unsaid[replica, arc] = problem.damping * _spread(old.detach(), said.detach()) if problem.damping else 0.0
        sent += _count(problem, chosen)
    residual = pending.new_zeros(sent.shape).scatter_reduce(
        -1, problem.arc_graph.expand_as(pending), pending, reduce="amax"
    )
    return Solution(messages, residual, -(-sent // num_arcs.clamp(min=1)))


def _choose(problem: Problem, pending: Tensor, num_arcs: Tensor, budget: Tensor) -> Tensor:
    """Which arcs speak [R, arcs]: in each graph the share with most to tell, and all that never spoke, if allowed."""
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
    """Largest less smallest change over the states [...]: infinite where a state became possible or impossible."""
    step = Extended.split(new) - Extended.split(old)
    spread = step.finite.amax(-1) - step.finite.amin(-1)
    return spread.masked_fill((step.infinities != 0).any(-1), torch.inf)
