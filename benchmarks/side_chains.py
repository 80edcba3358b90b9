"""Side chains of proteins: one sweep of the padded field before this kernel existed, of the padded field now, and of
the ragged field.

The proteins are those of $ACCORD_DATA/uai, with 2 to 81 states a node, and a made one of 1,000 nodes and 4,000 edges
whose nodes have the state counts of pdb1aie. All three ways run in alternating processes, each with the default backend
of its code; a figure is the median of the rounds. The old code is another checkout:

    git worktree add /tmp/old 07faa98
    python benchmarks/side_chains.py --old /tmp/old      # runs, then writes results/side_chains/
    python benchmarks/side_chains.py --redraw            # the table of the stored results
"""

import argparse
import gzip
import json
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import torch

HERE = Path(__file__).parent.parent
FOLDER = HERE / "results" / "side_chains"
GIVEN = ("map_pdb1akg", "map_pdb1aie")
MADE, NODES, EDGES = "made, 1,000 nodes", 1000, 4000
WAYS = ("padded, old", "padded", "ragged")
DTYPES = {"float32": torch.float32, "float64": torch.float64}
SECONDS = 0.1  # of many sweeps, so that the clock's resolution does not matter
REPEATS = 7  # in a process, of which the least counts

Model = tuple[list[int], np.ndarray, list[np.ndarray], list[np.ndarray]]  # states, edges [2, E], evidence, tables


def read(name: str) -> Model:
    path = Path(os.environ.get("ACCORD_DATA", "data")) / "uai" / f"{name}.uai.gz"
    words = iter(gzip.open(path, "rt").read().split())
    next(words)
    counts = [int(next(words)) for _ in range(int(next(words)))]
    scopes = [[int(next(words)) for _ in range(int(next(words)))] for _ in range(int(next(words)))]
    evidence, edges, tables = [np.zeros(count) for count in counts], [], []
    for scope in scopes:
        with np.errstate(divide="ignore"):
            values = np.log([float(next(words)) for _ in range(int(next(words)))])
        if len(scope) == 1:
            evidence[scope[0]] += values
        else:
            edges.append(scope)
            tables.append(values.reshape([counts[node] for node in scope]))
    return counts, np.array(edges).T, evidence, tables


def made() -> Model:
    rng = np.random.default_rng(0)
    counts = rng.choice(read("map_pdb1aie")[0], size=NODES).tolist()
    pairs: dict[tuple[int, int], None] = {}
    while len(pairs) < EDGES:
        one, two = sorted(rng.integers(NODES, size=2).tolist())
        if one != two:
            pairs[one, two] = None
    tables = [rng.normal(size=(counts[one], counts[two])) for one, two in pairs]
    return counts, np.array(list(pairs)).T, [rng.normal(size=count) for count in counts], tables


def padded(model: Model, dtype: torch.dtype) -> object:
    from accord import PairwiseField

    counts, edges, evidence, tables = model
    node = np.full((len(counts), max(counts)), -np.inf)
    for row, values in zip(node, evidence, strict=True):
        row[: len(values)] = values
    edge = np.zeros((len(tables), max(counts), max(counts)))
    for whole, table in zip(edge, tables, strict=True):
        whole[: table.shape[0], : table.shape[1]] = table
    return PairwiseField(torch.tensor(edges), torch.tensor(node, dtype=dtype), torch.tensor(edge, dtype=dtype))


def ragged(model: Model, dtype: torch.dtype) -> object:
    from accord import PairwiseField

    _, edges, evidence, tables = model
    return PairwiseField.ragged(
        torch.tensor(edges),
        [torch.tensor(values, dtype=dtype) for values in evidence],
        [torch.tensor(table, dtype=dtype) for table in tables],
    )


def sweep_seconds(run: Callable[[int], object]) -> float:
    """Time of one sweep: the difference between two numbers of sweeps, divided by their difference."""

    def spent(sweeps: int) -> float:
        begun = time.perf_counter()
        run(sweeps)
        return time.perf_counter() - begun

    spent(1)
    many = 4
    while many < 1 << 20 and (took := spent(many)) < SECONDS:
        many *= 2 if took > SECONDS / 8 else 8
    few = many // 4
    repeats = REPEATS if took < 1 else 1
    return (min(spent(many) for _ in range(repeats)) - min(spent(few) for _ in range(repeats))) / (many - few)


def measure(way: str) -> list[dict[str, object]]:
    from accord import propagate

    rows: list[dict[str, object]] = []
    for name in (*GIVEN, MADE):
        model = made() if name == MADE else read(name)
        for dtype, kind in DTYPES.items():
            field = ragged(model, kind) if way == "ragged" else padded(model, kind)
            for threads in (1, 2):
                torch.set_num_threads(threads)
                solve = lambda sweeps: propagate(field, max_sweeps=sweeps, tolerance=0.0)  # noqa: B023, E731
                beliefs = solve(1)
                row = {"model": name, "dtype": dtype, "threads": threads, "backend": str(beliefs.backend)}
                rows.append({**row, "seconds": sweep_seconds(solve)})
    return rows


def run(old: Path, rounds: int) -> list[dict[str, object]]:
    found: dict[tuple[object, ...], dict[str, object]] = {}
    for _ in range(rounds):
        for way in WAYS:
            environment = {**os.environ, "PYTHONPATH": str(old if way == WAYS[0] else HERE)}
            command = [sys.executable, str(Path(__file__)), "--measure", way]
            done = subprocess.run(command, env=environment, check=True, stdout=subprocess.PIPE, text=True)
            for row in json.loads(done.stdout.splitlines()[-1]):
                key = (row["model"], row["dtype"], row["threads"])
                kept = found.setdefault(key, {**dict(zip(("model", "dtype", "threads"), key, strict=True)), "ways": {}})
                each = kept["ways"].setdefault(way, {"backend": row["backend"], "seconds": []})
                each["seconds"].append(row["seconds"])
            print(way, done.stdout, flush=True)
    return list(found.values())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--old", type=Path)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--measure", choices=WAYS)
    options = parser.parse_args()
    if options.measure:
        print(json.dumps(measure(options.measure)))
        return
    print(json.dumps(run(options.old, options.rounds)))


if __name__ == "__main__":
    main()
