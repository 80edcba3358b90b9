"""Memory and time of `accord.propagate` on large graphs, called as users call it.

    python benchmarks/inference/big_graphs.py                  # 10^5 to 10^7 edges on the CPU
    python benchmarks/inference/big_graphs.py --alone          # the same with one thread, in processor time
    python benchmarks/inference/big_graphs.py --device cuda    # 10^5 to 10^8 edges on the GPU

Uniform random graphs with five edges per node and three states, float32. Every size runs in its own process. The unit
of memory is tables + messages: 4 (K^2 + 2 K) bytes per edge. A step's peak does not include memory held before it; on
CPUs it is the resident set (Linux only), on GPUs torch's allocations. The time of a sweep is the slope between two
runs, each the best of three. Results go to benchmarks/inference/big_graphs/ as JSON and as a table.
"""

import argparse
import ctypes
import json
import logging
import os
import subprocess
import sys
import time
from collections.abc import Callable
from datetime import date
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

import accord
from accord._files import write_json, write_text
from accord.bench.inference._machine import processor_name

FOLDER = Path(__file__).parent / "big_graphs"
STATES, DEGREE = 3, 5  # edges for each node
LARGEST_DECODED = 10**7.5  # edges; beyond that, decoding on the CPU takes minutes
FEW, MANY, RUNS = 2, 22, 3  # sweeps of the two runs, and how often each is run


