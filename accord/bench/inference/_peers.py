"""The programs that are timed: Accord, its reference, plain torch, torch.compile of the same, and PGMax.

Each takes the same field and runs a given number of synchronous, undamped sweeps from uniform messages, so all must
reach the same beliefs.
"""

import importlib.util
import os
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from types import SimpleNamespace
from typing import Any

import torch
from torch import Tensor

from accord.field import PairwiseField
from accord.inference import Semiring, propagate

OURS = "accord"
# Bytes for each entry of a table: both directions (8), their sum with the cavities, and two temporaries of logsumexp.
TORCH_CELL_BYTES = 32
# PGMax's index arrays (64-bit on the host, 32-bit in each compiled program) and Python objects, measured on workloads
# a, b and d.
PGMAX_CELL_BYTES, PGMAX_EDGE_BYTES = 200, 2500
PGMAX_PACKAGES = ("pgmax", "jax", "numba")  # PGMax 0.6.1 also requires notebooks and tensorflow, but imports neither


@dataclass(frozen=True)
class Prepared:
    """A field made ready for sweeps.

    Attributes:
        run: runs the given number of sweeps from the start and returns its final state; it has run once.
        beliefs: turns that state into node beliefs [nodes, states] in the form of `accord.propagate`.
        fewest: number of sweeps of the shortest useful run.
        compiles: whether a program is compiled for each number of sweeps.
        backend: the kernel that does the work, where there is a choice.
        close: releases resources.
    """

    run: Callable[[int], Any]
    beliefs: Callable[[Any], Tensor]
    fewest: int = 1
    compiles: bool = False
    backend: str = ""
    close: Callable[[], None] = lambda: None


@dataclass(frozen=True)
class Peer:
    """A program that can run belief propagation.

    Attributes:
        name: short name, as in the json files.
        title: name in tables and plots.
        prepare: takes a field and a semiring.
        missing: returns why it cannot run on a device, or None.
        cell_bytes: memory for each entry of each edge's table, in addition to the table itself.
        edge_bytes: further memory for each edge.
    """

    name: str
    title: str
    prepare: Callable[[PairwiseField, Semiring], Prepared]
    missing: Callable[[str], str | None] = lambda device: None
    cell_bytes: int = 0
    edge_bytes: int = 0

    def bytes_for(self, field: PairwiseField) -> int:
        """Estimated memory in addition to the field."""
        states = field.num_states
        return field.num_edges * (states**2 * self.cell_bytes + states * 64 + self.edge_bytes)


def normalise(totals: Tensor, semiring: Semiring) -> Tensor:
    """Log-beliefs that sum to one ("sum"), or whose best state is 0 ("max")."""
    return totals.log_softmax(-1) if semiring == "sum" else totals - totals.amax(-1, keepdim=True)


def prepare_accord(field: PairwiseField, semiring: Semiring, backend: str = "auto") -> Prepared:
    """`accord.propagate`, as users call it."""

    def run(sweeps: int) -> Any:
        return propagate(field, semiring, max_sweeps=sweeps, tolerance=0.0, backend=backend)

    return Prepared(run, lambda beliefs: beliefs.node, backend=run(1).backend)


def sweep_plainly(table: Tensor, source: Tensor, target: Tensor, node: Tensor, messages: Tensor, best: bool) -> Tensor:
    """One sweep in plain torch: gather, add, reduce, normalise. Arc a and arc a + edges are reverses."""
    beliefs = node.index_add(0, target, messages)
    cavity = beliefs[source] - messages.roll(len(messages) // 2, 0)
    scores = table + cavity[:, :, None]
    new = scores.amax(1) if best else scores.logsumexp(1)
    return normalise(new, "max" if best else "sum")


def prepare_torch(field: PairwiseField, semiring: Semiring, compiled: bool = False) -> Prepared:
    """Plain torch in log space, or torch.compile of the same."""
    table = torch.cat([field.edge, field.edge.transpose(-1, -2)])
    source, target = torch.cat([field.edge_index, field.edge_index.flip(0)], 1)
    sweep = sweep_plainly
    if compiled:
        torch._dynamo.reset()  # otherwise shapes that differ between workloads are compiled as dynamic
        sweep = torch.compile(sweep_plainly, dynamic=False)

    def run(sweeps: int) -> Tensor:
        messages = table.new_zeros(len(source), field.num_states)
        for _ in range(sweeps):
            messages = sweep(table, source, target, field.node, messages, semiring == "max")
        return messages

    def beliefs(messages: Tensor) -> Tensor:
        return normalise(field.node.index_add(0, target, messages), semiring)

    run(1)  # compiles, or touches memory for the first time
    return Prepared(run, beliefs, close=torch._dynamo.reset if compiled else lambda: None)


def pgmax_missing(device: str) -> str | None:
    """Why PGMax cannot run here, or None."""
    absent = [name for name in PGMAX_PACKAGES if importlib.util.find_spec(name) is None]
    if absent:
        return f"{' and '.join(absent)} not installed; see benchmarks/README.md"
    platform = _load_jax().default_backend()
    if (platform == "cpu") != (device == "cpu"):
        return f"JAX computes on {platform}"
    return None


def _load_jax() -> Any:
    """JAX with as many CPU threads as torch, and with a function that PGMax 0.6.1 still needs."""
    # JAX reads both when it starts. Without preallocation it leaves GPU memory to the other programs.
    os.environ.setdefault("NPROC", str(torch.get_num_threads()))
    os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")
    import jax
    from jax.extend import backend

    if not hasattr(jax.lib, "xla_bridge"):
        # PGMax asks here for the platform, to warn users of TPUs; JAX has moved the function.
        jax.lib.xla_bridge = SimpleNamespace(get_backend=backend.get_backend)
    return jax


def prepare_pgmax(field: PairwiseField, semiring: Semiring) -> Prepared:
    """PGMax: a factor graph with one pairwise factor for each edge, solved by its own loopy propagation."""
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

    def beliefs(state: Any) -> Tensor:
        # DLPack would avoid the copy, but JAX's memory is read-only and torch warns about that.
        totals = jax.device_get(inference.get_beliefs(state)[variables])
        return normalise(torch.tensor(totals, device=field.node.device), semiring)

    # One sweep is a special program in PGMax, so the shortest run has two.
    return Prepared(run, beliefs, fewest=2, compiles=True, close=jax.clear_caches)


PEERS = {
    peer.name: peer
    for peer in (
        # Accord's kernels need little memory beside the field, so Accord is never left out.
        Peer(OURS, "Accord", prepare_accord),
        Peer("reference", "reference", partial(prepare_accord, backend="reference"), cell_bytes=TORCH_CELL_BYTES),
        Peer("torch", "plain torch", prepare_torch, cell_bytes=TORCH_CELL_BYTES),
        Peer("compiled", "compiled torch", partial(prepare_torch, compiled=True), cell_bytes=TORCH_CELL_BYTES),
        Peer("pgmax", "PGMax", prepare_pgmax, pgmax_missing, PGMAX_CELL_BYTES, PGMAX_EDGE_BYTES),
    )
}
