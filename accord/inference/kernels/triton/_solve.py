"""Belief propagation on GPUs by fused Triton kernels: the reference's results at the speed of memory.

One pass over each edge's table serves both directions, nothing of size [arcs, states, states] is ever made, and small
graphs are solved to the end by one program. Not differentiable. The same bits every run where
`torch.use_deterministic_algorithms(True)` was asked for.
"""

import logging
import os
from collections.abc import Callable
from functools import lru_cache, partial
from typing import Any

import torch

from accord.errors import InfeasibleError, OptionError
from accord.inference.kernels._interface import Problem, Solution
from accord.inference.kernels.triton._layout import read_messages, read_totals
from accord.inference.kernels.triton._plan import Plan, make_plan, planned_bytes, sorts_edges

log = logging.getLogger("accord.inference")

OLDEST = (3, 4)  # version that takes tuples of pointers, and constants with fields
MAX_STATES = 64
MAX_EDGES = 2**30 - 1  # arcs and rows are numbered with 32 bits
LOOK = 8  # sweeps between two looks at whether all has settled: a look waits for the device


def interpreted() -> bool:
    """Whether Triton runs in its interpreter, on CPUs."""
    return os.environ.get("TRITON_INTERPRET") == "1"


def unfit(problem: Problem) -> str | None:
    """Why the kernel cannot take this problem, or None."""
    given = [tensor for tensor in (problem.node, problem.edge, problem.appearance, problem.start) if tensor is not None]
    if problem.node.device.type != "cuda" and not interpreted():
        return f"the field is on {problem.node.device}; move it to a GPU, or use another backend"
    if problem.node.dtype not in (torch.float32, torch.float64):
        return f"it takes float32 and float64, not {problem.node.dtype}; convert the field"
    if problem.node.shape[-1] > MAX_STATES:
        return f"it takes up to {MAX_STATES} states, not {problem.node.shape[-1]}; use backend 'reference'"
    if problem.edge.shape[-3] > MAX_EDGES or problem.node.shape[-2] > MAX_EDGES:
        return f"it takes up to {MAX_EDGES} nodes and edges; use backend 'reference'"
    if torch.is_grad_enabled() and any(tensor.requires_grad for tensor in given):
        return "it has no gradient; use backend 'reference' or 'auto', or call it under torch.no_grad()"
    return None


@lru_cache(maxsize=1)
def unavailable() -> str | None:
    """Why the kernels are not available on this machine, or None."""
    from accord._triton import triton  # late: an import here would load Triton, which is optional and slow to import

    reason = None
    if triton is None:
        reason = "Triton is not installed"
    elif tuple(int(part) for part in triton.__version__.split(".")[:2]) < OLDEST:
        reason = f"Triton is {triton.__version__}, and the kernels need {'.'.join(map(str, OLDEST))} or later"
    if reason is not None:
        log.warning("propagate: the fast GPU kernel is not available, so the slower reference is used: %s.", reason)
    return reason


def needed_bytes(problem: Problem) -> int:
    """Memory of the device that `solve` takes on top of the problem: its plan, or copies of what it gives back."""
    given_back = problem.node[:, :1].numel() * 2 * problem.arcs.num_edges + problem.node.numel()
    copies = 3 if sorts_edges(problem) else 2  # messages as they lay there, as they are read, and in order
    return max(planned_bytes(problem), copies * given_back * problem.node.element_size())


def solve(problem: Problem) -> Solution:
    """Sweep until every graph of every replica has settled, as the reference does."""
    reason = unfit(problem)
    if reason is None and unavailable() is not None:
        reason = f"{unavailable()}; install it (pip install 'triton>=3.4', or a later torch), or use backend 'auto'"
    if reason is not None:
        raise OptionError(f"propagate: backend 'triton' cannot be used here: {reason}.")
    replicas, num_graphs = problem.node.shape[0], problem.num_graphs
    if problem.edge.shape[-3] == 0:
        nothing = problem.node.new_zeros(replicas, num_graphs)
        empty = problem.node.new_empty(replicas, 0, problem.node.shape[-1])
        return Solution(empty, nothing, torch.zeros_like(nothing, dtype=torch.long))
    with torch.cuda.device_of(problem.node):
        plan = make_plan(problem)
        number = (_solve_by_sweeps if plan.memory.groups is None else _solve_groups)(plan, problem)
        _check_feasible(plan, problem)
        memory, form, order, rank = plan.memory, plan.form, plan.order, plan.rank
        messages, totals, counts, sweeps = memory.messages, memory.totals, memory.counts, memory.sweeps
        residual = memory.moved_in(number).clamp(min=0.0)
        # A graph on its own is left alone once it has settled; others are added up as long as one of them runs.
        alone = problem.num_graphs == 1 and memory.groups is None
        last = sweeps[:, 0] - 1 if alone else sweeps.new_full((replicas,), number)
        del plan, memory  # and with them the tables, before there are two copies of the messages
        totals = read_totals(totals, counts, form, rank, last)
        return Solution(read_messages(messages, form, order, problem.edge.shape[-3]), residual, sweeps, totals)


