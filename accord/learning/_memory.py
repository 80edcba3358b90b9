"""How much memory there is, and how much a piece of work takes: measured, on a GPU or in the machine's own."""

import gc
from collections.abc import Callable
from pathlib import Path

import torch

CPU_TROUBLE = ("can't allocate memory", "not enough memory")  # what torch's own allocator says
LIMITS = ((Path("/sys/fs/cgroup/memory.max"), Path("/sys/fs/cgroup/memory.current")),)  # of a container
RESET_PEAK = "5"  # what Linux takes as a wish to forget a process's largest size


def available_memory(device: torch.device) -> int | None:
    """Bytes that can still be had; None where the system does not tell."""
    release_memory(device)
    if device.type == "cuda":
        free, _ = torch.cuda.mem_get_info(device)
        return int(free)
    if device.type != "cpu":
        return None
    left = [] if (found := _kilobytes(Path("/proc/meminfo"), "MemAvailable")) is None else [found]
    for limit, used in LIMITS:
        try:
            left.append(int(limit.read_text()) - int(used.read_text()))
        except (OSError, ValueError):  # no such limit, or "max"
            continue
    return min(left) if left else None


def peak_memory(work: Callable[[], object], device: torch.device) -> int | None:
    """Bytes that `work` takes at its peak, beyond what was in use before; None where that cannot be measured."""
    release_memory(device)
    if device.type == "cuda":
        torch.cuda.init()  # statistics can be reset only once there are some
        before = torch.cuda.memory_reserved(device)
        torch.cuda.reset_peak_memory_stats(device)
        work()
        return int(torch.cuda.max_memory_reserved(device) - before)
    status = Path("/proc/self/status")
    try:
        Path("/proc/self/clear_refs").write_text(RESET_PEAK)
    except OSError:
        return None
    before_cpu = _kilobytes(status, "VmRSS")
    work()
    peak = _kilobytes(status, "VmHWM")
    return None if before_cpu is None or peak is None else max(peak - before_cpu, 0)


def is_out_of_memory(error: BaseException) -> bool:
    """Whether an error says that memory ran out, on whichever device."""
    if isinstance(error, (torch.OutOfMemoryError, MemoryError)):
        return True
    return isinstance(error, RuntimeError) and any(words in str(error) for words in CPU_TROUBLE)


def release_memory(device: torch.device) -> None:
    """Give back what nothing refers to any more."""
    gc.collect()
    if device.type == "cuda":
        torch.cuda.empty_cache()


def _kilobytes(path: Path, name: str) -> int | None:
    """A line `name: number kB` of a file of the Linux kernel, in bytes."""
    try:
        lines = path.read_text().splitlines()
    except OSError:
        return None
    return next((int(line.split()[1]) * 1024 for line in lines if line.startswith(f"{name}:")), None)
