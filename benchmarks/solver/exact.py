"""Exact inference: elimination of chains, trees and models of the UAI competitions, and spanning tree probabilities.

    python benchmarks/solver/exact.py                     # all of it, then writes results/exact/
    python benchmarks/solver/exact.py --only trees        # one part: trees, uai or spanning; the others are kept
    python benchmarks/solver/exact.py --redraw            # the page of the stored results

Times are wall-clock seconds of one call, with the kernel compiled before.
"""

import argparse
import gzip
import json
import logging
import math
import os
import time
from collections.abc import Callable
from pathlib import Path

import torch
from origin import origin, told

from accord import FactorField, PairwiseField, TableFactors
from accord._files import write_text
from accord.errors import TooLargeError
from accord.inference import _spanning, eliminate_beliefs, sample_exact, spanning_tree_probabilities
from accord.inference.exact import _native

FOLDER = Path(__file__).parents[2] / "results" / "exact"
TORCH_NODES = 10**5  # larger fields take minutes without the kernel
BUSY = 1.5  # load above which other processes ran too
WIDE = 2**26  # max_table for the competition's models: 512 MiB

Row = dict[str, object]


def timed(call: Callable[[], object]) -> tuple[float, object]:
    begun = time.perf_counter()
    found = call()
    return round(time.perf_counter() - begun, 3), found


def tree_field(kind: str, size: int, states: int) -> PairwiseField:
    generator = torch.Generator().manual_seed(0)
    child = torch.arange(1, size)
    parent = child - 1 if kind == "chain" else (torch.rand(size - 1, generator=generator).double() * child).long()
    node = torch.randn(size, states, generator=generator, dtype=torch.float64)
    edge = torch.randn(size - 1, states, states, generator=generator, dtype=torch.float64)
    return PairwiseField(torch.stack([parent, child]), node, edge)


def trees() -> list[Row]:
    rows: list[Row] = []
    for kind in ("chain", "random tree"):
        for size in (10**4, 10**5, 10**6):
            for states in (2, 5):
                field = tree_field(kind, size, states)
                row: Row = {"graph": kind, "nodes": size, "states": states}
                row["marginals"], found = timed(lambda field=field: eliminate_beliefs(field))
                row["optimum"], _ = timed(lambda field=field: eliminate_beliefs(field, "max"))
                row["sample"], _ = timed(lambda field=field: sample_exact(field))
                if size <= TORCH_NODES and states == 2:
                    compiled, _native.available = _native.available, lambda: False  # type: ignore[assignment]
                    row["torch"], plain = timed(lambda field=field: eliminate_beliefs(field))
                    _native.available = compiled
                    row["difference"] = float((plain.node - found.node).abs().max())  # type: ignore[attr-defined]
                print(row, flush=True)
                rows.append(row)
    return rows


def read_field(path: Path) -> FactorField:
    """A model of the UAI format; factors of one shape are a group."""
    words = iter(gzip.open(path, "rt").read().split())
    next(words)
    counts = [int(next(words)) for _ in range(int(next(words)))]
    scopes = [[int(next(words)) for _ in range(int(next(words)))] for _ in range(int(next(words)))]
    shapes: dict[tuple[int, ...], list[tuple[list[int], torch.Tensor]]] = {}
    for scope in scopes:
        values = torch.tensor([float(next(words)) for _ in range(int(next(words)))], dtype=torch.float64)
        shape = tuple(counts[node] for node in scope)
        shapes.setdefault(shape, []).append((scope, values.log().reshape(shape)))
    groups = [
        TableFactors(torch.tensor([scope for scope, _ in members]), torch.stack([table for _, table in members]))
        for members in shapes.values()
    ]
    node = torch.zeros(len(counts), max(counts), dtype=torch.float64)
    return FactorField(node, groups, num_states=torch.tensor(counts))


def read_marginals(path: Path) -> list[list[float]]:
    words = iter(path.read_text().split()[1:])
    return [[float(next(words)) for _ in range(int(next(words)))] for _ in range(int(next(words)))]


def uai() -> list[Row]:
    rows: list[Row] = []
    folder = Path(os.environ.get("ACCORD_DATA", "data")) / "uai"
    for path in sorted(folder.glob("mar_*.uai.gz")):
        name = path.name.removesuffix(".uai.gz")
        field = read_field(path)
        row: Row = {"model": name, "variables": field.num_nodes, "factors": field.num_factors}
        row["states"] = f"{int(field.states.min())} to {int(field.states.max())}"
        try:
            row["seconds"], beliefs = timed(lambda field=field: eliminate_beliefs(field, max_table=WIDE))
        except TooLargeError as error:
            row["refused"] = str(error)
        else:
            known = float((folder / f"{name}.PR").read_text().split()[1]) * math.log(10)
            row["log Z"] = float(beliefs.log_partition)  # type: ignore[attr-defined]
            row["off by"] = abs(row["log Z"] - known)  # type: ignore[operator]
            wanted = read_marginals(folder / f"{name}.MAR")
            node = beliefs.node.exp()  # type: ignore[attr-defined]
            row["largest marginal difference"] = max(
                float((node[v, : len(given)] - torch.tensor(given)).abs().max()) for v, given in enumerate(wanted)
            )
        print(row, flush=True)
        rows.append(row)
    return rows