def _solve_groups(plan: Plan, problem: Problem) -> int:
    """All sweeps in one launch; the number of the last one."""
    kernels, memory = _kernels(), plan.memory
    assert memory.groups is not None
    programs = memory.groups.shape[1] - 1
    replicas, num_nodes, _ = problem.node.shape
    sizes = (plan.num_edges, num_nodes, problem.num_graphs, programs, replicas)
    given = (memory, *sizes, problem.max_sweeps, plan.form)
    kernels.solve_groups[(replicas * programs,)](*given, num_warps=plan.form.warps)
    return problem.max_sweeps - 1


def _solve_by_sweeps(plan: Plan, problem: Problem) -> int:
    """A launch a sweep, two where the same bits are wanted every run; the number of the last one."""
    kernels, form = _kernels(), plan.form
    launchers = [Launcher(kernels.sweep, -(-plan.num_edges // form.width), plan, problem)]
    if not form.atomic:
        launchers.append(Launcher(kernels.collect, -(-problem.node.shape[1] // form.nodes), plan, problem))
    for number in range(problem.max_sweeps):
        for launcher in launchers:
            launcher.launch(number)
        if number % LOOK == LOOK - 1:
            if form.barred:
                _check_feasible(plan, problem)
            if problem.tolerance and not bool((plan.memory.moved_in(number) > problem.tolerance).any()):
                return number
    return problem.max_sweeps - 1


class Launcher:
    """Launches a kernel again and again on the same memory.

    Triton looks at every argument of every launch, and takes longer over ours than a small graph over a sweep. So only
    the first launch is left to it: what it compiled then takes the others, with addresses in place of tensors.
    """

    def __init__(self, kernel: Any, programs: int, plan: Plan, problem: Problem) -> None:
        replicas, num_nodes, _ = problem.node.shape
        self.kernel, self.grid = kernel, (replicas * programs, 1, 1)
        self.memory, self.form = plan.memory, plan.form
        self.sizes = (plan.num_edges, num_nodes, problem.num_graphs, programs, replicas)
        self.again: Callable[..., None] | None = None

    def launch(self, number: int) -> None:
        """Put it on the current stream."""
        if self.again is not None:
            self.again(number, self.form)
            return
        compiled = self.kernel[self.grid](self.memory, *self.sizes, number, self.form, num_warps=self.form.warps)
        if compiled is not None:  # as it is in the interpreter
            addresses = tuple(tensor if tensor is None else tensor.data_ptr() for tensor in self.memory)
            self.again = partial(compiled[self.grid], addresses, *self.sizes)


def _kernels() -> Any:
    """The module of kernels; imported at first use, since it loads Triton."""
    from accord.inference.kernels.triton.device import _kernels

    return _kernels


def _check_feasible(plan: Plan, problem: Problem) -> None:
    """Report a message without any state left."""
    if not plan.form.barred:
        return
    first = int(plan.memory.stuck)
    if first == torch.iinfo(torch.long).max:
        return
    against, position = divmod(first % (2 * plan.num_edges), plan.num_edges)
    edge = position if plan.order is None else int(plan.order[position])
    arc = against * plan.num_edges + edge
    raise InfeasibleError(
        f"propagate: no state is left for node {problem.arcs.target_of(arc)} in graph "
        f"{int(problem.edge_graph[edge])}: clamped labels and forbidden states or pairs contradict each other. "
        "Relax one of them."
    )
