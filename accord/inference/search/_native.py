"""The search of the C++ kernel: pointers in, labels and bounds of connected components out."""

import ctypes
import threading
from collections.abc import Callable
from pathlib import Path

import numpy as np

from accord.inference.kernels.cpu._build import Library, load_library
from accord.inference.search._ragged import Components, Ragged

MAXIMISE = Library("maximise", Path(__file__).parent / "native", ("accord_maximise",))
ALL_WAYS = 15
MOST = 0.2  # seconds of a turn with a fixed amount of work
LOOK = 0.1  # seconds between looks for an interrupt
PATIENCE = 2.0  # seconds; a longer search can be interrupted, for which it needs a thread of its own
LATER = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.POINTER(ctypes.c_int64))
SOLVED, OUT_OF_MEMORY = 0, 1  # what the kernel returns, as in native/maximise.cpp


class _Arguments(ctypes.Structure):
    """Mirrors `Arguments` in native/model/arguments.hpp."""

    _fields_ = [
        *((name, ctypes.c_int64) for name in ("nodes", "factors")),
        *((name, ctypes.c_void_p) for name in ("at", "scope_at", "scope", "table_at", "unary", "tables", "start")),
        *((name, ctypes.c_int64) for name in ("replica", "own", "distinct")),
        ("budget", ctypes.c_double),
        ("used", ctypes.c_double),
        ("work", ctypes.c_double),
        ("most", ctypes.c_double),
        ("patience", ctypes.c_double),
        ("threads", ctypes.c_int64),
        ("ways", ctypes.c_int64),
        ("seed", ctypes.c_uint64),
        ("stop", ctypes.c_void_p),
        ("later", LATER),
        *((name, ctypes.c_void_p) for name in ("labels", "component", "score", "bound")),
        *((name, ctypes.c_void_p) for name in ("method", "proof", "infeasible")),
        ("components", ctypes.c_int64),
    ]


def load() -> None:
    """Compile or load the kernel.

    Raises:
        BuildError: it cannot be compiled.
    """
    load_library(MAXIMISE)


def solve(
    model: Ragged,
    budget: float,
    seed: int,
    used: float = 0.0,
    work: float = 0.0,
    ways: int = ALL_WAYS,
    start: np.ndarray | None = None,
    threads: int = 1,
    most: float = MOST,
    patience: float = 0.0,
    later: Callable[[], np.ndarray | None] | None = None,
) -> Components:
    """Search every connected component for at most `budget` seconds in all.

    Args:
        model: the field.
        budget: seconds.
        seed: of the random choices.
        used: seconds of the budget that have passed. Apart from the budget, because what is tried depends on that.
        work: where it is not 0, every component gets one turn of a fixed amount of work: so many seconds for each node
            on a usual machine, and a little for each edge. The result then does not depend on time, if the budget
            suffices, nor on the other components.
        ways: methods that may be used besides the dual, as bits: 1 elimination, 2 mini-buckets, 4 local search,
            8 branching.
        start: [nodes], labels from which the search begins; -1 leaves a node open. Components that are all open begin
            from nothing.
        threads: with more than one, a second thread also searches for labels. They are used where the first has not
            proved its own best, so that a search that ends early stays repeatable.
        most: with `work`, seconds of work of a component's turn, however large it is.
        patience: with `work`, seconds of work of further turns, where nothing allowed was found in the first.
        later: called once, if a short search leaves a component unsolved: further labels of the field itself,
            [replicas, nodes], from which the search goes on; or None.
    """
    nodes = model.num_nodes
    whole, real = np.zeros((2, nodes), dtype=np.int64), np.zeros((2, nodes))
    small = np.zeros((3, nodes), dtype=np.int32)
    stop = np.zeros(1, dtype=np.int32)
    inputs = {
        "at": model.at,
        "scope_at": model.scope_at,
        "scope": model.scope,
        "table_at": model.table_at,
        "unary": model.unary,
        "tables": model.tables,
    }
    if start is not None:
        inputs["start"] = start

    def write_later(labels: "ctypes._Pointer[ctypes.c_int64]") -> int:
        found = later() if later is not None else None
        if found is None:
            return 0
        np.ctypeslib.as_array(labels, (nodes,))[:] = model.places(model.whole(found))
        return 1

    inputs = {name: np.ascontiguousarray(values) for name, values in inputs.items()}
    arguments = _Arguments(
        nodes=nodes,
        factors=model.num_factors,
        **{name: values.ctypes.data for name, values in inputs.items()},
        replica=len(model.graph),
        own=model.num_own,
        distinct=model.distinct,
        budget=budget,
        used=used,
        work=work,
        most=most,
        patience=patience,
        threads=threads,
        ways=ways,
        seed=seed,
        stop=stop.ctypes.data,
        later=LATER(write_later) if later is not None else LATER(),
        labels=whole[0].ctypes.data,
        component=whole[1].ctypes.data,
        score=real[0].ctypes.data,
        bound=real[1].ctypes.data,
        method=small[0].ctypes.data,
        proof=small[1].ctypes.data,
        infeasible=small[2].ctypes.data,
        components=0,
    )
    status = _call(arguments, stop if work == 0 and budget > PATIENCE else None)
    if status != SOLVED:
        raise MemoryError(
            f"maximise: the search ran out of memory with {nodes} nodes and {model.num_factors} factors. "
            "Free memory, or solve fewer graphs or replicas at a time."
        )
    count = arguments.components
    return Components(
        whole[0], whole[1], real[1, :count], small[0, :count], small[1, :count], small[2, :count].astype(bool)
    )


def _call(arguments: _Arguments, stop: np.ndarray | None) -> int:
    """The kernel's status. With `stop`, an interrupt of the main thread ends the search before it is raised."""
    kernel = load_library(MAXIMISE).accord_maximise
    if stop is None:
        return int(kernel(ctypes.byref(arguments)))
    status: list[int] = []
    done = threading.Event()  # not thread.join(): an interrupt makes a thread that still runs look finished

    def run() -> None:
        try:
            status.append(kernel(ctypes.byref(arguments)))
        finally:
            done.set()

    threading.Thread(target=run).start()
    try:
        while not done.wait(LOOK):
            pass
    except BaseException:
        stop[0] = 1
        done.wait()
        raise
    return status[0]