def grid(side: int) -> torch.Tensor:
    number = torch.arange(side * side).reshape(side, side)
    across = torch.stack([number[:, :-1].flatten(), number[:, 1:].flatten()])
    return torch.cat([across, torch.stack([number[:-1].flatten(), number[1:].flatten()])], 1)


def random_graph(size: int, degree: float) -> torch.Tensor:
    ends = torch.randint(size, (2, int(size * degree / 2)), generator=torch.Generator().manual_seed(0))
    return ends[:, ends[0] != ends[1]].sort(0).values.unique(dim=1)


class Sampled(logging.Handler):
    """Counts the edges whose probabilities are averages over trees, as the library logs them."""

    edges = 0

    def emit(self, record: logging.LogRecord) -> None:
        if isinstance(record.args, tuple) and "averages over trees" in record.msg:
            self.edges += int(record.args[0])  # type: ignore[call-overload]


def spanning() -> list[Row]:
    rows: list[Row] = []
    graphs = [(f"grid {side} x {side}", side * side, grid(side)) for side in (100, 300, 1000)]
    graphs += [(f"random, degree {d}", n, random_graph(n, d)) for n, d in ((10**4, 3.0), (10**4, 6.0), (10**6, 2.0))]
    log = logging.getLogger("accord.inference")
    log.setLevel(logging.INFO)
    for name, size, index in graphs:
        row: Row = {"graph": name, "nodes": size, "edges": index.shape[1]}
        log.addHandler(told_of := Sampled())
        row["seconds"], found = timed(lambda index=index, size=size: spanning_tree_probabilities(index, size))
        log.removeHandler(told_of)
        row["sampled edges"] = told_of.edges
        row["smallest"] = float(found.min())  # type: ignore[attr-defined]
        print(row, flush=True)
        rows.append(row)
    return rows


PARTS: dict[str, Callable[[], list[Row]]] = {"trees": trees, "uai": uai, "spanning": spanning}
TITLES = {
    "trees": "Chains and trees: seconds for marginals, optimum, one sample; and marginals in torch",
    "uai": "Models of the UAI competitions against the reference answers",
    "spanning": "Spanning tree probabilities",
}


NOTES = {
    "spanning": "*Sampled edges* got averages over 16 to 64 random spanning trees, with a standard error of up to "
    "0.13; the others are exact. The goal was near-linear time, and it is missed: elimination of a component takes "
    "about n^1.5 operations on a grid and n^3 on a random graph, so one that would take more than 3 * 10^9 is "
    "sampled, and random walks over a million nodes take the times shown.",
}


def page(stored: dict[str, dict[str, object]]) -> str:
    lines = [
        "# Exact inference",
        "",
        "Written by `python benchmarks/solver/exact.py`; the figures are in `exact.json`.",
        "",
    ]
    for part, title in TITLES.items():
        if part not in stored:
            continue
        rows: list[Row] = stored[part]["rows"]  # type: ignore[assignment]
        columns = list(dict.fromkeys(name for row in rows for name in row))
        lines += [f"## {title}", "", told(stored[part]["origin"]), ""]  # type: ignore[arg-type]
        if (load := float(stored[part]["load after"])) > BUSY:  # type: ignore[arg-type]
            lines += [f"Load {load:.1f} at the end: other processes ran too, and times are upper limits.", ""]
        lines += ["| " + " | ".join(columns) + " |", "|" + "---|" * len(columns)]
        lines += ["| " + " | ".join(_shown(row.get(name)) for name in columns) + " |" for row in rows] + [""]
        if part in NOTES:
            lines += [NOTES[part], ""]
    return "\n".join(lines).rstrip() + "\n"


def _shown(value: object) -> str:
    if value is None:
        return ""
    if isinstance(value, float):
        return f"{value:.2f}" if abs(value) >= 0.01 else f"{value:.1e}"
    return f"{value:,}" if isinstance(value, int) else str(value)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", choices=PARTS)
    parser.add_argument("--redraw", action="store_true")
    options = parser.parse_args()
    path = FOLDER / "exact.json"
    stored = json.loads(path.read_text()) if path.exists() else {}
    if not options.redraw:
        _native.available(), _spanning.available()
        for part in [options.only] if options.only else PARTS:
            stored[part] = {"origin": origin(), "rows": PARTS[part](), "load after": os.getloadavg()[0]}
            write_text(path, json.dumps(stored, indent=1) + "\n")
    write_text(FOLDER / "README.md", page(stored))


if __name__ == "__main__":
    main()
