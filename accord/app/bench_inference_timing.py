"""How time is taken: seconds of one sweep without set-up, and the speed at which memory is copied."""

import math
import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass

import torch

TARGET_SECONDS = (
    0.15  # the runs compared differ by about this, so that the clock and a stray interruption matter little
)
MAX_SWEEPS = 100_000
GROWTH = 32  # at most so much further at each step, since the first differences may be noise
COPY_SECONDS = 0.02  # a single copy in cache is over sooner than the clock can tell


@dataclass(frozen=True)
class SweepTime:
    """Seconds.

    Attributes:
        sweep: median over repeats of (run with many sweeps - run with few) / (many - few).
        lowest: the smallest of them.
        highest: the largest of them.
        setup: what a run takes beside its sweeps: the median run with few sweeps, less these.
        few: sweeps of the short runs.
        many: sweeps of the long runs.
    """

    sweep: float
    lowest: float
    highest: float
    setup: float
    few: int
    many: int


def wait_for(device: str) -> None:
    """Let a GPU finish what it was given."""
    if device == "cuda":
        torch.cuda.synchronize()


def seconds_of(run: Callable[[], object], device: str) -> float:
    """Wall-clock time of one call."""
    wait_for(device)
    begun = time.perf_counter()
    run()
    wait_for(device)
    return time.perf_counter() - begun


def time_sweeps(run: Callable[[int], object], device: str, repeats: int, fewest: int = 1) -> SweepTime:
    """Time of one sweep by the difference of runs with many and few sweeps, so that set-up drops out.

    Args:
        run: does so many sweeps from the start; every number of sweeps is run once before it is timed.
        device: "cpu" or "cuda".
        repeats: how many pairs of a short and a long run.
        fewest: sweeps of the shortest run that makes sense.
    """

    def warm(sweeps: int) -> float:
        run(sweeps)
        return seconds_of(lambda: run(sweeps), device)

    few, many = fewest, fewest + 1
    short, long = warm(few), warm(many)
    while long - short < TARGET_SECONDS and many < MAX_SWEEPS:
        slope = max((long - short) / (many - few), 1e-9)
        further = min(math.ceil(1.1 * TARGET_SECONDS / slope), GROWTH * (many - few), MAX_SWEEPS)
        many = few + max(further, 2 * (many - few))
        long = warm(many)
    pairs = []
    for _ in range(repeats):
        pairs.append((seconds_of(lambda: run(few), device), seconds_of(lambda: run(many), device)))
    slopes = [(after - before) / (many - few) for before, after in pairs]
    sweep = statistics.median(slopes)
    setup = max(statistics.median(before for before, _ in pairs) - few * sweep, 0.0)
    return SweepTime(sweep, min(slopes), max(slopes), setup, few, many)


def copy_bandwidth(working_set: int, device: str, repeats: int) -> float:
    """Bytes a second of `torch.Tensor.copy_` between two buffers that together are as large as the working set.

    Read and written bytes both count: a copy moves the working set once. As many threads take part as torch is set to.
    """
    source = torch.ones(max(working_set // 8, 1024), device=device)
    target = torch.zeros_like(source)
    once = seconds_of(lambda: target.copy_(source), device)
    once = min(once, seconds_of(lambda: target.copy_(source), device))
    copies = max(1, math.ceil(COPY_SECONDS / max(once, 1e-6)))

    def run() -> None:
        for _ in range(copies):
            target.copy_(source)

    run()
    return 8 * len(source) * copies / statistics.median(seconds_of(run, device) for _ in range(repeats))
