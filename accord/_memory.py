"""How much memory is available, and how much a piece of work takes, on the CPU or on a GPU.

On Linux, available CPU memory is the least of what the machine has left and what each control group around this process
has left: containers and batch systems kill a process that exceeds the limit of its group, however much the machine has.
"""

import gc
from collections.abc import Callable, Iterator
from pathlib import Path, PurePosixPath
from typing import NamedTuple

import torch

OUT_OF_MEMORY = ("can't allocate memory", "not enough memory")  # messages of torch's own allocator
PROC = Path("/proc")  # where the Linux kernel describes the machine and this process
RESET_PEAK = "5"  # tells Linux to forget the largest size of a process


class _GroupFiles(NamedTuple):
    """Names that a version of control groups gives to the files of a group."""

    limit: str
    used: str
    reclaimable: tuple[str, ...]  # entries of memory.stat that count as used, but are freed when memory is needed


VERSION_1 = _GroupFiles("memory.limit_in_bytes", "memory.usage_in_bytes", ("total_active_file", "total_inactive_file"))
VERSION_2 = _GroupFiles("memory.max", "memory.current", ("active_file", "inactive_file", "slab_reclaimable"))


def available_memory(device: torch.device) -> int | None:
    """Bytes that this process can still allocate; None if the system does not report it."""
    if device.type == "cuda":
        free, _ = torch.cuda.mem_get_info(device)
        # What torch has reserved and not handed out is available too.
        return int(free + torch.cuda.memory_reserved(device) - torch.cuda.memory_allocated(device))
    if device.type != "cpu":
        return None
    left = [*_left_in_groups()]
    if (machine := _kilobytes(PROC / "meminfo", "MemAvailable")) is not None:
        left.append(machine)
    return min(left) if left else None


def peak_memory(work: Callable[[], object], device: torch.device) -> int | None:
    """Run `work`, and return its peak in bytes above what was in use before; None if that cannot be measured."""
    release_memory(device)
    if device.type == "cuda":
        torch.cuda.init()  # statistics can be reset only after that
        before = torch.cuda.memory_reserved(device)
        torch.cuda.reset_peak_memory_stats(device)
        work()
        return int(torch.cuda.max_memory_reserved(device) - before)
    resident = resident_memory() if device.type == "cpu" and forget_peak() else None
    work()
    peak = resident_memory(peak=True)
    return None if resident is None or peak is None else max(peak - resident, 0)


def resident_memory(peak: bool = False) -> int | None:
    """Bytes of this process that are in memory, or their largest number since `forget_peak`; None if not on Linux."""
    return _kilobytes(PROC / "self" / "status", "VmHWM" if peak else "VmRSS")


def forget_peak() -> bool:
    """Reset the largest size that Linux remembers of this process; False where that is not possible."""
    try:
        (PROC / "self" / "clear_refs").write_text(RESET_PEAK)
    except OSError:
        return False
    return True


def is_out_of_memory(error: BaseException) -> bool:
    """Whether an error says that memory ran out, on any device."""
    if isinstance(error, (torch.OutOfMemoryError, MemoryError)):
        return True
    return isinstance(error, RuntimeError) and any(words in str(error) for words in OUT_OF_MEMORY)


def release_memory(device: torch.device) -> None:
    """Free memory that nothing refers to any more."""
    gc.collect()
    if device.type == "cuda":
        torch.cuda.empty_cache()


def _left_in_groups() -> Iterator[int]:
    """Bytes left under the limit of each control group that this process is in, outer groups included."""
    own = dict(_own_groups())
    for line in _lines(PROC / "self" / "mountinfo"):
        mount, _, filesystem = line.partition(" - ")
        fields, (kind, _, options) = mount.split(), (filesystem.split() + [""] * 3)[:3]
        version_1 = kind == "cgroup" and "memory" in options.split(",")
        files = VERSION_1 if version_1 else VERSION_2
        if len(fields) < 5 or not (version_1 or kind == "cgroup2") or files not in own:
            continue
        shown, top = PurePosixPath(fields[3]), Path(fields[4])  # the group that is mounted, and where
        # A container may see its own group at the top while its path is that from outside. Then the top is all it sees.
        inside = own[files].relative_to(shown) if own[files].is_relative_to(shown) else PurePosixPath()
        folder = top / inside
        for group in (folder, *folder.parents):
            if group.is_relative_to(top) and (left := _left_in(group, files)) is not None:
                yield left


def _own_groups() -> Iterator[tuple[_GroupFiles, PurePosixPath]]:
    """The control groups of this process that account for memory."""
    for line in _lines(PROC / "self" / "cgroup"):
        _, controllers, path = (line.split(":", 2) + [""] * 2)[:3]
        if "memory" in controllers.split(","):
            yield VERSION_1, PurePosixPath(path)
        elif not controllers:
            yield VERSION_2, PurePosixPath(path)


def _left_in(group: Path, files: _GroupFiles) -> int | None:
    """Bytes left in one control group; None if it sets no limit."""
    try:
        limit, used = int((group / files.limit).read_text()), int((group / files.used).read_text())
    except (OSError, ValueError):  # no such file, or the limit is "max"
        return None
    reclaimable = sum(_entry(group / "memory.stat", name) or 0 for name in files.reclaimable)
    return min(max(limit - used + reclaimable, 0), limit)


def _kilobytes(path: Path, name: str) -> int | None:
    """A line `name: number kB` of a file of the Linux kernel, in bytes."""
    found = _entry(path, f"{name}:")
    return None if found is None else 1024 * found


def _entry(path: Path, name: str) -> int | None:
    """The number after a name in a file of the Linux kernel."""
    rows = (line.split() for line in _lines(path))
    return next((int(row[1]) for row in rows if row[:1] == [name] and row[1:] and row[1].isdecimal()), None)


def _lines(path: Path) -> list[str]:
    """The lines of a file; none if it cannot be read."""
    try:
        return path.read_text().splitlines()
    except OSError:
        return []
