"""Spanning tree probabilities by the C++ kernel."""

import ctypes
import logging
from functools import lru_cache
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from accord.inference.kernels.cpu._build import BuildError, Library, load_library

log = logging.getLogger("accord.inference")

SPANNING = Library("spanning", Path(__file__).parent / "exact" / "native", ("accord_spanning",))
BUDGET = 3e9  # operations of an exact solution: some seconds
STEPS = 1e8  # of random walks, for one block: some seconds
LEAST, MOST = 16, 64  # trees; the more of them, the fewer steps each takes


class _Arguments(ctypes.Structure):
    """Mirrors `Arguments` in exact/native/spanning.cpp."""

    _fields_ = [
        *((name, ctypes.c_int64) for name in ("nodes", "edges")),
        *((name, ctypes.c_void_p) for name in ("source", "target")),
        *((name, ctypes.c_double) for name in ("budget", "steps")),
        *((name, ctypes.c_int64) for name in ("least", "most")),
        ("seed", ctypes.c_uint64),
        ("probability", ctypes.c_void_p),
        ("sampled", ctypes.c_int64),
    ]


@lru_cache(maxsize=1)
def available() -> bool:
    """Whether the kernel can be used on this machine. Compiles it at the first call."""
    try:
        load_library(SPANNING)
    except BuildError as error:
        log.warning("spanning_tree_probabilities: the fast CPU kernel is not available, so scipy is used: %s.", error)
        return False
    return True


def probabilities(source: NDArray[np.int64], target: NDArray[np.int64], num_nodes: int) -> NDArray[np.float64]:
    """Probability of each edge [edges]; blocks that are too wide for BUDGET are sampled."""
    source, target = (np.ascontiguousarray(ends, dtype=np.int64) for ends in (source, target))
    found = np.empty(source.size)
    arguments = _Arguments(
        nodes=num_nodes,
        edges=source.size,
        source=source.ctypes.data,
        target=target.ctypes.data,
        budget=BUDGET,
        steps=STEPS,
        least=LEAST,
        most=MOST,
        seed=0,
        probability=found.ctypes.data,
    )
    if load_library(SPANNING).accord_spanning(ctypes.byref(arguments)):
        raise MemoryError(
            f"spanning_tree_probabilities: {num_nodes} nodes and {source.size} edges do not fit into memory. "
            "Free memory, or solve fewer graphs at a time."
        )
    if arguments.sampled:
        log.info("spanning_tree_probabilities: %d of %d edges are averages over trees.", arguments.sampled, source.size)
    return found
