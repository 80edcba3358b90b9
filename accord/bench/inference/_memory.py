"""Memory that one call of `accord.propagate` takes: a process of its own, so that nothing else is counted.

    python -m accord.bench.inference._memory EDGES SEMIRING THREADS

prints a line of JSON: bytes of the field, and at the peak, beyond what the process held after solving a tiny field.
"""

import ctypes
import gc
import json
import sys
from contextlib import suppress
from pathlib import Path
from typing import Any


def resident_bytes(name: str = "VmRSS") -> int:
    """Memory held now (VmRSS) or at most since the last reset (VmHWM); Linux tells, elsewhere the most ever held."""
    try:
        lines = Path("/proc/self/status").read_text().splitlines()
    except OSError:
        import resource  # not on every system

        unit = 1 if sys.platform == "darwin" else 1024
        return unit * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return next(1024 * int(line.split()[1]) for line in lines if line.startswith(f"{name}:"))


def give_back_memory() -> None:
    """Hand what was freed back to the system, or it would be counted as held."""
    gc.collect()
    with suppress(OSError, AttributeError):  # not glibc
        ctypes.CDLL(None).malloc_trim(0)


def forget_peak() -> None:
    """Start counting the peak anew, where the system can: drawing a graph is no part of solving it."""
    with suppress(OSError):
        Path("/proc/self/clear_refs").write_text("5")


def measure(edges: int, semiring: Any, threads: int) -> dict[str, int]:
    """Bytes of the field, and at the peak."""
    import torch

    from accord.bench.inference._linear import MEMORY_SWEEPS, growth_workload
    from accord.inference import propagate

    torch.set_num_threads(threads)
    propagate(growth_workload(1000).make_field("cpu"), semiring, max_sweeps=1, tolerance=0.0)
    give_back_memory()
    before = resident_bytes()
    field = growth_workload(edges).make_field("cpu")
    give_back_memory()
    held = resident_bytes() - before
    forget_peak()
    propagate(field, semiring, max_sweeps=MEMORY_SWEEPS, tolerance=0.0)
    return {"field": held, "peak": resident_bytes("VmHWM") - before}


if __name__ == "__main__":
    print(json.dumps(measure(int(sys.argv[1]), sys.argv[2], int(sys.argv[3]))))
