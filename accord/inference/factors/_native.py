"""Belief propagation between factors and variables on CPUs, by a C++ kernel.

Nothing is padded: time and memory follow the states that variables have. Not differentiable. See
docs/adr/0018-factor-kernel.md.
"""

import ctypes
import logging
from collections.abc import Callable
from functools import lru_cache
from pathlib import Path

import torch
from torch import Tensor

from accord._eager import eager
from accord.errors import FieldError, InfeasibleError, OptionError
from accord.inference.factors._interface import FactorProblem, FactorSolution
from accord.inference.kernels.cpu._build import SOURCES, BuildError, Library, load_library

log = logging.getLogger("accord.inference")

FUNCTIONS = {torch.float32: "accord_factors_float32", torch.float64: "accord_factors_float64"}
FACTORS = Library(
    "factors", Path(__file__).parent / "native", tuple(FUNCTIONS.values()), (SOURCES / "simd.hpp", SOURCES / "team.hpp")
)
SCHEDULES = ("synchronous", "sequential", "residual")  # numbered as in native/factors.cpp
MAX_NUMBERED = 2**31 - 1  # slots, factors and variables are numbered in 32 bits
SOLVED, OUT_OF_MEMORY, NO_THREADS, OUT_OF_RANGE = range(4)  # what the kernel returns, as in native/factors.cpp
# Estimated work, table entries x sweeps, below which starting a thread (50 us) takes longer than it saves.
ONE_THREAD_WORK = 2_000_000
# The same for one sweep: threads wait for each other several times in each, which takes microseconds.
ONE_THREAD_SWEEP = 400_000
MANY_STATES, LANES = 8, 16  # as in native/plan.hpp; the widest vectors have 16 numbers
MISPLACED = (
    "propagate: factors name variables, graphs or tables that do not exist. The field's tensors were changed after it "
    "was built: build a new field."
)


class _Rules(ctypes.Structure):
    """Mirrors `RuleGroup` in native/model.hpp."""

    _fields_ = [
        *((name, ctypes.c_int64) for name in ("factors", "order", "states", "labels")),
        *((name, ctypes.c_void_p) for name in ("transitions", "final")),
        *((name, ctypes.c_int64) for name in ("final_replicas", "final_factors")),
    ]


class _Arguments(ctypes.Structure):
    """Mirrors `Arguments` in native/model.hpp."""

    _fields_ = [
        *((name, ctypes.c_int64) for name in ("replicas", "nodes", "factors", "tabled", "entries", "graphs", "groups")),
        *((name, ctypes.c_void_p) for name in ("at", "scope_at", "scope", "table_at", "graph")),
        *((name, ctypes.c_void_p) for name in ("unary", "tables", "appearance", "start")),
        ("rules", ctypes.POINTER(_Rules)),
        *((name, ctypes.c_void_p) for name in ("messages", "totals", "residual", "sweeps")),
        *((name, ctypes.c_int64) for name in ("table_replicas", "appearance_replicas", "max_sweeps")),
        *((name, ctypes.c_int64) for name in ("best", "schedule", "threads")),
        *((name, ctypes.c_double) for name in ("damping", "tolerance")),
        ("stuck", ctypes.c_int64),
    ]


def unfit(problem: FactorProblem) -> str | None:
    """Why the kernel cannot take this problem, or None."""
    if problem.wants_gradient:
        return "it has no gradient; use backend 'reference' or 'auto', or call it under torch.no_grad()"
    return misfit(problem)


def misfit(problem: FactorProblem) -> str | None:
    """The same, gradients aside."""
    flat = problem.flat
    if flat.unary.device.type != "cpu":
        return f"the field is on {flat.unary.device}; move it to the CPU, or use another backend"
    if flat.unary.dtype not in FUNCTIONS:
        return f"it takes float32 and float64, not {flat.unary.dtype}; convert the field"
    slots = flat.scope.numel() + sum(rule.scope.numel() for rule in flat.rules)
    if max(slots, flat.num_nodes, flat.num_graphs) > MAX_NUMBERED:
        return f"it takes up to {MAX_NUMBERED} variables of factors; use backend 'reference'"
    return None


@lru_cache(maxsize=1)
def unavailable() -> str | None:
    """Why the compiled kernel is not available on this machine, or None. Compiles it at the first call."""
    try:
        load_library(FACTORS)
    except BuildError as error:
        log.warning("propagate: the fast CPU kernel is not available, so the slower reference is used: %s.", error)
        return str(error)
    return None


