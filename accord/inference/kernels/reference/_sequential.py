"""Sequential belief propagation: from the rim of each graph to its centre and back, using the newest messages.

A sweep sends every message once, level by level (Tappen and Freeman 2003 do so along the rows of an image), so evidence
crosses the whole graph in one sweep, and trees are exact after the first. Plain torch, differentiable by unrolling.
"""

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from accord.field._field import sum_dtype
from accord.inference._extended import Extended
from accord.inference.kernels._interface import Problem, Solution
from accord.inference.kernels.reference._levels import centre_levels, ranges
from accord.inference.kernels.reference._synchronous import (
    arc_potentials,
    change,
    damp,
    first_messages,
    first_state,
    new_messages,
)


@dataclass(frozen=True, eq=False)
class Step:
    """Arcs that are sent at the same time, and all arcs into their sources."""

    arcs: Tensor  # [sent]
    nodes: Tensor  # [nodes]: the sources of these arcs
    source: Tensor  # [sent]: which of the nodes an arc starts from
    incoming: Tensor  # [incoming]: arcs into the nodes
    target: Tensor  # [incoming]: which of the nodes such an arc ends in


def order_arcs(problem: Problem) -> list[Step]:
    """The steps of a sweep: arcs towards the centre (or along a level), from the rim inwards, then others outwards."""
    num_nodes, arcs = problem.node.shape[-2], problem.arcs
    device = arcs.edge_index.device
    level = centre_levels(arcs.edge_index, num_nodes).cpu().numpy()
    source, target = arcs.source.cpu().numpy(), arcs.target.cpu().numpy()
    deepest = level.max(initial=0)
    turn = np.where(level[source] >= level[target], deepest - level[source], deepest + 1 + level[source])
    order = np.argsort(turn, kind="stable")
    into = np.argsort(target, kind="stable")  # arcs, sorted by the node they end in
    starts = np.concatenate([[0], np.cumsum(np.bincount(target, minlength=num_nodes))])
    steps = []
    for sent in np.split(order, np.flatnonzero(np.diff(turn[order])) + 1) if order.size else []:
        nodes, starts_from = np.unique(source[sent], return_inverse=True)
        incoming = into[ranges(starts[nodes], starts[nodes + 1])]
        ends_in = np.repeat(np.arange(nodes.size), starts[nodes + 1] - starts[nodes])
        parts = (sent, nodes, starts_from, incoming, ends_in)
        steps.append(Step(*(torch.from_numpy(part).to(device) for part in parts)))
    return steps


def solve(problem: Problem) -> Solution:
    """Sweep in order until all graphs of all replicas have converged; those that have are frozen."""
    steps = order_arcs(problem)
    potentials = arc_potentials(problem)
    weight = problem.appearance.repeat(1, 2)[..., None]
    tables = [potentials[:, step.arcs] for step in steps]
    messages = first_messages(problem)
    running, residual, sweeps = first_state(problem)
    # In place unless autograd records: otherwise each step would copy all messages.
    put = torch.Tensor.index_copy if problem.wants_gradient else torch.Tensor.index_copy_
    for _ in range(problem.max_sweeps):
        before = messages.detach().clone()
        for step, table in zip(steps, tables, strict=True):
            old = messages[:, step.arcs]
            cavity = _cavities(problem, weight, messages, step)
            new = damp(problem, old, new_messages(problem, table, cavity, step.arcs))
            new = torch.where(running[:, problem.arc_graph[step.arcs], None], new, old)
            messages = put(messages, 1, step.arcs, new)
        residual = torch.where(running, change(problem, before, messages.detach(), relative=True), residual)
        sweeps += running
        if problem.tolerance:
            running = running & (residual > problem.tolerance)
            if not bool(running.any()):
                break
    return Solution(messages, residual, sweeps)


def _cavities(problem: Problem, weight: Tensor, messages: Tensor, step: Step) -> Tensor:
    """The belief of each arc's source without the target's own message, for the arcs of a step."""
    wide = sum_dtype(messages.device)
    incoming = Extended.split(messages[:, step.incoming].to(wide))
    sums = Extended.split(problem.node[:, step.nodes].to(wide))
    totals, _ = sums.scatter_add(step.target, incoming, weight[:, step.incoming]).shifted()
    reverse = Extended.split(messages[:, problem.arcs.reverse[step.arcs]])
    return (totals.rows(step.source) - reverse).join().to(messages.dtype)
