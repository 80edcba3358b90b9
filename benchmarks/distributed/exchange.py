"""Seconds of an exchange between two processes of one machine over gloo, by its bytes: for the calculator."""

import time
from typing import Any

import numpy as np
import torch
import torch.distributed as dist
from processes import Processes

from accord.distributed import Halo

STATES = 3
ROWS = (10, 1_000, 10_000, 100_000, 1_000_000)  # that each of the two sends, and receives
REPEATS = 21

Row = dict[str, Any]


def measure() -> Row:
    """The time of each size, and seconds of a message and of a byte by least squares of relative errors."""
    rows = []
    with Processes(2) as processes:
        for count in ROWS:
            taken = processes.run(_exchange, count)
            rows.append({"bytes": count * STATES * 4, "seconds": max(taken)})
    known = np.array([(1.0, row["bytes"]) for row in rows])
    seconds = np.array([row["seconds"] for row in rows])
    (message, byte), *_ = np.linalg.lstsq(known / seconds[:, None], np.ones(len(rows)), rcond=None)
    worst = float(np.abs(known @ (message, byte) / seconds - 1).max())
    return {"rows": rows, "seconds_message": float(message), "seconds_byte": float(byte), "worst_error": worst}


def _exchange(rank: int, ranks: int, kept: Row, count: int) -> float:
    """The median time of an exchange in which every fourth node of a process is a border node."""
    border = torch.randperm(4 * count, generator=torch.Generator().manual_seed(rank))[:count].sort().values
    send, receive = [border[:0], border[:0]], [0, 0]
    send[1 - rank], receive[1 - rank] = border, count
    halo, values = Halo(4 * count, send, receive), torch.rand(5 * count, STATES)
    taken = []
    for _ in range(REPEATS):
        dist.barrier()
        begun = time.perf_counter()
        halo.exchange(values)
        taken.append(time.perf_counter() - begun)
    return float(np.median(taken))
