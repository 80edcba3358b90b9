"""Messages in order: from the rim of each graph to its centre and back, always with the newest that is known.

A sweep sends every message once, level by level (Tappen and Freeman 2003 do so along the rows of an image), so that
evidence crosses the whole graph in one sweep: trees are exact after the first. Plain torch, differentiable by
unrolling.
"""

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from accord.inference._extended import Extended
from accord.inference.kernels._interface import Problem, Solution
from accord.inference.kernels.reference._levels import centre_levels, ranges
from accord.inference.kernels.reference._synchronous import (
    arc_potentials,
    change,
    damp,
    first_messages,
    first_state,
    say,
)


@dataclass(frozen=True, eq=False)
class Step:
    """Arcs that speak at the same time, and all that their sources have heard."""

    arcs: Tensor  # [speaking]
    nodes: Tensor  # [nodes]: the sources of these arcs
    speaker: Tensor  # [speaking]: which of the nodes an arc starts from
    heard: Tensor  # [heard]: arcs into the nodes
    listener: Tensor  # [heard]: which of the nodes such an arc ends in


def order_arcs(problem: Problem) -> list[Step]:
    """One sweep: arcs towards the centre (or along a level) from the rim inwards, then the others outwards again."""
    num_nodes, arcs = problem.node.shape[-2], problem.arcs
    device = arcs.edge_index.device
    level = centre_levels(arcs.edge_index, num_nodes).cpu().numpy()
    source, target = arcs.source.cpu().numpy(), arcs.target.cpu().numpy()
    deepest = level.max(initial=0)
    turn = np.where(level[source] >= level[target], deepest - level[source], deepest + 1 + level[source])
    order = np.argsort(turn, kind="stable")
    into = np.argsort(target, kind="stable")  # arcs by the node they end in
    starts = np.concatenate([[0], np.cumsum(np.bincount(target, minlength=num_nodes))])
    steps = []
    for speaking in np.split(order, np.flatnonzero(np.diff(turn[order])) + 1) if order.size else []:
        nodes, speaker = np.unique(source[speaking], return_inverse=True)
        heard = into[ranges(starts[nodes], starts[nodes + 1])]
        listener = np.repeat(np.arange(nodes.size), starts[nodes + 1] - starts[nodes])
        steps.append(Step(*(torch.from_numpy(part).to(device) for part in (speaking, nodes, speaker, heard, listener))))
    return steps


def solve(problem: Problem) -> Solution:
    """Sweep in order until every graph of every replica has settled; settled ones are frozen, as in the reference."""
    steps = order_arcs(problem)
    potentials = arc_potentials(problem)
    weight = problem.appearance.repeat(1, 2)[..., None]
    tables = [potentials[:, step.arcs] for step in steps]
    messages = first_messages(problem)
    running, residual, sweeps = first_state(problem)
    # Out of place, each step would copy all messages; autograd needs it so.
    put = torch.Tensor.index_copy if problem.wants_gradient else torch.Tensor.index_copy_
    for _ in range(problem.max_sweeps):
        before = messages.detach().clone()
        for step, table in zip(steps, tables, strict=True):
            old = messages[:, step.arcs]
            new = damp(problem, old, say(problem, table, _cavities(problem, weight, messages, step), step.arcs))
            new = torch.where(running[:, problem.arc_graph[step.arcs], None], new, old)
            messages = put(messages, 1, step.arcs, new)
        residual = torch.where(running, change(problem, before, messages.detach()), residual)
        sweeps += running
        if problem.tolerance:
            running = running & (residual > problem.tolerance)
            if not bool(running.any()):
                break
    return Solution(messages, residual, sweeps)


def _cavities(problem: Problem, weight: Tensor, messages: Tensor, step: Step) -> Tensor:
    """What the source of each speaking arc believes, less what the target itself said."""
    heard = Extended.split(messages[:, step.heard])
    totals = Extended.split(problem.node[:, step.nodes]).scatter_add(step.listener, heard, weight[:, step.heard])
    echo = Extended.split(messages[:, problem.arcs.reverse[step.arcs]])
    return (totals.rows(step.speaker) - echo).join()
