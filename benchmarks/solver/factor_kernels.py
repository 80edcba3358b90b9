"""The kernel of factor graphs: side chains beside the padded field, triangles beside plain torch, ordered schedules.

Side chains are random graphs of 1,000 nodes and 4,000 edges, whose nodes have as many states as those of
$ACCORD_DATA/uai/map_pdb1aie.uai.gz. Times are processor time of one thread for one sweep, the least of several runs, so
that other processes matter little. Takes about five minutes:

    python benchmarks/solver/factor_kernels.py            # runs, then writes results/factors/
    python benchmarks/solver/factor_kernels.py --redraw   # the table of the stored results
"""

import argparse
import gzip
import json
import os
import time
from collections.abc import Callable
from pathlib import Path

import torch
from origin import origin, told

from accord import FactorField, PairwiseField, TableFactors, propagate
from accord._files import write_text

FOLDER = Path(__file__).parents[2] / "results" / "factors"
LEAST_STATES = 2
NODES, EDGES = 1000, 4000
TRIANGLES, CORNERS = 4000, 3000

Row = dict[str, object]


def processor_seconds(call: Callable[[], object], runs: int) -> float:
    times = []
    for _ in range(runs):
        begun = time.thread_time()
        call()
        times.append(time.thread_time() - begun)
    return min(times)


def sweep_seconds(run: Callable[[int], object], few: int, many: int, runs: int = 3) -> float:
    """Time of one sweep: the difference between many and few of them."""
    more, less = processor_seconds(lambda: run(many), runs), processor_seconds(lambda: run(few), runs)
    return (more - less) / (many - few)


def state_counts() -> list[int]:
    path = Path(os.environ.get("ACCORD_DATA", "data")) / "uai" / "map_pdb1aie.uai.gz"
    words = gzip.open(path, "rt").read().split()
    counts = [int(word) for word in words[2 : 2 + int(words[1])]]
    return [count for count in counts if count >= LEAST_STATES]


def side_chains(dtype: torch.dtype) -> Row:
    generator = torch.Generator().manual_seed(0)
    known = torch.tensor(state_counts())
    counts = known[torch.randint(len(known), (NODES,), generator=generator)]
    ends = torch.randint(NODES, (2, 4 * EDGES), generator=generator)
    ends = ends.sort(0).values[:, ends[0] != ends[1]].unique(dim=1)
    index = ends[:, torch.randperm(ends.shape[1], generator=generator)[:EDGES]]
    widest = int(counts.max())
    node = torch.randn(NODES, widest, generator=generator, dtype=dtype)
    node[torch.arange(widest) >= counts[:, None]] = -torch.inf
    table = torch.randn(EDGES, widest, widest, generator=generator, dtype=dtype)
    sizes = counts[index].t().tolist()
    ragged = PairwiseField.ragged(
        index,
        [row[:count] for row, count in zip(node, counts.tolist(), strict=True)],
        [each[:one, :two].contiguous() for each, (one, two) in zip(table, sizes, strict=True)],
    )
    padded = PairwiseField(index, node, table)

    def run(field: PairwiseField | FactorField) -> Callable[[int], object]:
        return lambda sweeps: propagate(field, max_sweeps=sweeps, tolerance=0.0, backend="native")

    before, after = sweep_seconds(run(padded), 2, 22), sweep_seconds(run(ragged), 2, 42)
    entries = sum(one * two for one, two in sizes)
    return {
        "what": f"side chains, {widest} states at most, padded field beside ragged field",
        "dtype": str(dtype).removeprefix("torch."),
        "before_ms": before * 1e3,
        "after_ms": after * 1e3,
        "ratio": before / after,
        "entries_ratio": EDGES * widest**2 / entries,
    }


