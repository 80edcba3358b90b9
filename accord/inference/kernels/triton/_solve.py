"""Belief propagation on GPUs by fused Triton kernels.

One pass over each edge's table serves both directions, nothing of size [arcs, states, states] is made, and small graphs
are solved completely by one program. Not differentiable. Results are the same to the bit in every run if
`torch.use_deterministic_algorithms(True)` is set.
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

OLDEST = (3, 4)  # the first version that accepts tuples of pointers, and constants with fields
MAX_STATES = 64
MAX_EDGES = 2**30 - 1  # arcs and rows are numbered in 32 bits
CHECK_EVERY = 8  # sweeps between two checks for convergence: a check waits for the device


def interpreted() -> bool:
    """Whether Triton runs in its interpreter, which works on CPUs."""
    return os.environ.get("TRITON_INTERPRET") == "1"


def unfit(problem: Problem) -> str | None:
    """Why the kernel cannot take this problem, or None."""
    if problem.node.device.type != "cuda" and not interpreted():
        return f"the field is on {problem.node.device}; move it to a GPU, or use another backend"
    if problem.node.dtype not in (torch.float32, torch.float64):
        return f"it takes float32 and float64, not {problem.node.dtype}; convert the field"
    if problem.node.shape[-1] > MAX_STATES:
        return f"it takes up to {MAX_STATES} states, not {problem.node.shape[-1]}; use backend 'reference'"
    if problem.edge.shape[-3] > MAX_EDGES or problem.node.shape[-2] > MAX_EDGES:
        return f"it takes up to {MAX_EDGES} nodes and edges; use backend 'reference'"
    return None


@lru_cache(maxsize=1)
def unavailable() -> str | None:
    """Why the kernels are not available on this machine, or None."""
    from accord._triton import triton  # not at the top: this loads Triton, which is optional and slow to import

    reason = None
    if triton is None:
        reason = "Triton is not installed"
    elif tuple(int(part) for part in triton.__version__.split(".")[:2]) < OLDEST:
        reason = f"Triton is {triton.__version__}, and the kernels need {'.'.join(map(str, OLDEST))} or later"
    if reason is not None:
        log.warning("propagate: the fast GPU kernel is not available, so the slower reference is used: %s.", reason)
    return reason


def needed_bytes(problem: Problem) -> int:
    """Device memory that `solve` takes on top of the problem: its plan, or copies of the result."""
    returned = problem.node[:, :1].numel() * 2 * problem.arcs.num_edges + problem.node.numel()
    copies = 3 if sorts_edges(problem) else 2  # messages in the kernel's layout, as read from it, and in order
    return max(planned_bytes(problem), copies * returned * problem.node.element_size())


def solve(problem: Problem) -> Solution:
    """Sweep until all graphs of all replicas have converged, as the reference does."""
    reason = unfit(problem) or problem.no_gradient
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
        # The totals of a single graph stay those of its last sweep; those of a batch are updated while any graph runs.
        alone = problem.num_graphs == 1 and memory.groups is None
        last = sweeps[:, 0] - 1 if alone else sweeps.new_full((replicas,), number)
        del plan, memory  # frees the tables before there are two copies of the messages
        totals = read_totals(totals, counts, form, rank, last)
        return Solution(read_messages(messages, form, order, problem.edge.shape[-3]), residual, sweeps, totals)


def _solve_groups(plan: Plan, problem: Problem) -> int:
    """Run all sweeps in one launch; returns the number of the last one."""
    kernels, memory = _kernels(), plan.memory
    assert memory.groups is not None
    programs = memory.groups.shape[1] - 1
    replicas, num_nodes, _ = problem.node.shape
    sizes = (plan.num_edges, num_nodes, problem.num_graphs, programs, replicas)
    given = (memory, *sizes, problem.max_sweeps, plan.form)
    kernels.solve_groups[(replicas * programs,)](*given, num_warps=plan.form.warps)
    return problem.max_sweeps - 1


def _solve_by_sweeps(plan: Plan, problem: Problem) -> int:
    """Run one launch for each sweep, two in deterministic mode; returns the number of the last sweep."""
    kernels, form = _kernels(), plan.form
    launchers = [Launcher(kernels.sweep, -(-plan.num_edges // form.width), plan, problem)]
    if not form.atomic:
        launchers.append(Launcher(kernels.collect, -(-problem.node.shape[1] // form.nodes), plan, problem))
    for number in range(problem.max_sweeps):
        for launcher in launchers:
            launcher.launch(number)
        if number % CHECK_EVERY == CHECK_EVERY - 1:
            if form.barred:
                _check_feasible(plan, problem)
            if problem.tolerance and not bool((plan.memory.moved_in(number) > problem.tolerance).any()):
                return number
    return problem.max_sweeps - 1


class Launcher:
    """Launches a kernel repeatedly on the same memory.

    Triton inspects every argument of every launch, which takes longer than a sweep over a small graph. So only the
    first launch goes through it; later ones call the compiled kernel directly, with addresses instead of tensors.
    """

    def __init__(self, kernel: Any, programs: int, plan: Plan, problem: Problem) -> None:
        replicas, num_nodes, _ = problem.node.shape
        self.kernel, self.grid = kernel, (replicas * programs, 1, 1)
        self.memory, self.form = plan.memory, plan.form
        self.sizes = (plan.num_edges, num_nodes, problem.num_graphs, programs, replicas)
        self.again: Callable[..., None] | None = None

    def launch(self, number: int) -> None:
        """Queue sweep `number` on the current stream."""
        if self.again is not None:
            self.again(number, self.form)
            return
        compiled = self.kernel[self.grid](self.memory, *self.sizes, number, self.form, num_warps=self.form.warps)
        if compiled is not None:  # None in the interpreter
            addresses = tuple(tensor if tensor is None else tensor.data_ptr() for tensor in self.memory)
            self.again = partial(compiled[self.grid], addresses, *self.sizes)


def _kernels() -> Any:
    """The module of kernels; imported at first use, since it loads Triton."""
    from accord.inference.kernels.triton.device import _kernels

    return _kernels


def _check_feasible(plan: Plan, problem: Problem) -> None:
    """Raise InfeasibleError if a message has no possible state left."""
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
