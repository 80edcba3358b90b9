"""Schedules that send messages in an order, on CPUs: by the kernel of factor graphs, with edges as factors."""

import torch
from torch import Tensor

from accord.field.factors import FlatField
from accord.inference.factors import _native
from accord.inference.factors._interface import FactorProblem
from accord.inference.kernels._interface import Problem, Solution
from accord.inference.kernels.reference import solve as solve_in_torch

MANY_LINKS = 200  # of an arc's source on average; with more, the reference's rounds of many messages are faster


def unfit(problem: Problem) -> str | None:
    """Why the kernel cannot take this problem, or None."""
    return _native.unfit(_as_factors(problem)) if problem.node.device.type == "cpu" else "the field is not on the CPU"


def unavailable() -> str | None:
    """Why the compiled kernel is not available on this machine, or None. Compiles it at the first call."""
    return _native.unavailable()


def is_slow(problem: Problem) -> bool:
    """Whether the reference is faster: by residuals, each message to a node changes the bounds of all that leave it."""
    if problem.schedule != "residual" or not problem.arcs.num_edges:
        return False
    degrees = torch.bincount(problem.arcs.edge_index.flatten()).double()
    return float(degrees.square().sum() / degrees.sum()) > MANY_LINKS


def needed_bytes(problem: Problem) -> int:
    """Memory that `solve` takes on top of the problem: that of the kernel, and messages in the order of arcs."""
    messages = problem.node[:, :1].numel() * 2 * problem.arcs.num_edges * problem.node.element_size()
    return _native.needed_bytes(_as_factors(problem)) + messages


def solve(problem: Problem) -> Solution:
    """Send messages in the order that the problem's schedule names."""
    solution = _native.solve(_as_factors(problem))
    replicas, nodes, states = problem.node.shape
    towards = solution.messages.reshape(replicas, problem.arcs.num_edges, 2, states)  # to source and target of an edge
    messages = torch.cat([towards[:, :, 1], towards[:, :, 0]], dim=1)
    totals = None if solution.totals is None else solution.totals.reshape(replicas, nodes, states)
    return Solution(messages, solution.residual, solution.sweeps, totals)


def solve_for_gradient(problem: Problem) -> Solution:
    """The same; but where a run by residuals does not converge, the reference's run, which autograd can repeat.

    Its order differs, because it sends many messages at a time.
    """
    solution = solve(problem)
    if problem.schedule == "residual" and not bool((solution.residual <= problem.tolerance).all()):
        return solve_in_torch(problem)
    return solution


def _as_factors(problem: Problem) -> FactorProblem:
    _, nodes, states = problem.node.shape
    index, edges = problem.arcs.edge_index, problem.arcs.num_edges
    each = torch.arange(edges + 1, device=index.device)
    edge = problem.edge
    flat = FlatField(
        states=torch.full((nodes,), states, device=index.device),
        at=states * torch.arange(nodes + 1, device=index.device),
        unary=problem.node.flatten(1),
        scope_at=2 * each,
        scope=index.t().flatten(),
        table_at=states**2 * each[:-1],
        # Tables that all replicas share are not copied.
        tables=(edge[:1] if edge.stride(0) == 0 else edge).flatten(1),
        graph=problem.node_graph,
        num_graphs=problem.num_graphs,
        num_own=nodes,
    )
    return FactorProblem(
        flat=flat,
        appearance=problem.appearance if problem.weighted else None,
        semiring=problem.semiring,
        damping=problem.damping,
        max_sweeps=problem.max_sweeps,
        tolerance=problem.tolerance,
        start=None if problem.start is None else _towards(problem.start),
        schedule=problem.schedule,
    )


def _towards(arcs: Tensor) -> Tensor:
    """Messages [R, arcs, states] in the order of factors: for each edge that to its source, then that to its target."""
    along, against = arcs.chunk(2, dim=1)
    return torch.stack([against, along], dim=2).flatten(1)
