"""How time is measured: the time of one sweep without set-up, and the bandwidth of copying memory."""

import math
import statistics
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial

import torch

from accord.errors import OptionError
from accord.inference import Semiring

LEAST_SECONDS = 0.15  # difference between the compared runs, large against the clock and stray interruptions
LEAST_SHARE = 0.5  # of the short run's time, for the same difference
LONG_SECONDS = 2.0  # longer runs are timed once
MAX_SWEEPS = 100_000
CLOCK = 1e-9  # resolution in seconds; no sweep is reported to be faster
GROWTH = 32  # largest factor between tried numbers of sweeps, since the first differences may be noise
COPY_SECONDS = 0.0005  # a single copy in cache is shorter than the clock can measure
COPYING_SECONDS = 0.3  # many short tries, so that some are undisturbed on a shared machine
MEMORY_BYTES = {"cpu": 2**30, "cuda": 2**32}  # a working set that no cache holds


@dataclass(frozen=True)
class BenchOptions:
    """How figures are taken.

    Attributes:
        device: "cpu" or "cuda".
        semiring: "sum" or "max".
        peers: whether other programs are timed as well.
        repeats: every figure is the median of this many measurements.
        threads: CPU threads of every program; None for torch's setting.
    """

    device: str = "cpu"
    semiring: Semiring = "sum"
    peers: bool = True
    repeats: int = 5
    threads: int | None = None

    def __post_init__(self) -> None:
        if self.device not in ("cpu", "cuda"):
            raise OptionError(f"bench: device {self.device!r} is unknown. Choose cpu or cuda.")
        if self.device == "cuda" and not torch.cuda.is_available():
            raise OptionError("bench: torch finds no CUDA device. Choose --device cpu.")
        if self.semiring not in ("sum", "max"):
            raise OptionError(f"bench: semiring {self.semiring!r} is unknown. Choose sum or max.")

    @contextmanager
    def in_force(self) -> Iterator[None]:
        """Set torch's number of threads, and restore it afterwards."""
        before = torch.get_num_threads()
        torch.set_num_threads(self.threads or before)
        try:
            yield
        finally:
            torch.set_num_threads(before)


@dataclass(frozen=True)
class SweepTime:
    """Time of one sweep in seconds.

    Attributes:
        sweep: median over repeats of (run with many sweeps - run with few) / (many - few).
        lowest: the smallest of these quotients.
        highest: the largest of them.
        noisy: whether their range is wider than half the median.
        setup: time of a run apart from its sweeps: the median run with few sweeps, minus these.
        few: number of sweeps of the short runs.
        many: number of sweeps of the long runs.
    """

    sweep: float
    lowest: float
    highest: float
    noisy: bool
    setup: float
    few: int
    many: int


def wait_for(device: str) -> None:
    """Wait until a GPU has finished its work."""
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
    """Time of one sweep: the difference of runs with many and few sweeps, so that set-up cancels.

    Args:
        run: runs the given number of sweeps from the start; it has run before.
        device: "cpu" or "cuda".
        repeats: number of pairs of a short and a long run.
        fewest: number of sweeps of the shortest useful run.
        compiles: whether the first run with each number of sweeps compiles and must not be counted.
    """

    def take(sweeps: int) -> float:
        if compiles:
            run(sweeps)
        taken = seconds_of(partial(run, sweeps), device)
        # A disturbed short run would look like a long one, so short runs are timed twice.
        return taken if taken > LONG_SECONDS else min(taken, seconds_of(partial(run, sweeps), device))

    few, many = fewest, fewest + 1
    short, long = take(few), take(many)
    # The longer the set-up, the more it varies from run to run.
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
        many = min(4 * many, MAX_SWEEPS)  # the disturbance of the short runs exceeded the time of the long ones
        take(many)
    sweep = max(sweep, CLOCK)
    setup = max(statistics.median(before for before, _ in pairs) - few * sweep, 0.0)
    noisy = max(slopes) - min(slopes) > sweep / 2
    return SweepTime(sweep, min(slopes), max(slopes), noisy, setup, few, many)


def copy_bandwidth(working_set: int, device: str, repeats: int) -> float:
    """Bytes per second of `torch.Tensor.copy_` between two buffers that together have the size of the working set.

    Read and written bytes both count, so a copy moves the working set once. It uses torch's number of threads. The
    fastest of many tries counts, where other figures are medians: a disturbed copy is not a bound.
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


def memory_bandwidth(options: BenchOptions) -> float:
    """Copy bandwidth of main memory, or of the GPU's memory."""
    return copy_bandwidth(MEMORY_BYTES[options.device], options.device, options.repeats)


def bandwidth_at(working_set: int, options: BenchOptions, from_memory: float) -> float:
    """Copy bandwidth for a working set of this size, given that of main memory."""
    bandwidth = copy_bandwidth(working_set, options.device, options.repeats)
    # No cache is slower than main memory: a slower copy means that another process was using the machine. On a GPU a
    # small copy may be slower because of its launch.
    return max(bandwidth, from_memory) if options.device == "cpu" else bandwidth