def triangles(states: int, dtype: torch.dtype) -> Row:
    generator = torch.Generator().manual_seed(0)
    scope = torch.stack([torch.randperm(CORNERS, generator=generator)[:3] for _ in range(TRIANGLES)])
    tables = torch.randn(TRIANGLES, states, states, states, generator=generator, dtype=dtype)
    node = torch.randn(CORNERS, states, generator=generator, dtype=dtype)
    field = FactorField(node, [TableFactors(scope, tables)])

    def run(backend: str) -> Callable[[int], object]:
        return lambda sweeps: propagate(field, max_sweeps=sweeps, tolerance=0.0, backend=backend)

    before, after = sweep_seconds(run("reference"), 1, 5), sweep_seconds(run("native"), 10, 110)
    return {
        "what": f"{TRIANGLES} triangles, {states} states, plain torch beside the kernel",
        "dtype": str(dtype).removeprefix("torch."),
        "before_ms": before * 1e3,
        "after_ms": after * 1e3,
        "ratio": before / after,
    }


def tree(nodes: int) -> PairwiseField:
    generator = torch.Generator().manual_seed(0)
    parent = (torch.rand(nodes - 1, generator=generator) * torch.arange(1, nodes)).long()
    edge = 0.7 * torch.randn(nodes - 1, 3, 3, generator=generator)
    return PairwiseField(
        torch.stack([parent, torch.arange(1, nodes)]), torch.randn(nodes, 3, generator=generator), edge
    )


def grid(side: int) -> PairwiseField:
    generator = torch.Generator().manual_seed(0)
    place = torch.arange(side * side).reshape(side, side)
    across = torch.stack([place[:, :-1].flatten(), place[:, 1:].flatten()])
    index = torch.cat([across, torch.stack([place[:-1].flatten(), place[1:].flatten()])], 1)
    edge = 0.7 * torch.randn(index.shape[1], 3, 3, generator=generator)
    return PairwiseField(index, torch.randn(side * side, 3, generator=generator), edge)


def schedule(name: str, field: PairwiseField, what: str) -> Row:
    """Time until convergence, with the reference and with the kernel."""
    seconds, sweeps = [], []
    for backend in ("reference", "native"):
        begun = time.thread_time()
        beliefs = propagate(field, schedule=name, backend=backend)
        seconds.append(time.thread_time() - begun)
        sweeps.append(int(beliefs.sweeps))
    return {
        "what": f"{what}, 3 states, {name} until convergence ({sweeps[0]} and {sweeps[1]} sweeps)",
        "dtype": "float32",
        "before_ms": seconds[0] * 1e3,
        "after_ms": seconds[1] * 1e3,
        "ratio": seconds[0] / seconds[1],
    }


def measure() -> list[Row]:
    rows = [side_chains(dtype) for dtype in (torch.float32, torch.float64)]
    rows += [triangles(states, torch.float32) for states in range(2, 8)]
    for name in ("sequential", "residual"):
        rows.append(schedule(name, grid(100), "grid 100 x 100"))
    rows.append(schedule("sequential", tree(100_000), "tree of 100,000 nodes"))
    return rows


def readme(stored: dict[str, object], rows: list[Row]) -> str:
    lines = [
        "# The kernel of factor graphs",
        "",
        "Written by `benchmarks/solver/factor_kernels.py`. Processor time of one thread, in milliseconds; a sweep "
        "where nothing else is said.",
        "",
        told(stored["origin"]),
        "",
        "| what | dtype | before | after | ratio |",
        "|---|---|---|---|---|",
    ]
    for row in rows:
        times = f"{row['before_ms']:.3g} | {row['after_ms']:.3g} | {row['ratio']:.1f}"
        lines.append(f"| {row['what']} | {row['dtype']} | {times} |")
    return "\n".join([*lines, ""])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--redraw", action="store_true")
    path = FOLDER / "factors.json"
    if not parser.parse_args().redraw:
        torch.set_num_threads(1)
        found = {"origin": origin(), "rows": measure()}
        FOLDER.mkdir(parents=True, exist_ok=True)
        write_text(path, json.dumps(found, indent=1) + "\n")
    stored = json.loads(path.read_text())
    write_text(FOLDER / "README.md", readme(stored, stored["rows"]))


if __name__ == "__main__":
    main()