def needed_bytes(problem: FactorProblem) -> int:
    """Memory that `solve` takes on top of the problem: results, and its own tables, messages and totals."""
    flat = problem.flat
    replicas, states = flat.unary.shape
    slots = flat.scope.numel() + sum(rule.scope.numel() for rule in flat.rules)
    rules = sum(rule.scope.numel() * rule.transitions.shape[1] for rule in flat.rules)
    lengths = flat.states[flat.scope]
    messages = int(lengths.sum()) + rules
    # The kernel's own copies of long messages are padded to whole vectors.
    stored = int(torch.where(lengths > MANY_STATES, -(-lengths // LANES) * LANES, lengths).sum()) + rules
    entries = flat.tables.shape[1] if problem.appearance is None else _all_entries(problem)
    each = flat.unary.element_size()
    kept = 2 if problem.schedule == "residual" else 1  # pending messages
    own = (entries + kept * stored) * each + 12 * states + 40 * slots
    return int(own + replicas * (messages + states) * each)


def _all_entries(problem: FactorProblem) -> int:
    """Entries of the tables of all factors, where those that share one are counted each."""
    flat = problem.flat
    sizes = torch.zeros(flat.num_factors, dtype=torch.float64)
    factor = torch.repeat_interleave(flat.scope_at.diff())
    return int(sizes.index_add_(0, factor, flat.states[flat.scope].double().log()).exp().sum())


@eager
def solve(problem: FactorProblem) -> FactorSolution:
    """Pass messages by the problem's schedule until all graphs of all replicas have converged."""
    reason = unfit(problem)
    if reason is None and unavailable() is not None:
        reason = f"{unavailable()}; install a C++ compiler (g++ or clang++), name it in $CXX, or use backend 'auto'"
    if reason is not None:
        raise OptionError(f"propagate: backend 'native' cannot be used here: {reason}.")
    flat = problem.flat
    unary = flat.unary.detach().contiguous()
    scope, scope_at = _all_scopes(problem)
    messages = unary.new_empty(len(unary), _length(problem, scope))
    _check_shapes(problem, len(scope_at) - 1, messages.shape[1])
    totals = torch.empty_like(unary)
    residual = unary.new_zeros(len(unary), flat.num_graphs)
    sweeps = torch.zeros_like(residual, dtype=torch.long)
    tables = flat.tables.detach().contiguous()
    rules, kept = _rule_groups(problem)
    # Kept until the kernel has returned, so that no tensor is freed while the kernel reads it.
    inputs = {
        "at": flat.at.contiguous(),
        "scope_at": scope_at,
        "scope": scope,
        "table_at": flat.table_at.contiguous(),
        "graph": flat.graph.contiguous(),
        "unary": unary,
        "tables": tables,
        "appearance": None if problem.appearance is None else problem.appearance.detach().contiguous(),
        "start": None if problem.start is None else problem.start.detach().contiguous(),
    }
    sweep = tables.shape[1] + 8 * messages.shape[1]
    work = len(unary) * sweep * max(problem.max_sweeps, 1)
    few = work < ONE_THREAD_WORK or (problem.schedule == "synchronous" and sweep < ONE_THREAD_SWEEP)
    arguments = _Arguments(
        replicas=len(unary),
        nodes=flat.num_nodes,
        factors=len(scope_at) - 1,
        tabled=flat.num_factors,
        entries=tables.shape[1],
        graphs=flat.num_graphs,
        groups=len(flat.rules),
        **{name: None if tensor is None else tensor.data_ptr() for name, tensor in inputs.items()},
        rules=rules,
        messages=messages.data_ptr(),
        totals=totals.data_ptr(),
        residual=residual.data_ptr(),
        sweeps=sweeps.data_ptr(),
        table_replicas=tables.shape[0],
        appearance_replicas=1 if problem.appearance is None else problem.appearance.shape[0],
        max_sweeps=problem.max_sweeps,
        best=int(problem.semiring == "max"),
        schedule=SCHEDULES.index(problem.schedule),
        threads=1 if few else torch.get_num_threads(),
        damping=problem.damping,
        tolerance=problem.tolerance,
        stuck=-1,
    )
    _run(getattr(load_library(FACTORS), FUNCTIONS[unary.dtype]), arguments)
    del inputs, kept  # not earlier: the kernel reads these tensors
    if arguments.stuck >= 0:
        variable = int(scope[arguments.stuck])
        raise InfeasibleError(
            f"propagate: no state is left for node {variable} in graph {int(flat.graph[variable])}: clamped labels, "
            "forbidden states and rules contradict each other. Relax one of them."
        )
    return FactorSolution(messages, residual, sweeps, totals)


def _length(problem: FactorProblem, scope: Tensor) -> int:
    """How many numbers the messages of a replica have."""
    try:
        return int(problem.flat.at.diff()[scope].sum())
    except IndexError as error:
        raise FieldError(f"{MISPLACED} ({error})") from error


def _all_scopes(problem: FactorProblem) -> tuple[Tensor, Tensor]:
    """Variables of all factors, those of rules last, and where each factor begins."""
    flat = problem.flat
    scope, starts = [flat.scope], [flat.scope_at]
    for rule in flat.rules:
        end = starts[-1][-1]
        scope.append(rule.scope.flatten())
        starts.append(end + rule.order * torch.arange(1, len(rule.scope) + 1, device=end.device))
    return torch.cat(scope).contiguous(), torch.cat(starts).contiguous()


def _rule_groups(problem: FactorProblem) -> tuple[ctypes.Array[_Rules], list[Tensor]]:
    """Rules as the kernel takes them, and the tensors that they point to."""
    groups = (_Rules * max(len(problem.flat.rules), 1))()
    kept = []
    for group, rule in zip(groups, problem.flat.rules, strict=False):
        transitions, final = rule.transitions.contiguous(), rule.final.detach().contiguous()
        kept += [transitions, final]
        group.factors, group.order = rule.scope.shape
        group.states, group.labels = transitions.shape
        group.transitions, group.final = transitions.data_ptr(), final.data_ptr()
        group.final_replicas, group.final_factors = final.shape[:2]
    return groups, kept


def _run(kernel: Callable[..., int], arguments: _Arguments) -> None:
    """Call the kernel, and raise an error where it reports one."""
    status = kernel(ctypes.byref(arguments))
    if status == NO_THREADS:
        log.warning("propagate: the system refused to start %s threads, so one is used.", arguments.threads)
        arguments.threads = 1
        status = kernel(ctypes.byref(arguments))
    if status == OUT_OF_RANGE:
        raise FieldError(MISPLACED)
    if status != SOLVED:
        raise MemoryError(
            f"propagate: the CPU kernel ran out of memory with {arguments.factors} factors. Free memory, or solve "
            "fewer graphs or replicas at a time."
        )


def _check_shapes(problem: FactorProblem, factors: int, length: int) -> None:
    """The kernel gets addresses without sizes, so tensors of other sizes would be read beyond their end."""
    flat = problem.flat
    dtype, replicas = flat.unary.dtype, len(flat.unary)
    expected: list[tuple[str, Tensor | None, tuple[int, ...], torch.dtype]] = [
        ("at", flat.at, (flat.num_nodes + 1,), torch.int64),
        ("unary", flat.unary, (replicas, int(flat.at[-1])), dtype),
        ("tables", flat.tables, (replicas if len(flat.tables) > 1 else 1, flat.tables.shape[1]), dtype),
        ("graph", flat.graph, (flat.num_nodes,), torch.int64),
        ("scope", flat.scope, (int(flat.scope_at[-1]),), torch.int64),
        ("scope_at", flat.scope_at, (flat.num_factors + 1,), torch.int64),
        ("table_at", flat.table_at, (flat.num_factors,), torch.int64),
        ("start", problem.start, (replicas, length), dtype),
    ]
    if problem.appearance is not None:
        each = (replicas if len(problem.appearance) > 1 else 1, factors)
        expected.append(("appearance", problem.appearance, each, dtype))
    for rule in flat.rules:
        some = (replicas if len(rule.final) > 1 else 1, len(rule.scope) if rule.final.shape[1] > 1 else 1)
        expected.append(("final", rule.final, (*some, len(rule.transitions)), dtype))
        expected.append(("transitions", rule.transitions, tuple(rule.transitions.shape), torch.int64))
    for name, tensor, shape, kind in expected:
        if tensor is not None and (tensor.shape != shape or tensor.dtype != kind):
            raise FieldError(
                f"propagate: {name} has shape {list(tensor.shape)} and dtype {tensor.dtype}, but {list(shape)} and "
                f"{kind} are needed. Build the field again."
            )
