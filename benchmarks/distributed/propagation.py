"""Partitioned belief propagation: speed beside threads, bytes sent, memory, and 10^8 edges. Linux only.

    python benchmarks/distributed/propagation.py             # 1, 2 and 4 processes of one thread beside threads
    python benchmarks/distributed/propagation.py --memory    # bytes and seconds of an edge, for the calculator
    python benchmarks/distributed/propagation.py --exchange  # seconds of a message and of a byte, for the calculator
    python benchmarks/distributed/propagation.py --huge      # 10^8 edges on 4 processes, within 20 GiB
    python benchmarks/distributed/propagation.py --gpu       # 1, 2 and 4 processes that share one GPU
    python benchmarks/distributed/propagation.py --redraw    # the page of the stored figures

Each command replaces its own figures in results/distributed/propagation.json, and writes the page beside it. The first
one stores each case as soon as it is there; `--case` measures one alone.
"""

import argparse
import json
import os
from datetime import date
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import exchange
import memory
import shared_gpu
import speed
import torch
from report import page

from accord._files import write_json, write_text
from accord.bench.inference._machine import processor_name

FOLDER = Path(__file__).parents[2] / "results" / "distributed"
Row = dict[str, Any]


def machine() -> Row:
    """The machine and its load before the run."""
    facts = {"processor": processor_name(), "cores": os.cpu_count(), "load": os.getloadavg()[0]}
    return {**facts, "torch": torch.__version__, "date": date.today().isoformat()}


def measure_speed(graph: str, states: int, edges: int, rounds: int) -> Row:
    """A graph and a number of states."""
    facts = machine()
    with TemporaryDirectory() as folder:
        rows = speed.compare(graph, edges, states, rounds, Path(folder))
    print(rows[-1], flush=True)
    return {"graph": graph, "states": states, "machine": facts, "rounds": rounds, "rows": rows}


def measure_memory(share: float) -> Row:
    """Fits for each number of states; `share` makes all sizes smaller."""
    found: Row = {"machine": machine(), "fits": []}
    for states, sizes in memory.NODES.items():
        found["fits"].append(memory.fit(states, tuple(int(share * size) for size in sizes)))
        print({name: value for name, value in found["fits"][-1].items() if name != "rows"}, flush=True)
    return found


def measure_gpu(edges: int) -> Row:
    """All graphs, with parts on one GPU."""
    found: Row = {"machine": {**machine(), "gpu": torch.cuda.get_device_name()}, "rows": []}
    with TemporaryDirectory() as folder:
        for graph, states in shared_gpu.CASES:
            found["rows"] += shared_gpu.compare(graph, edges, states, Path(folder))
            print(found["rows"][-1], flush=True)
    return found


def main() -> None:
    """Measure what was asked for, and write it."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--case", choices=[f"{graph} {states}" for graph, states in speed.CASES], help="of speed")
    parser.add_argument("--memory", action="store_true", help="figures for the calculator instead of speed")
    parser.add_argument("--exchange", action="store_true", help="seconds of a byte and of a message instead")
    parser.add_argument("--huge", action="store_true", help="one huge grid instead")
    parser.add_argument("--gpu", action="store_true", help="processes that share one GPU instead")
    parser.add_argument("--redraw", action="store_true")
    parser.add_argument("--edges", type=float, help="of a graph: 10^6, with --huge 10^8")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--share", type=float, default=1.0, help="of the sizes at which memory is measured")
    parser.add_argument("--out", type=Path, default=FOLDER, help="folder for the results")
    options = parser.parse_args()
    path = options.out / "propagation.json"
    stored = json.loads(path.read_text()) if path.exists() else {}
    if options.huge:
        before = machine()
        stored["huge"] = {"machine": before, "rows": memory.huge(int(options.edges or 10**8), 3, 4)}
    elif options.gpu:
        stored["gpu"] = measure_gpu(int(options.edges or 3 * 10**5))
    elif options.memory:
        stored["memory"] = measure_memory(options.share)
    elif options.exchange:
        stored["exchange"] = {"machine": machine(), **exchange.measure()}
    elif not options.redraw:
        for graph, states in speed.CASES:
            if options.case in (None, f"{graph} {states}"):
                kept = [case for case in stored.get("speed", []) if (case["graph"], case["states"]) != (graph, states)]
                kept.append(measure_speed(graph, states, int(options.edges or 10**6), options.rounds))
                stored["speed"] = sorted(kept, key=lambda case: speed.CASES.index((case["graph"], case["states"])))
                write_json(path, stored)
    options.out.mkdir(parents=True, exist_ok=True)
    write_json(path, stored)
    write_text(options.out / "propagation.md", page(stored))


if __name__ == "__main__":
    main()