def random_edges(nodes: int, edges: int, generator: torch.Generator) -> Tensor:
    """Distinct undirected edges, uniformly drawn, in no order."""
    device = generator.device
    ends = torch.randint(0, nodes, (2, edges + edges // 64 + 64), generator=generator, device=device)
    low, high = torch.minimum(ends[0], ends[1]), torch.maximum(ends[0], ends[1])
    key = (low * nodes + high)[low != high].unique()
    key = key[torch.randperm(len(key), generator=generator, device=device)[:edges]]
    assert len(key) == edges
    return torch.stack([key // nodes, key % nodes])


class Gauge:
    """Peak memory of one step after another, in bytes."""

    def __init__(self, device: str, alone: bool = False) -> None:
        self.on_gpu = device != "cpu"
        self.clock = time.process_time if alone else time.perf_counter

    def peak(self, step: Callable[[], Any]) -> tuple[int, float, Any]:
        """Peak bytes beyond those held before, seconds, and the step's result."""
        if self.on_gpu:
            torch.cuda.synchronize()
            torch.cuda.reset_peak_memory_stats()
            before = torch.cuda.memory_allocated()
        else:
            ctypes.CDLL(None).malloc_trim(0)  # otherwise a step reuses memory that an earlier one freed
            Path("/proc/self/clear_refs").write_text("5")  # resets VmHWM
            before = _resident("VmRSS")
        begun = self.clock()
        result = step()
        if self.on_gpu:
            torch.cuda.synchronize()
        seconds = self.clock() - begun
        most = torch.cuda.max_memory_allocated() if self.on_gpu else _resident("VmHWM")
        return most - before, seconds, result


def _resident(name: str) -> int:
    lines = Path("/proc/self/status").read_text().splitlines()
    return int(next(line for line in lines if line.startswith(name)).split()[1]) * 1024


class _Listener(logging.Handler):
    """Keeps what propagate logs about its memory."""

    def __init__(self) -> None:
        super().__init__()
        self.said: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.said.append(record.getMessage())


def measure(edges: int, device: str, alone: bool) -> dict[str, Any]:
    """One size, in this process."""
    nodes, gauge, listener = edges // DEGREE, Gauge(device, alone), _Listener()
    log = logging.getLogger("accord.inference")
    log.addHandler(listener)
    log.setLevel(logging.INFO)
    generator = torch.Generator(device).manual_seed(0)
    index = random_edges(nodes, edges, generator)
    node = torch.randn(nodes, STATES, generator=generator, device=device)
    edge = torch.randn(edges, STATES, STATES, generator=generator, device=device).mul_(0.5)
    warm = accord.PairwiseField(index[:, :1], node, edge[:1])
    accord.propagate(warm, max_sweeps=1).decode()  # kernels compiled and loaded
    del warm
    listener.said.clear()
    result: dict[str, Any] = {"edges": edges, "nodes": nodes, "unit_bytes": 4 * edges * (STATES**2 + 2 * STATES)}

    def note(name: str, step: Callable[[], Any]) -> Any:
        taken, seconds, value = gauge.peak(step)
        result[name] = {"bytes": taken, "units": taken / result["unit_bytes"], "seconds": seconds}
        return value

    field = note("PairwiseField", lambda: accord.PairwiseField(index, node, edge))
    beliefs = note("propagate", lambda: accord.propagate(field, max_sweeps=MANY, tolerance=0.0))
    result["backend"], result["said"] = beliefs.backend, [line for line in listener.said if " GB" in line]
    note("log_partition", lambda: beliefs.log_partition)
    if edges <= LARGEST_DECODED:
        note("decode", beliefs.decode)
        note("edge beliefs", lambda: beliefs.edge)
    few, many = (best_time(field, sweeps, gauge) for sweeps in (FEW, MANY))
    result["seconds_a_sweep"] = (many - few) / (MANY - FEW)
    result["seconds_around"] = few - FEW * result["seconds_a_sweep"]
    return result


def best_time(field: accord.PairwiseField, sweeps: int, gauge: Gauge) -> float:
    """Seconds of a whole call, best of several."""
    return min(gauge.peak(lambda: accord.propagate(field, max_sweeps=sweeps, tolerance=0.0))[1] for _ in range(RUNS))


def machine(device: str) -> dict[str, Any]:
    """The machine and its load."""
    return {
        "device": torch.cuda.get_device_name() if device != "cpu" else processor_name(),
        "cores": os.cpu_count(),
        "threads": torch.get_num_threads(),
        "load": os.getloadavg()[0],
        "torch": torch.__version__,
        "date": date.today().isoformat(),
    }


COLUMNS = ("PairwiseField", "propagate", "log_partition", "decode", "edge beliefs")


def table(report: dict[str, Any]) -> str:
    """The results as Markdown."""
    facts = report["machine"]
    lines = [
        f"# Large graphs on {facts['device']}",
        "",
        f"`python benchmarks/inference/big_graphs.py --device {report['device']}"
        f"{' --alone' if report['alone'] else ''}`, "
        f"threads: {facts['threads']} of {facts['cores']} cores, load {facts['load']:.1f}, torch {facts['torch']}, "
        f"{facts['date']}. K={STATES}, float32, {DEGREE} edges per node."
        + (" Times are processor time." if report["alone"] else ""),
        "",
        "Peaks in units of tables + messages (60 bytes per edge), without the memory held before each step.",
        "",
        "| edges | unit | " + " | ".join(COLUMNS) + " | ms per sweep | ns per edge | s outside sweeps |",
        "|" + "---|" * (len(COLUMNS) + 5),
    ]
    for row in report["sizes"]:
        peaks = " | ".join(f"{row[name]['units']:.2f}x" if name in row else "-" for name in COLUMNS)
        sweep = row["seconds_a_sweep"]
        lines.append(
            f"| {row['edges']:.3g} | {row['unit_bytes'] / 1e9:.3f} GB | {peaks} | {sweep * 1e3:.2f} | "
            f"{sweep / row['edges'] * 1e9:.2f} | {row['seconds_around']:.2f} |"
        )
    lines += ["", "Memory that `propagate` announced, and memory that it took:", ""]
    for row in report["sizes"]:
        if row["said"]:
            lines.append(f"- {row['said'][0]} Measured: {row['propagate']['bytes'] / 1e9:.2f} GB ({row['backend']}).")
    return "\n".join(lines) + "\n"


def main() -> None:
    """Measure every size in its own process, and write the results."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--alone", action="store_true", help="one thread, processor time: for shared machines")
    parser.add_argument("--smallest", type=float, default=5.0, help="exponent of the smallest number of edges")
    parser.add_argument("--largest", type=float, help="exponent of the largest number of edges")
    parser.add_argument("--out", type=Path, default=FOLDER, help="folder for the results")
    parser.add_argument("--one", type=int, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.one:
        if options.alone:
            torch.set_num_threads(1)
        print(json.dumps(measure(options.one, options.device, options.alone)))
        return
    largest = options.largest or (7 if options.device == "cpu" else 8)
    sizes = []
    exponent = options.smallest
    while exponent <= largest:
        command = [sys.executable, __file__, "--one", str(round(10**exponent)), "--device", options.device]
        command += ["--alone"] if options.alone else []
        done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
        sizes.append(json.loads(done.stdout.splitlines()[-1]))
        print(done.stdout.splitlines()[-1], flush=True)
        exponent += 0.5
    if options.alone:
        torch.set_num_threads(1)
    report = {"device": options.device, "alone": options.alone, "machine": machine(options.device), "sizes": sizes}
    write_json(options.out / f"{options.device}.json", report)
    write_text(options.out / f"{options.device}.md", table(report))


if __name__ == "__main__":
    main()
