"""The compiled passes over forests on CPUs.

They peel leaves, add and compare in the same order and precision as the plain version in `decoding/_decoding.py`, so
labels are the same to the bit, ties included.
"""

import ctypes
import logging
from functools import lru_cache
from pathlib import Path

import torch
from torch import Tensor

from accord._eager import eager
from accord.inference.kernels.cpu._build import SOURCES, BuildError, Library, load_library
from accord.inference.trees._pairs import Pairs

log = logging.getLogger("accord.inference")

FUNCTIONS = {torch.float32: "accord_trees_float32", torch.float64: "accord_trees_float64"}
TREES = Library("trees", Path(__file__).parent / "native", tuple(FUNCTIONS.values()), (SOURCES / "simd.hpp",))
SOLVED, OUT_OF_MEMORY = 0, 1  # as in native/trees.cpp; other values say why it is not solved here


class _Arguments(ctypes.Structure):
    """Mirrors `Arguments` in native/peel.hpp."""

    _fields_ = [
        *((name, ctypes.c_int64) for name in ("replicas", "nodes", "edges", "states", "graphs")),
        *((name, ctypes.c_void_p) for name in ("ends", "graph", "at", "table_at", "node", "edge")),
        *((name, ctypes.c_int64) for name in ("node_step", "edge_step", "gradient_step")),
        *((name, ctypes.c_void_p) for name in ("totals", "wishes", "labels", "weight")),
        *((name, ctypes.c_void_p) for name in ("node_gradient", "edge_gradient")),
    ]


@lru_cache(maxsize=1)
def available() -> bool:
    """Whether the kernel can be used on this machine. Compiles it at the first call."""
    try:
        load_library(TREES)
    except BuildError as error:
        log.warning("propagate: the fast CPU kernel for forests is not available, so torch is used: %s.", error)
        return False
    return True


def fits(pairs: Pairs) -> bool:
    """Whether a field may be a forest that the kernel can solve; whether it has loops, the kernel finds."""
    node = pairs.node
    return pairs.may_be_forest and node.device.type == "cpu" and node.dtype in FUNCTIONS and available()


@eager
def best_labels(pairs: Pairs, wishes: Tensor) -> Tensor | None:
    """The best labels [R, nodes] of a forest, ties included; None where the kernel cannot say.

    That is: there are loops, a replica has no labelling without forbidden states or pairs, or the kernel does not fit.

    Args:
        pairs: the field.
        wishes: shaped like the node potentials; among its best states, each root takes the one with the highest value.
    """
    if not fits(pairs):
        return None
    replicas = len(pairs.node)
    labels = torch.empty(replicas, len(pairs.graph), dtype=torch.long)
    totals = torch.empty(replicas, pairs.num_graphs, dtype=torch.float64)
    wishes = wishes.to(pairs.node.dtype).contiguous()
    return labels if run(pairs, totals, wishes=wishes, labels=labels) else None


def run(pairs: Pairs, totals: Tensor, **arrays: Tensor) -> bool:
    """Call the kernel on arrays that it reads or fills. False if it did not solve the field."""
    node, edge = _packed(pairs.node), _packed(pairs.edge)
    ends, graph = pairs.ends.contiguous(), pairs.graph.contiguous()
    if pairs.table_at is None and (ends.shape[1] != edge.shape[1] or len(graph) != node.shape[1]):
        return False  # changed after they were checked
    arguments = _Arguments(
        replicas=len(node),
        nodes=len(graph),
        edges=ends.shape[1],
        states=pairs.states,
        graphs=pairs.num_graphs,
        ends=ends.data_ptr(),
        graph=graph.data_ptr() if pairs.num_graphs > 1 else None,
        at=None if pairs.at is None else pairs.at.data_ptr(),
        table_at=None if pairs.table_at is None else pairs.table_at.data_ptr(),
        node=node.data_ptr(),
        edge=edge.data_ptr(),
        node_step=node.stride(0),
        edge_step=edge.stride(0) if len(edge) > 1 else 0,
        gradient_step=arrays["edge_gradient"][0].numel() if "edge_gradient" in arrays and len(edge) > 1 else 0,
        totals=totals.data_ptr(),
        **{name: values.data_ptr() for name, values in arrays.items()},
    )
    status = getattr(load_library(TREES), FUNCTIONS[node.dtype])(ctypes.byref(arguments))
    if status == OUT_OF_MEMORY:
        raise MemoryError(f"propagate: the passes over {len(graph)} nodes do not fit into memory. Free memory.")
    return bool(status == SOLVED)


def _packed(values: Tensor) -> Tensor:
    """Potentials of which each replica is contiguous."""
    values = values.detach()
    return values if values[0].is_contiguous() else values.contiguous()
