"""Elimination by the C++ kernel: a flat field in, totals, beliefs, labels and samples out."""

import ctypes
import logging
from functools import lru_cache
from pathlib import Path

import torch
from torch import Tensor

from accord._eager import eager
from accord.field.factors import FlatField
from accord.inference.exact._limits import Limits, too_large_clique, too_large_tables
from accord.inference.exact._solution import Solution, belief_starts
from accord.inference.kernels.cpu._build import BuildError, Library, load_library

log = logging.getLogger("accord.inference")

ELIMINATE = Library("eliminate", Path(__file__).parent / "native", ("accord_eliminate",))
SOLVED, OUT_OF_MEMORY, CLIQUE_TOO_LARGE, TABLES_TOO_LARGE = range(4)  # as in native/eliminate.cpp
SEED = 0  # of the elimination orders, so that equal fields get equal results


class _Arguments(ctypes.Structure):
    """Mirrors `Arguments` in native/model.hpp."""

    _fields_ = [
        *((name, ctypes.c_int64) for name in ("replicas", "table_replicas", "nodes", "factors", "graphs")),
        *((name, ctypes.c_void_p) for name in ("at", "scope_at", "scope", "table_at", "graph", "unary", "tables")),
        *((name, ctypes.c_int64) for name in ("unary_size", "table_size")),
        *((name, ctypes.c_double) for name in ("max_table", "max_tables")),
        *((name, ctypes.c_int64) for name in ("seed", "maximise")),
        *((name, ctypes.c_void_p) for name in ("belief_at", "totals", "unary_beliefs", "factor_beliefs")),
        ("belief_size", ctypes.c_int64),
        ("labels", ctypes.c_void_p),
        ("samples", ctypes.c_int64),
        *((name, ctypes.c_void_p) for name in ("uniform", "sampled", "clique")),
        ("clique_size", ctypes.c_int64),
        ("entries", ctypes.c_double),
    ]


@lru_cache(maxsize=1)
def available() -> bool:
    """Whether the kernel can be used on this machine. Compiles it at the first call."""
    try:
        load_library(ELIMINATE)
    except BuildError as error:
        log.warning("eliminate_beliefs: the fast CPU kernel is not available, so torch is used: %s.", error)
        return False
    return True


def solve(flat: FlatField, semiring: str, limits: Limits) -> Solution:
    """Totals, beliefs and best labels of a field on the CPU.

    Raises:
        TooLargeError: it is too wide for the limits.
    """
    starts = belief_starts(flat)
    shape = (len(flat.unary), int(starts[-1]))
    found = Solution(
        totals=torch.zeros(len(flat.unary), flat.num_graphs, dtype=torch.float64),
        unary=torch.empty(flat.unary.shape, dtype=torch.float64),
        factors=torch.empty(shape, dtype=torch.float64),
        labels=torch.zeros(len(flat.unary), flat.num_nodes, dtype=torch.long),
    )
    outputs = {"totals": found.totals, "unary_beliefs": found.unary, "factor_beliefs": found.factors}
    _call(flat, limits, semiring, starts, labels=found.labels, **outputs)
    return found


def sample(flat: FlatField, uniform: Tensor, limits: Limits) -> tuple[Tensor, Tensor]:
    """Samples [R, nodes, samples], and log Z [R, graphs]; the samples are valid if that is finite everywhere.

    Args:
        flat: the field.
        uniform: [R, nodes, samples], independent numbers from [0, 1).
        limits: of the tables.

    Raises:
        TooLargeError: the field is too wide for the limits.
    """
    totals = torch.zeros(len(flat.unary), flat.num_graphs, dtype=torch.float64)
    sampled = torch.zeros(uniform.shape, dtype=torch.long)
    uniform = uniform.double().contiguous()
    _call(flat, limits, "sum", None, totals=totals, uniform=uniform, sampled=sampled)
    return sampled, totals


@eager
def _call(flat: FlatField, limits: Limits, semiring: str, starts: Tensor | None, **arrays: Tensor) -> None:
    """Run the kernel on arrays by name, which it reads or fills; `starts` are those of factor beliefs."""
    names = ("at", "scope_at", "scope", "table_at", "graph")
    inputs = {name: getattr(flat, name).contiguous() for name in names}
    inputs |= {name: getattr(flat, name).detach().double().contiguous() for name in ("unary", "tables")}
    if starts is not None:
        inputs["belief_at"] = starts
    clique = torch.zeros(flat.num_nodes, dtype=torch.long)
    replicas = len(flat.unary)
    arguments = _Arguments(
        replicas=replicas,
        table_replicas=len(flat.tables),
        nodes=flat.num_nodes,
        factors=flat.num_factors,
        graphs=flat.num_graphs,
        unary_size=flat.unary.shape[1],
        table_size=flat.tables.shape[1],
        max_table=limits.one // max(replicas, 1),
        max_tables=limits.all // max(replicas, 1),
        seed=SEED,
        maximise=semiring == "max",
        belief_size=0 if starts is None else int(starts[-1]),
        samples=arrays["uniform"].shape[2] if "uniform" in arrays else 0,
        clique=clique.data_ptr(),
        **{name: values.data_ptr() for name, values in (inputs | arrays).items()},
    )
    status = load_library(ELIMINATE).accord_eliminate(ctypes.byref(arguments))
    if status == CLIQUE_TOO_LARGE:
        members = clique[: arguments.clique_size]
        possible = (inputs["unary"] > -torch.inf).any(0)
        sizes = [int(possible[flat.at[node] : flat.at[node + 1]].sum()) for node in members.tolist()]
        raise too_large_clique(sizes, replicas, limits)
    if status == TABLES_TOO_LARGE:
        raise too_large_tables(arguments.clique_size, int(arguments.entries) * max(replicas, 1), limits)
    if status == OUT_OF_MEMORY:
        raise MemoryError(
            f"{limits.where}: the tables of {flat.num_nodes} nodes and {flat.num_factors} factors do not fit into "
            "memory. Free memory, lower max_table, or solve fewer graphs or replicas at a time."
        )
