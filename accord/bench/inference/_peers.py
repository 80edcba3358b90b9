"""Who is timed: Accord, its own reference, the plainest torch version, torch.compile of that, and PGMax.

Each takes the same field and does a given number of synchronous, undamped sweeps from messages that say nothing, so all
must arrive at the same beliefs.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import torch
from torch import Tensor

from accord.bench.inference._pgmax import PGMAX_BYTES, pgmax_missing, prepare_pgmax
from accord.field import PairwiseField
from accord.inference import Semiring, propagate


@dataclass(frozen=True)
class Prepared:
    """A field made ready to be swept.

    Attributes:
        run: does so many sweeps from the start and returns whatever it ends with; it has run once.
        beliefs: from that, node beliefs [nodes, states] in the form of `accord.propagate`.
        fewest: sweeps of the shortest run that makes sense.
        compiles: whether it compiles a program for each number of sweeps.
        backend: which kernel does the work, where there is a choice.
        close: gives back what it holds.
    """

    run: Callable[[int], Any]
    beliefs: Callable[[Any], Tensor]
    fewest: int = 1
    compiles: bool = False
    backend: str = ""
    close: Callable[[], None] = lambda: None


@dataclass(frozen=True)
class Peer:
    """Somebody who can pass messages.

    Attributes:
        name: short, as in tables.
        prepare: takes a field and a semiring.
        missing: why it cannot be used on a device, or None.
        cell_bytes: memory it takes for each entry of each edge's table, the table itself apart.
        edge_bytes: memory it takes for each edge beside that.
    """

    name: str
    prepare: Callable[[PairwiseField, Semiring], Prepared]
    missing: Callable[[str], str | None] = lambda device: None
    cell_bytes: int = 0
    edge_bytes: int = 0

    def bytes_for(self, field: PairwiseField) -> int:
        """An estimate of what it takes beside the field."""
        states = field.num_states
        return field.num_edges * (states**2 * self.cell_bytes + states * 64 + self.edge_bytes)


def normalise(totals: Tensor, semiring: Semiring) -> Tensor:
    """Log-beliefs that sum to one ("sum"), or whose best state is 0 ("max")."""
    return totals.log_softmax(-1) if semiring == "sum" else totals - totals.amax(-1, keepdim=True)


def prepare_accord(field: PairwiseField, semiring: Semiring, backend: str = "auto") -> Prepared:
    """What users call."""

    def run(sweeps: int) -> Any:
        return propagate(field, semiring, max_sweeps=sweeps, tolerance=0.0, backend=backend)

    return Prepared(run, lambda beliefs: beliefs.node, backend=run(1).backend)


def sweep_plainly(table: Tensor, source: Tensor, target: Tensor, node: Tensor, messages: Tensor, best: bool) -> Tensor:
    """One sweep as one would write it first: gather, add, reduce, normalise. Arc a and arc a + edges are reverses."""
    beliefs = node.index_add(0, target, messages)
    cavity = beliefs[source] - messages.roll(len(messages) // 2, 0)
    said = table + cavity[:, :, None]
    new = said.amax(1) if best else said.logsumexp(1)
    return normalise(new, "max" if best else "sum")


def prepare_torch(field: PairwiseField, semiring: Semiring, compiled: bool = False) -> Prepared:
    """Plain torch in log space, or torch.compile of the same."""
    table = torch.cat([field.edge, field.edge.transpose(-1, -2)])
    source, target = torch.cat([field.edge_index, field.edge_index.flip(0)], 1)
    sweep = sweep_plainly
    if compiled:
        torch._dynamo.reset()  # or shapes that differ between workloads would be compiled as unknown
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


def _prepare_pgmax(field: PairwiseField, semiring: Semiring) -> Prepared:
    run, totals, close = prepare_pgmax(field, semiring)
    # One sweep is a program of its own there, so the shortest run has two.
    return Prepared(run, lambda state: normalise(totals(state), semiring), fewest=2, compiles=True, close=close)


# Bytes an entry: tables of both directions (8), then said, and two temporaries of logsumexp, of the same size.
TORCH_BYTES = 32
OURS = "accord"
PEERS = {
    peer.name: peer
    for peer in (
        # What our kernels take is little, and stated elsewhere: they are never left out.
        Peer(OURS, prepare_accord),
        Peer("reference", partial(prepare_accord, backend="reference"), cell_bytes=TORCH_BYTES),
        Peer("torch", prepare_torch, cell_bytes=TORCH_BYTES),
        Peer("compiled", partial(prepare_torch, compiled=True), cell_bytes=TORCH_BYTES),
        Peer("pgmax", _prepare_pgmax, pgmax_missing, *PGMAX_BYTES),
    )
}
TITLES = {
    OURS: "Accord",
    "reference": "reference",
    "torch": "plain torch",
    "compiled": "compiled torch",
    "pgmax": "PGMax",
}
