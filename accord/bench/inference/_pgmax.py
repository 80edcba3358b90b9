"""PGMax (JAX) on our fields: its own factor graph with one pairwise factor an edge, its own loopy propagation."""

import importlib.util
import os
from collections.abc import Callable
from functools import partial
from types import SimpleNamespace
from typing import Any

import torch
from torch import Tensor

from accord.field import PairwiseField

# Memory for each entry of each table, and for each edge: its index arrays (64-bit on the host, 32-bit in each compiled
# program) and its Python objects. Measured on workloads a, b and d.
PGMAX_BYTES = (200, 2500)
NEEDED = ("pgmax", "jax", "numba")  # PGMax 0.6.1 also names notebooks and tensorflow, but loads none of them


def pgmax_missing(device: str) -> str | None:
    """Why PGMax cannot be used here, or None."""
    absent = [name for name in NEEDED if importlib.util.find_spec(name) is None]
    if absent:
        return f"{' and '.join(absent)} not installed; see benchmarks/README.md"
    platform = _load_jax().default_backend()
    if (platform == "cpu") != (device == "cpu"):
        return f"JAX computes on {platform}"
    return None


def _load_jax() -> Any:
    """JAX with as many CPU threads as torch, and with what PGMax 0.6.1 still asks for."""
    # Both are read when JAX starts: how many threads, and to take GPU memory as needed, since others need it as well.
    os.environ.setdefault("NPROC", str(torch.get_num_threads()))
    os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")
    import jax
    from jax.extend import backend

    if not hasattr(jax.lib, "xla_bridge"):
        # PGMax looks here for the platform, to warn users of TPUs; JAX has moved it.
        jax.lib.xla_bridge = SimpleNamespace(get_backend=backend.get_backend)
    return jax


def prepare_pgmax(
    field: PairwiseField, semiring: str
) -> tuple[Callable[[int], Any], Callable[[Any], Tensor], Callable[[], None]]:
    """Build the factor graph.

    Returns:
        A function that does so many sweeps from the start, compiled for each number of sweeps at its first use; one
        that makes unnormalised node beliefs [nodes, states] of what that returns; and one that gives memory back.
    """
    jax = _load_jax()
    from pgmax import fgraph, fgroup, infer, vgroup

    variables = vgroup.NDVarArray(num_states=field.num_states, shape=(field.num_nodes,))
    names = variables[:]
    pairs = [[names[source], names[target]] for source, target in field.edge_index.T.tolist()]
    graph = fgraph.FactorGraph(variable_groups=variables)
    tables = fgroup.PairwiseFactorGroup(variables_for_factors=pairs, log_potential_matrix=field.edge.cpu().numpy())
    graph.add_factors(tables)
    inference = infer.BP(graph.bp_state, temperature=1.0 if semiring == "sum" else 0.0)
    start = inference.init(evidence_updates={variables: field.node.cpu().numpy()})
    solve = jax.jit(partial(inference.run, damping=0.0), static_argnames="num_iters")

    def run(sweeps: int) -> Any:
        return jax.block_until_ready(solve(start, num_iters=sweeps))

    def totals(state: Any) -> Tensor:
        # By way of DLPack there would be no copy, but JAX's memory is read-only and torch warns of it.
        return torch.tensor(jax.device_get(inference.get_beliefs(state)[variables]), device=field.node.device)

    return run, totals, jax.clear_caches
