"""Where figures were taken, and how much memory is left there."""

import os
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import torch

from accord._memory import available_memory

PEER_PACKAGES = ("triton", "jax", "jaxlib", "pgmax")


def describe_machine(device: str) -> dict[str, object]:
    """All that a reader needs to judge a figure: hardware, versions, threads, and what else was going on."""
    from accord.experiments import provenance

    told: dict[str, object] = {**provenance(torch.device(device))}
    told["processor"] = _processor()
    told["instructions"] = torch.backends.cpu.get_cpu_capability()
    told["cores"] = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    told["caches"] = _caches()
    told["threads"] = torch.get_num_threads()
    told["memory_bytes"] = available_bytes("cpu")
    if device == "cuda":
        told["cuda"] = torch.version.cuda
        told["gpu_memory_bytes"] = torch.cuda.get_device_properties(0).total_memory
    for name in PEER_PACKAGES:
        try:
            told[name] = version(name)
        except PackageNotFoundError:
            told[name] = None
    # Above 0 before anything was run: others use the machine, and figures are noisy.
    told["load_before"] = os.getloadavg()[0] if hasattr(os, "getloadavg") else None
    return told


def available_bytes(device: str) -> int:
    """Memory that a program may still take; where the system does not tell, 8 GB are assumed."""
    return available_memory(torch.device(device)) or 8 * 10**9


def _processor() -> str:
    for line in _lines("/proc/cpuinfo"):
        if line.startswith("model name"):
            return line.split(":", 1)[1].strip()
    return "unknown"


def _caches() -> str:
    """Sizes by level, as the first core sees them."""
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
