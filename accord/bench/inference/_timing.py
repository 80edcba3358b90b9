"""How time is taken: seconds of one sweep without set-up, and the speed at which memory is copied."""

import math
import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import torch

LEAST_SECONDS = 0.15  # by which the runs compared differ, so that the clock and a stray interruption matter little
LEAST_SHARE = 0.5  # of the short run, by which they differ
LONG_SECONDS = 2.0  # beyond which a single look has to do
MAX_SWEEPS = 100_000
CLOCK = 1e-9  # seconds that it tells apart; nothing is reported to be faster
GROWTH = 32  # at most so much further at each step, since the first differences may be noise
COPY_SECONDS = 0.0005  # a single copy in cache is over sooner than the clock can tell
COPYING_SECONDS = 0.3  # many short tries, so that some go undisturbed on a machine that others use


@dataclass(frozen=True)
class SweepTime:
    """Seconds.

    Attributes:
        sweep: median over repeats of (run with many sweeps - run with few) / (many - few).
        lowest: the smallest of them.
        highest: the largest of them.
        noisy: whether they lie further apart than half the median.
        setup: what a run takes beside its sweeps: the median run with few sweeps, less these.
        few: sweeps of the short runs.
        many: sweeps of the long runs.
    """

    sweep: float
    lowest: float
    highest: float
    noisy: bool
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


def time_sweeps(
    run: Callable[[int], object], device: str, repeats: int, fewest: int = 1, compiles: bool = False
) -> SweepTime:
    """Time of one sweep by the difference of runs with many and few sweeps, so that set-up drops out.

    Args:
        run: does so many sweeps from the start, and has run before.
        device: "cpu" or "cuda".
        repeats: how many pairs of a short and a long run.
        fewest: sweeps of the shortest run that makes sense.
        compiles: whether the first run with each number of sweeps is not to be counted.
    """

    def take(sweeps: int) -> float:
        if compiles:
            run(sweeps)
        taken = seconds_of(partial(run, sweeps), device)
        # A short run that was disturbed would be taken for a long one.
        return taken if taken > LONG_SECONDS else min(taken, seconds_of(partial(run, sweeps), device))

    few, many = fewest, fewest + 1
    short, long = take(few), take(many)
    # The longer the set-up, the further it strays from run to run.
    wanted = max(LEAST_SECONDS, LEAST_SHARE * short)
    while long - short < wanted and many < MAX_SWEEPS:
        slope = max((long - short) / (many - few), CLOCK)
        further = min(math.ceil(1.1 * wanted / slope), GROWTH * (many - few), MAX_SWEEPS)
        many = few + max(further, 2 * (many - few))
        long = take(many)
    while True:
        short_run, long_run = partial(run, few), partial(run, many)
        pairs = [(seconds_of(short_run, device), seconds_of(long_run, device)) for _ in range(repeats)]
        slopes = [(after - before) / (many - few) for before, after in pairs]
        sweep = statistics.median(slopes)
        if sweep > 0 or many >= MAX_SWEEPS:
            break
        many = min(4 * many, MAX_SWEEPS)  # others disturbed the short runs by more than the long ones took
        take(many)
    sweep = max(sweep, CLOCK)
    setup = max(statistics.median(before for before, _ in pairs) - few * sweep, 0.0)
    noisy = max(slopes) - min(slopes) > sweep / 2
    return SweepTime(sweep, min(slopes), max(slopes), noisy, setup, few, many)


def copy_bandwidth(working_set: int, device: str, repeats: int) -> float:
    """Bytes a second of `torch.Tensor.copy_` between two buffers that together are as large as the working set.

    Read and written bytes both count: a copy moves the working set once. As many threads take part as torch is set to.
    The fastest of many tries counts, where all else takes medians: a copy that was disturbed is no bound.
    """
    source = torch.ones(max(working_set // 8, 1024), device=device)
    target = torch.zeros_like(source)
    once = min(seconds_of(lambda: target.copy_(source), device) for _ in range(3))
    copies = max(1, math.ceil(COPY_SECONDS / max(once, 1e-6)))

    def run() -> None:
        for _ in range(copies):
            target.copy_(source)

    tries: list[float] = []
    while len(tries) < repeats or sum(tries) < COPYING_SECONDS:
        tries.append(seconds_of(run, device))
    return 8 * len(source) * copies / min(tries)
