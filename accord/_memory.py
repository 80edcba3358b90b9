"""How much memory is available, and how much a piece of work takes, on the CPU or on a GPU."""

import gc
from collections.abc import Callable, Iterator
from pathlib import Path

import torch

OUT_OF_MEMORY = ("can't allocate memory", "not enough memory")  # messages of torch's own allocator
RESET_PEAK = "5"  # tells Linux to forget the largest size of a process
CGROUPS = Path("/sys/fs/cgroup")  # where Linux mounts control groups: containers and batch systems set limits there
OWN_CGROUPS = Path("/proc/self/cgroup")


def available_memory(device: torch.device) -> int | None:
    """Bytes that this process can still allocate; None where the system does not tell."""
    if device.type == "cuda":
        free, _ = torch.cuda.mem_get_info(device)
        # What torch has reserved and not handed out is available too.
        return int(free + torch.cuda.memory_reserved(device) - torch.cuda.memory_allocated(device))
    if device.type != "cpu":
        return None
    left = [*_left_in_cgroups()]
    if (machine := _bytes_of(Path("/proc/meminfo"), "MemAvailable")) is not None:
        left.append(machine)
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
    before_cpu = _bytes_of(status, "VmRSS")
    work()
    peak = _bytes_of(status, "VmHWM")
    return None if before_cpu is None or peak is None else max(peak - before_cpu, 0)


def is_out_of_memory(error: BaseException) -> bool:
    """Whether an error says that memory ran out, on whichever device."""
    if isinstance(error, (torch.OutOfMemoryError, MemoryError)):
        return True
    return isinstance(error, RuntimeError) and any(words in str(error) for words in OUT_OF_MEMORY)


def release_memory(device: torch.device) -> None:
    """Free what nothing refers to any more."""
    gc.collect()
    if device.type == "cuda":
        torch.cuda.empty_cache()


def _left_in_cgroups() -> Iterator[int]:
    """Bytes left under the limit of each control group that this process is in, the groups around it included."""
    try:
        lines = OWN_CGROUPS.read_text().splitlines()
    except OSError:
        return
    for line in lines:
        _, controllers, path = line.split(":", 2)
        if not controllers:  # version 2
            root, names, cached = CGROUPS, ("memory.max", "memory.current"), "inactive_file"
        elif "memory" in controllers.split(","):
            root, names = CGROUPS / "memory", ("memory.limit_in_bytes", "memory.usage_in_bytes")
            cached = "total_inactive_file"
        else:
            continue
        inner = root / path.lstrip("/")
        # A container may see its own group as the root, and yet be told the path from outside.
        for folder in (inner, *inner.parents) if inner.is_dir() else (root,):
            if folder.is_relative_to(root) and (left := _left_in(folder, *names, cached)) is not None:
                yield left


def _left_in(folder: Path, limit: str, used: str, cached: str) -> int | None:
    """Bytes left in one control group; None where it sets no limit."""
    try:
        left = int((folder / limit).read_text()) - int((folder / used).read_text())
    except (OSError, ValueError):  # no such group, or the limit is "max"
        return None
    # File contents that the kernel caches count as used, but are dropped when memory is needed.
    return max(left + (_entry(folder / "memory.stat", cached) or 0), 0)


def _bytes_of(path: Path, name: str) -> int | None:
    """A line `name: number kB` of a file of the Linux kernel, in bytes."""
    found = _entry(path, f"{name}:")
    return None if found is None else 1024 * found


def _entry(path: Path, name: str) -> int | None:
    """The number behind a name in a file of the Linux kernel."""
    try:
        lines = path.read_text().splitlines()
    except OSError:
        return None
    return next((int(line.split()[1]) for line in lines if line.split()[:1] == [name]), None)
