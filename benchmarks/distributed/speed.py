"""Sweeps a second of partitioned propagation beside one process with as many threads, and the bytes that are sent."""

import os
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from statistics import median
from typing import Any

import torch
import torch.distributed as dist
from load import OTHERS, TRIES, machine_seconds, seconds_of
from processes import Processes
from torch import Tensor

from accord.distributed import Halo, cut_field, cut_part, partition, propagate
from accord.field import PairwiseField
from accord.inference import propagate as propagate_whole

FEW, MANY = 2, 42  # sweeps of the two runs whose difference is the time of a sweep
CHECKED = 10  # sweeps after which beliefs are compared, in float64
AGREE = 1e-6
COUNTS = (1, 2, 4)  # processes, and threads
WAYS = ("processes", "waiting", "threads")  # the second: the exchange ends before any edge is processed

Row = dict[str, Any]


def grid(edges: int) -> Tensor:
    """Neighbours in a square."""
    side = round((edges / 2) ** 0.5)
    numbers = torch.arange(side * side).reshape(side, side)
    across = torch.stack([numbers[:, :-1].flatten(), numbers[:, 1:].flatten()])
    return torch.cat([across, torch.stack([numbers[:-1].flatten(), numbers[1:].flatten()])], 1)


def power_law(edges: int) -> Tensor:
    """Each node joins five earlier ones, mostly old ones: a few nodes have a large share of all edges."""
    draw = torch.Generator().manual_seed(0)
    target = torch.arange(1, edges // 5).repeat_interleave(5)
    source = (torch.rand(len(target), generator=draw, dtype=torch.float64) ** 3 * target).long()
    return torch.unique(torch.stack([source, target]), dim=1)


def citation(edges: int) -> Tensor:
    """Papers in fields of 500: each cites about two, nine in ten of the same field, in no order of numbers."""
    draw = torch.Generator().manual_seed(0)
    nodes = edges // 2
    source = torch.arange(nodes).repeat_interleave(2)
    near = source // 500 * 500 + torch.randint(0, 500, source.shape, generator=draw)
    far = torch.randint(0, nodes, source.shape, generator=draw)
    target = torch.where(torch.rand(source.shape, generator=draw) < 0.9, near, far).clamp(max=nodes - 1)
    ends = torch.randperm(nodes, generator=draw)[torch.stack([source, target])].sort(0).values
    return torch.unique(ends[:, ends[0] < ends[1]], dim=1)


GRAPHS: dict[str, Callable[[int], Tensor]] = {"grid": grid, "power law": power_law, "citation": citation}
CASES = (("grid", 3), ("power law", 3), ("citation", 3), ("grid", 2), ("grid", 10))


def made_field(graph: str, edges: int, states: int) -> PairwiseField:
    """The same in every process."""
    index, draw = GRAPHS[graph](edges), torch.Generator().manual_seed(1)
    node = torch.randn(int(index.max()) + 1, states, generator=draw)
    edge = torch.randn(index.shape[1], states, states, generator=draw).mul_(0.4)
    return PairwiseField(index, node, edge)


def doubled(field: PairwiseField) -> PairwiseField:
    return PairwiseField(field.edge_index, field.node.double(), field.edge.double())


def lower_bound(edge_index: Tensor, owner: Tensor, ranks: int, row_bytes: int) -> int:
    """Bytes of a sweep if each node is sent once to each other process that owns a neighbour of it."""
    both = torch.cat([edge_index, edge_index.flip(0)], 1)
    crossing = both[:, owner[both[0]] != owner[both[1]]]
    return len((crossing[0] * ranks + owner[crossing[1]]).unique()) * row_bytes


# What a process of several does


def load(rank: int, ranks: int, kept: Row, graph: str, edges: int, states: int, owner: str) -> None:
    """Keep a part, and beliefs for the comparison; everything that is sent is counted from now on."""
    field = made_field(graph, edges, states)
    kept["part"] = cut_part(field.edge_index, torch.load(owner), rank, ranks)
    kept["field"], kept["sent"] = cut_field(field, kept["part"]), 0
    exchange = dist.batch_isend_irecv

    def counting(moves: list[dist.P2POp]) -> Any:
        kept["sent"] += sum(own.tensor.numel() * own.tensor.element_size() for own in moves if own.op is dist.isend)
        return exchange(moves)

    dist.batch_isend_irecv = counting


def sweep(rank: int, ranks: int, kept: Row, sweeps: int, waiting: bool = False) -> tuple[float, int]:
    """Seconds of a run, and bytes that this process sent in it."""
    kept["sent"] = 0
    post = Halo.post

    def post_and_wait(halo: Halo, parcels: Sequence[Tensor]) -> Callable[[], Tensor]:
        found = post(halo, parcels)()
        return lambda: found

    if waiting:
        Halo.post = post_and_wait
    dist.barrier()
    begun = time.perf_counter()
    propagate(kept["part"], kept["field"], max_sweeps=sweeps, tolerance=0.0, backend="native")
    Halo.post = post
    return time.perf_counter() - begun, kept["sent"]


def check(rank: int, ranks: int, kept: Row, expected: str) -> float:
    """The largest difference of a belief of an own node from that of one process, in float64."""
    part = kept["part"]
    found = propagate(part, doubled(kept["field"]), max_sweeps=CHECKED, tolerance=0.0, backend="native")
    own = torch.load(expected, mmap=True)[part.nodes[: part.num_own]]
    return float((found.node[: part.num_own].exp() - own.exp()).abs().max())


def sweep_alone(rank: int, ranks: int, kept: Row, threads: int, sweeps: int) -> float:
    """Seconds of a run of one process with several threads."""
    torch.set_num_threads(threads)
    begun = time.perf_counter()
    propagate_whole(kept["field"], max_sweeps=sweeps, tolerance=0.0, backend="native")
    return time.perf_counter() - begun


def load_whole(rank: int, ranks: int, kept: Row, graph: str, edges: int, states: int, expected: str) -> None:
    """Keep the whole field, and write beliefs for the comparison."""
    kept["field"] = made_field(graph, edges, states)
    whole = doubled(kept["field"])
    torch.save(propagate_whole(whole, max_sweeps=CHECKED, tolerance=0.0, backend="native").node, expected)


# All ways in turn


def busy_seconds(own: Sequence[int | None]) -> tuple[float, float]:
    """Processor seconds of all other programs, and seconds of all cores, since the machine was started."""
    busy, whole = machine_seconds()
    return busy - sum(map(seconds_of, own)), whole


def compare(graph: str, edges: int, states: int, rounds: int, folder: Path) -> list[Row]:
    """A row for each number of processes: seconds of a sweep, the median of rounds in which all ways take turns.

    A round during which other programs took more than `OTHERS` of the machine does not count and is repeated.
    """
    index = GRAPHS[graph](edges)
    nodes, expected = int(index.max()) + 1, str(folder / "expected.pt")
    alone, groups = Processes(1), {count: Processes(count) for count in COUNTS}
    try:
        alone.run(load_whole, graph, edges, states, expected)
        rows = []
        for count, group in groups.items():
            owner = partition(index, nodes, count)
            torch.save(owner, folder / "owner.pt")
            group.run(load, graph, edges, states, str(folder / "owner.pt"))
            worst = max(group.run(check, expected))
            assert worst <= AGREE, f"{graph}: beliefs of {count} processes differ from those of one by {worst}"
            bound = lower_bound(index, owner, count, 4 * states)
            shape = {"graph": graph, "states": states, "nodes": nodes, "edges": index.shape[1]}
            rows.append({**shape, "count": count, "difference": worst, "bytes_bound": bound})
        own = [os.getpid(), *(process.pid for group in (alone, *groups.values()) for process in group.started)]
        for row in rows:
            row.update({f"rounds_{way}": [] for way in WAYS}, others=[], disturbed=0)
        for _ in range(TRIES * rounds):
            for row in rows:
                if len(row["others"]) == rounds:
                    continue
                taken, sent, before = {}, {}, busy_seconds(own)
                for sweeps in (FEW, MANY):
                    found = groups[row["count"]].run(sweep, sweeps)
                    sent[sweeps] = sum(bytes_sent for _, bytes_sent in found)
                    taken["processes", sweeps] = max(seconds for seconds, _ in found)
                    found = groups[row["count"]].run(sweep, sweeps, True)
                    taken["waiting", sweeps] = max(seconds for seconds, _ in found)
                    taken["threads", sweeps] = alone.run(sweep_alone, row["count"], sweeps)[0]
                others, whole = (after - one for after, one in zip(busy_seconds(own), before, strict=True))
                row["bytes_sweep"] = (sent[MANY] - sent[FEW]) / (MANY - FEW)
                if others > OTHERS * whole:
                    row["disturbed"] += 1
                    continue
                row["others"].append(others / whole)
                for way in WAYS:
                    row[f"rounds_{way}"].append((taken[way, MANY] - taken[way, FEW]) / (MANY - FEW))
        for row in rows:
            if len(row["others"]) < rounds:
                raise RuntimeError(f"{graph}, {states}: other programs left {len(row['others'])} rounds undisturbed.")
            for way in WAYS:
                row[f"seconds_{way}"] = median(row[f"rounds_{way}"])
        return rows
    finally:
        for group in (alone, *groups.values()):
            group.__exit__(None, None, None)
