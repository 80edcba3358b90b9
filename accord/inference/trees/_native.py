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
from accord.field import PairwiseField
from accord.inference.kernels.cpu._build import SOURCES, BuildError, Library, load_library

log = logging.getLogger("accord.inference")

FUNCTIONS = {torch.float32: "accord_trees_float32", torch.float64: "accord_trees_float64"}
TREES = Library("trees", Path(__file__).parent / "native", tuple(FUNCTIONS.values()), (SOURCES / "simd.hpp",))
SOLVED, OUT_OF_MEMORY = 0, 1  # as in native/trees.cpp; other values say why it is not solved here


class _Arguments(ctypes.Structure):
    """Mirrors `Arguments` in native/peel.hpp."""

    _fields_ = [
        *((name, ctypes.c_int64) for name in ("replicas", "nodes", "edges", "states", "graphs")),
        *((name, ctypes.c_void_p) for name in ("ends", "graph", "node", "edge")),
        *((name, ctypes.c_int64) for name in ("node_step", "edge_step")),
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


def fits(field: PairwiseField) -> bool:
    """Whether a field may be a forest that the kernel can solve; whether it has loops, the kernel finds."""
    # A forest has fewer edges than nodes, so most loopy graphs are recognised at once.
    return (
        field.structure.edge_index.shape[1] < field.structure.num_nodes
        and field.node.device.type == "cpu"
        and field.node.dtype in FUNCTIONS
        and available()
    )


@eager
def best_labels(field: PairwiseField, node: Tensor, edge: Tensor, wishes: Tensor) -> Tensor | None:
    """The best labels [R, nodes] of a forest, ties included; None where the kernel cannot say.

    That is: there are loops, a replica has no labelling without forbidden states or pairs, or the kernel does not fit.

    Args:
        field: the graphs.
        node: [R, nodes, states].
        edge: [R, edges, states, states].
        wishes: [R, nodes, states]; among its best states, each root takes the one with the highest value.
    """
    if not fits(field):
        return None
    labels = torch.empty(node.shape[:2], dtype=torch.long)
    totals = torch.empty(node.shape[0], field.num_graphs, dtype=torch.float64)
    return labels if run(field, node, edge, totals, wishes=wishes.to(node.dtype).contiguous(), labels=labels) else None


def run(field: PairwiseField, node: Tensor, edge: Tensor, totals: Tensor, **arrays: Tensor) -> bool:
    """Call the kernel on arrays that it reads or fills. False if it did not solve the field."""
    replicas, nodes, states = node.shape
    node, edge = _packed(node), _packed(edge)
    structure = field.structure
    ends, graph = structure.edge_index.contiguous(), structure.graph.contiguous()
    arguments = _Arguments(
        replicas=replicas,
        nodes=nodes,
        edges=edge.shape[1],
        states=states,
        graphs=structure.num_graphs,
        ends=ends.data_ptr(),
        graph=graph.data_ptr() if structure.num_graphs > 1 else None,
        node=node.data_ptr(),
        edge=edge.data_ptr(),
        node_step=node.stride(0),
        edge_step=edge.stride(0),
        totals=totals.data_ptr(),
        **{name: values.data_ptr() for name, values in arrays.items()},
    )
    if ends.shape[1] != edge.shape[1] or len(graph) != nodes:  # changed after they were checked
        return False
    status = getattr(load_library(TREES), FUNCTIONS[node.dtype])(ctypes.byref(arguments))
    if status == OUT_OF_MEMORY:
        raise MemoryError(f"propagate: the passes over {nodes} nodes do not fit into memory. Free memory.")
    return bool(status == SOLVED)


def _packed(values: Tensor) -> Tensor:
    """Potentials of which each replica is contiguous."""
    values = values.detach()
    return values if values[0].is_contiguous() else values.contiguous()
