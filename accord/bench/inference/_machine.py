"""The machine that figures are taken on, and how much of its memory is free."""

import os
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import torch

from accord._memory import available_memory
from accord.experiments import provenance

PEER_PACKAGES = ("triton", "jax", "jaxlib", "pgmax")
ASSUMED_BYTES = 8 * 10**9  # where the system does not report its memory
USABLE_SHARE = 0.9  # of the free memory


def describe_machine(device: str) -> dict[str, object]:
    """Hardware, versions, threads and load: what a reader needs to judge a figure."""
    facts: dict[str, object] = {**provenance(torch.device(device))}
    facts["processor"] = processor_name()
    facts["instructions"] = torch.backends.cpu.get_cpu_capability()
    facts["cores"] = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    facts["caches"] = _caches()
    facts["threads"] = torch.get_num_threads()
    facts["memory_bytes"] = available_bytes("cpu")
    if device == "cuda":
        facts["cuda"] = torch.version.cuda
        facts["gpu_memory_bytes"] = torch.cuda.get_device_properties(0).total_memory
    for name in PEER_PACKAGES:
        try:
            facts[name] = version(name)
        except PackageNotFoundError:
            facts[name] = None
    # A load above 0 before the run means that other processes use the machine, and figures are noisy.
    facts["load_before"] = os.getloadavg()[0] if hasattr(os, "getloadavg") else None
    return facts


def available_bytes(device: str) -> int:
    """Memory that a program may still take."""
    return available_memory(torch.device(device)) or ASSUMED_BYTES


def fits_in_memory(needed: int, device: str) -> bool:
    """Whether so many bytes can be taken without exhausting the memory."""
    return needed <= USABLE_SHARE * available_bytes(device)


def processor_name() -> str:
    """The processor's model name, or "unknown"."""
    for line in _lines("/proc/cpuinfo"):
        if line.startswith("model name"):
            return line.split(":", 1)[1].strip()
    return "unknown"


def _caches() -> str:
    """Sizes of the first core's caches by level."""
    found = []
    for folder in sorted(Path("/sys/devices/system/cpu/cpu0/cache").glob("index*")):
        level, kind, size = ("".join(_lines(str(folder / name))) for name in ("level", "type", "size"))
        if kind != "Instruction":
            found.append(f"L{level} {size}")
    return ", ".join(found)


def _lines(path: str) -> list[str]:
    try:
        return Path(path).read_text().splitlines()
    except OSError:
        return []
