"""The sweeps of one part by the compiled CPU kernel, which keeps the part loaded between exchanges."""

import ctypes
import weakref
from functools import lru_cache
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from accord.distributed._part import Part
from accord.errors import FieldError, InfeasibleError
from accord.inference.kernels import Problem, cpu
from accord.inference.kernels.cpu._build import SOURCES, BuildError, Library, load_library
from accord.inference.kernels.cpu._solve import _Arguments, _check_shapes

STEPS = ("open", "sweep", "read", "write", "messages", "totals", "end", "close")
NAMES = {torch.float32: "float32", torch.float64: "float64"}
PARTS = Library(
    "parts",
    Path(__file__).parent / "native",
    tuple(f"accord_part_{step}_{name}" for step in STEPS for name in NAMES.values()),
    tuple(sorted(SOURCES.glob("*.hpp"))),
)
DONE, OUT_OF_MEMORY, NO_THREADS, OUT_OF_RANGE = range(4)  # as in native/parts.cpp


def unfit(problem: Problem) -> str | None:
    """Why the kernel cannot take this part, or None. Compiles it at the first call."""
    if not problem.arcs.num_edges:
        return "the part has no edges"
    return cpu.unfit(problem) or unavailable()


@lru_cache(maxsize=1)
def unavailable() -> str | None:
    """Why the compiled kernel is not available on this machine, or None."""
    try:
        load_library(PARTS)
    except BuildError as error:
        return str(error)
    return None


class NativeSweeps:
    """Sweeps by the compiled kernel; see `Sweeps`.

    Args:
        part: what this process holds.
        problem: the field of the part, on the CPU; what it says of ghosts is not used.
        counted: whether infinities are counted.
    """

    def __init__(self, part: Part, problem: Problem, counted: bool) -> None:
        _check_shapes(problem)
        self.part, self.problem, self.counted = part, problem, counted
        index, node = problem.arcs.edge_index.contiguous(), problem.node.contiguous()
        edge = problem.edge.contiguous()
        appearance = problem.appearance.contiguous() if problem.weighted else None
        start = None if problem.start is None else problem.start.contiguous()
        # The kernel reads all of these but `start` and `node` again in later sweeps.
        self._kept = (index, edge, appearance)
        self._sweep_limits = (float(problem.tolerance), float("inf"))
        arguments = _Arguments(
            replicas=1,
            nodes=node.shape[1],
            edges=problem.arcs.num_edges,
            states=node.shape[-1],
            graphs=1,
            source=index.data_ptr(),
            target=index.data_ptr() + index.shape[1] * index.element_size(),
            node=node.data_ptr(),
            edge=edge.data_ptr(),
            appearance=None if appearance is None else appearance.data_ptr(),
            start=None if start is None else start.data_ptr(),
            appearance_replicas=1,
            max_sweeps=1,
            best=int(problem.semiring == "max"),
            threads=torch.get_num_threads(),
            damping=problem.damping,
            tolerance=problem.tolerance,
            stuck=-1,
        )
        self._handle = ctypes.c_void_p()
        self._call("open", ctypes.byref(arguments), ctypes.c_int64(part.num_own), ctypes.byref(self._handle))
        close = getattr(load_library(PARTS), f"accord_part_close_{NAMES[node.dtype]}")
        self._close = weakref.finalize(self, close, self._handle)
        self._refuse(arguments.stuck)

    def border(self, rows: Tensor) -> Tensor:
        """Totals of own nodes, to be sent."""
        rows = rows.contiguous()
        found = self.problem.node.new_empty(len(rows), self._width)
        self._call("read", self._handle, _at(rows), _count(rows), _at(found), ctypes.c_int64(self.counted))
        return found

    def inner(self, exact: bool) -> None:
        """Edges between own nodes."""
        self._sweep(False, exact)

    def outer(self, ghosts: Tensor, exact: bool) -> float:
        """Edges to ghosts; ends the sweep."""
        ghosts = ghosts.contiguous()
        first = ctypes.c_int64(self.part.num_own)
        self._call("write", self._handle, first, _count(ghosts), _at(ghosts), ctypes.c_int64(self.counted))
        return self._sweep(True, exact)

    def messages(self) -> Tensor:
        """Normalised log-messages in the order of the part's edges."""
        node = self.problem.node
        found = node.new_empty(2 * self.problem.arcs.num_edges, node.shape[-1])
        self._call("messages", self._handle, _at(found))
        return found

    def totals(self) -> Tensor:
        """Beliefs up to a constant for each node."""
        found = self.problem.node[0].clone()  # nodes without edges are not written
        self._call("totals", self._handle, _at(found))
        return found

    def end(self) -> None:
        """Free everything but messages."""
        self._call("end", self._handle)

    @property
    def _width(self) -> int:
        return self.problem.node.shape[-1] * (2 if self.counted else 1)

    def _sweep(self, outer: bool, exact: bool) -> float:
        moved, stuck = ctypes.c_double(), ctypes.c_int64(-1)
        enough = ctypes.c_double(self._sweep_limits[exact])
        self._call("sweep", self._handle, ctypes.c_int64(outer), enough, ctypes.byref(moved), ctypes.byref(stuck))
        self._refuse(stuck.value)
        return moved.value

    def _call(self, step: str, *arguments: Any) -> None:
        function = getattr(load_library(PARTS), f"accord_part_{step}_{NAMES[self.problem.node.dtype]}")
        status = function(*arguments)
        if step in ("read", "write", "end") or status == DONE:  # those three cannot fail
            return
        if status == OUT_OF_RANGE:
            raise FieldError("propagate: the part has edges between ghosts or to unknown nodes. Build it by cut_part.")
        if status == NO_THREADS:
            raise RuntimeError("propagate: the system refused to start threads. Call torch.set_num_threads(1).")
        raise MemoryError(
            f"propagate: the CPU kernel ran out of memory with {self.problem.arcs.num_edges} edges in this part. "
            "Use more processes on more machines."
        )

    def _refuse(self, stuck: int) -> None:
        if stuck >= 0:
            node = int(self.part.nodes[self.problem.arcs.target_of(stuck)])
            raise InfeasibleError(
                f"propagate: no state is left for node {node}: clamped labels and forbidden states or pairs contradict "
                "each other. Relax one of them."
            )


def _at(tensor: Tensor) -> ctypes.c_void_p:
    return ctypes.c_void_p(tensor.data_ptr())


def _count(tensor: Tensor) -> ctypes.c_int64:
    return ctypes.c_int64(len(tensor))
