"""Peak memory of one call of `accord.propagate`.

On a GPU torch counts it. On a CPU the call runs in its own process, so that nothing else is counted.
"""

import ctypes
import json
import subprocess
import sys
from contextlib import suppress
from typing import Any, cast

import torch

from accord._memory import forget_peak, release_memory, resident_memory
from accord.bench.inference._machine import fits_in_memory
from accord.bench.inference._timing import BenchOptions
from accord.bench.inference._workloads import Workload, growth_workload
from accord.errors import AccordError
from accord.inference import propagate

MEMORY_SWEEPS = 2  # memory does not depend on the number of sweeps
PROGRAM = "from accord.bench.inference._peak_memory import main; main()"


def measure_peak_memory(workload: Workload, options: BenchOptions) -> dict[str, Any]:
    """Peak memory of making and solving a field, and its ratio to the memory of tables and messages.

    Args:
        workload: one of `growth_workload`: the process that measures draws it again from its number of edges.
        options: device, semiring and threads.
    """
    least = workload.table_and_message_bytes
    if not fits_in_memory(workload.needed_bytes, options.device):
        return {"edges": workload.edges, "tables_and_messages": least, "skipped": "too little memory is free"}
    held = _held_on_gpu(workload, options) if options.device == "cuda" else _held_by_process(workload, options)
    return {"edges": workload.edges, "tables_and_messages": least, **held, "ratio": held["peak"] / least}


def _held_on_gpu(workload: Workload, options: BenchOptions) -> dict[str, int]:
    before = torch.cuda.memory_allocated()
    field = workload.make_field("cuda")
    held = torch.cuda.memory_allocated() - before
    torch.cuda.reset_peak_memory_stats()  # drawing the graph is not part of solving it
    propagate(field, options.semiring, max_sweeps=MEMORY_SWEEPS, tolerance=0.0)
    return {"field": held, "peak": torch.cuda.max_memory_allocated() - before}


def _held_by_process(workload: Workload, options: BenchOptions) -> dict[str, int]:
    arguments = [str(workload.edges), options.semiring, str(torch.get_num_threads())]
    done = subprocess.run([sys.executable, "-c", PROGRAM, *arguments], capture_output=True, text=True, check=False)
    if done.returncode:
        raise AccordError(f"bench: memory could not be measured: {done.stderr.strip()[-500:]}")
    return cast(dict[str, int], json.loads(done.stdout))


def measure_this_process(edges: int, semiring: Any, threads: int) -> dict[str, int]:
    """Bytes of the field, and bytes at the peak, both in addition to what solving a tiny field left in memory."""
    torch.set_num_threads(threads)
    propagate(growth_workload(1000).make_field("cpu"), semiring, max_sweeps=1, tolerance=0.0)
    release_freed_memory()
    before = resident_bytes()
    field = growth_workload(edges).make_field("cpu")
    release_freed_memory()
    held = resident_bytes() - before
    forget_peak()  # drawing a graph is not part of solving it
    propagate(field, semiring, max_sweeps=MEMORY_SWEEPS, tolerance=0.0)
    return {"field": held, "peak": resident_bytes(peak=True) - before}


def resident_bytes(peak: bool = False) -> int:
    """Resident memory now, or its peak since the last reset; where Linux is missing, the peak of the whole process."""
    found = resident_memory(peak)
    if found is not None:
        return found
    import resource  # not on every system

    return (1 if sys.platform == "darwin" else 1024) * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


def release_freed_memory() -> None:
    """Return freed memory to the system, which would otherwise count it as resident."""
    release_memory(torch.device("cpu"))
    with suppress(OSError, AttributeError):  # not glibc
        ctypes.CDLL(None).malloc_trim(0)


def main() -> None:
    """Print the measurement of this process as JSON; arguments are edges, semiring and threads."""
    print(json.dumps(measure_this_process(int(sys.argv[1]), sys.argv[2], int(sys.argv[3]))))
