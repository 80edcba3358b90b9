"""Side chains of proteins: one sweep of the padded field before this kernel existed, of the padded field now, and of
the ragged field.

The proteins are those of $ACCORD_DATA/uai, with 2 to 81 states a node, and a made one of 1,000 nodes and 4,000 edges
whose nodes have the state counts of pdb1aie. All three ways run in alternating processes, each with the default backend
of its code and one thread; a figure is the median of the rounds, in processor time. The old code is another checkout:

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
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch

HERE = Path(__file__).parent.parent
FOLDER = HERE / "results" / "side_chains"
GIVEN = ("map_pdb1akg", "map_pdb1aie")
MADE, NODES, EDGES = "made, 1,000 nodes", 1000, 4000
WAYS = ("padded, old", "padded", "ragged")
DTYPES = {"float32": torch.float32, "float64": torch.float64}
CALL = 10  # sweeps of a whole call
SECONDS = 0.1  # of many sweeps, so that the clock's resolution does not matter
REPEATS = 7  # in a process, of which the least counts

Row = dict[str, Any]
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


def spent(run: Callable[[int], object], sweeps: int) -> float:
    begun = time.process_time()
    run(sweeps)
    return time.process_time() - begun


def sweep_seconds(run: Callable[[int], object]) -> float:
    """Time of one sweep: the difference between two numbers of sweeps, divided by their difference."""
    many = 4
    while many < 1 << 20 and (took := spent(run, many)) < SECONDS:
        many *= 2 if took > SECONDS / 8 else 8
    few = many // 4
    repeats = REPEATS if took < 1 else 1
    least = [min(spent(run, sweeps) for _ in range(repeats)) for sweeps in (few, many)]
    return (least[1] - least[0]) / (many - few)


def measure(way: str) -> list[Row]:
    from accord import propagate

    torch.set_num_threads(1)
    rows: list[Row] = []
    for name in (*GIVEN, MADE):
        model = made() if name == MADE else read(name)
        for dtype, kind in DTYPES.items():
            field = ragged(model, kind) if way == "ragged" else padded(model, kind)
            solve = partial(propagate, field, tolerance=0.0)
            run = lambda sweeps: solve(max_sweeps=sweeps)  # noqa: B023, E731
            row = {"model": name, "dtype": dtype, "backend": str(solve(max_sweeps=1).backend)}
            call = min(spent(run, CALL) for _ in range(3 if name == MADE else 30))
            rows.append({**row, "sweep": sweep_seconds(run), "call": call})
    return rows


def compare(old: Path, rounds: int) -> list[Row]:
    found: dict[tuple[str, str], Row] = {}
    for _ in range(rounds):
        for way in WAYS:
            environment = {**os.environ, "PYTHONPATH": str(old if way == WAYS[0] else HERE)}
            command = [sys.executable, str(Path(__file__)), "--measure", way]
            done = subprocess.run(command, env=environment, check=True, stdout=subprocess.PIPE, text=True)
            for row in json.loads(done.stdout.splitlines()[-1]):
                key = (row["model"], row["dtype"])
                kept = found.setdefault(key, {"model": key[0], "dtype": key[1], "ways": {}})
                each = kept["ways"].setdefault(way, {"backend": row["backend"], "sweep": [], "call": []})
                each["sweep"].append(row["sweep"])
                each["call"].append(row["call"])
    return list(found.values())


def readme(stored: Row) -> str:
    lines = [
        "# Side chains of proteins",
        "",
        f"Written by `benchmarks/side_chains.py` with accord {stored['version']} and torch {stored['torch']} on "
        f"{stored['machine']}. Processor time of one thread, median of {stored['rounds']} alternating rounds. *Old* is "
        f"the code before there were ragged fields (commit {stored['old']}), with the backend it chose. Ratios are "
        "those of the padded field to the ragged one; below 1 the padded field is faster.",
        "",
    ]
    for what, title, unit, scale in (
        ("sweep", "One sweep", "us", 1e6),
        ("call", f"A whole call of {CALL} sweeps, checks and beliefs included", "us", 1e6),
    ):
        lines += [
            f"## {title}, {unit}",
            "",
            "| model | dtype | padded, old | its backend | padded | ragged | to old | to padded |",
            "|---|---|---|---|---|---|---|---|",
        ]
        for row in stored["rows"]:
            before, now, after = (scale * statistics.median(row["ways"][way][what]) for way in WAYS)
            lines.append(
                f"| {row['model'].removeprefix('map_')} | {row['dtype']} | {before:,.4g} | "
                f"{row['ways'][WAYS[0]]['backend']} | {now:,.4g} | {after:,.4g} | {before / after:.2f} | "
                f"{now / after:.2f} |"
            )
        lines.append("")
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--old", type=Path)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--redraw", action="store_true")
    parser.add_argument("--measure", choices=WAYS, help="one way, in this process")
    options = parser.parse_args()
    if options.measure:
        print(json.dumps(measure(options.measure)))
        return
    from accord import __version__
    from accord._files import write_text
    from accord.bench.inference._machine import processor_name

    path = FOLDER / "side_chains.json"
    if not options.redraw:
        if options.old is None:
            parser.error("--old is needed: a checkout of the old code, made by `git worktree add /tmp/old 07faa98`")
        head = ["git", "-C", str(options.old), "rev-parse", "--short", "HEAD"]
        found = {"version": __version__, "torch": torch.__version__, "machine": processor_name()}
        found |= {"old": subprocess.run(head, check=True, stdout=subprocess.PIPE, text=True).stdout.strip()}
        found |= {"rounds": options.rounds, "rows": compare(options.old, options.rounds)}
        FOLDER.mkdir(parents=True, exist_ok=True)
        write_text(path, json.dumps(found, indent=1) + "\n")
    write_text(FOLDER / "README.md", readme(json.loads(path.read_text())))


if __name__ == "__main__":
    main()
