"""`accord.maximise` beside toulbar2, restarts of single-node changes, and decoded beliefs: scores, bounds and seconds.

Glasses, Potts fields, colourings, and the pairwise models of the UAI competitions under $ACCORD_DATA/uai. Every solver
gets the same budget for each model; toulbar2 (pip install pytoulbar2) counts it in processor time and is left out where
it is not installed. Takes about ten minutes with the default budget:

    python benchmarks/solver.py                    # runs, then writes results/solver/
    python benchmarks/solver.py --budget 1 --only glass
    python benchmarks/solver.py --redraw           # the table of the stored results
"""

import argparse
import gzip
import json
import os
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import torch

from accord import PairwiseField, __version__, maximise, propagate
from accord._files import write_text
from accord.bench.inference._machine import processor_name
from accord.errors import AccordError
from accord.inference._polishing import polish

FOLDER = Path(__file__).parent.parent / "results" / "solver"
COLOURINGS = 20
TOP = 1e7  # cost of a forbidden pair in toulbar2
DIGITS = 6  # after the decimal point, in toulbar2's integer costs

Row = dict[str, object]


def grid(*shape: int, torus: bool = False) -> np.ndarray:
    """Edges [2, edges] of a grid of any dimension."""
    places = np.arange(np.prod(shape)).reshape(shape)
    edges = []
    for axis, size in enumerate(shape):
        near = np.take(places, range(size if torus else size - 1), axis)
        far = np.take(np.roll(places, -1, axis), range(size if torus else size - 1), axis)
        edges.append(np.stack([near.ravel(), far.ravel()]))
    return np.concatenate(edges, axis=1)


def ising(edges: np.ndarray, coupling: np.ndarray, num_nodes: int) -> PairwiseField:
    agree = np.array([[1.0, -1.0], [-1.0, 1.0]])
    node = torch.zeros(num_nodes, 2, dtype=torch.float64)
    return PairwiseField(torch.tensor(edges), node, torch.tensor(coupling[:, None, None] * agree))


def glass(edges: np.ndarray, seed: int, signs: bool) -> PairwiseField:
    rng = np.random.default_rng(seed)
    size = edges.shape[1]
    return ising(edges, rng.choice([-1.0, 1.0], size=size) if signs else rng.normal(size=size), edges.max() + 1)


def complete_glass(size: int, seed: int) -> PairwiseField:
    """Sherrington and Kirkpatrick's glass."""
    edges = np.stack(np.triu_indices(size, 1))
    return ising(edges, np.random.default_rng(seed).normal(size=edges.shape[1]) / np.sqrt(size), size)


def potts(size: int, states: int, seed: int, evidence: float) -> PairwiseField:
    rng = np.random.default_rng(seed)
    edges = grid(size, size)
    coupling = rng.normal(size=edges.shape[1])
    node = evidence * rng.normal(size=(size * size, states))
    return PairwiseField(
        torch.tensor(edges), torch.tensor(node), torch.tensor(coupling[:, None, None] * np.eye(states))
    )


def colouring(num_nodes: int, degree: float, seed: int, colours: int = 3) -> PairwiseField:
    """A random graph that has a colouring."""
    rng = np.random.default_rng(seed)
    planted = rng.integers(colours, size=num_nodes)
    edges: set[tuple[int, int]] = set()
    while len(edges) < degree * num_nodes / 2:
        a, b = rng.integers(num_nodes, size=2).tolist()
        if planted[a] != planted[b]:
            edges.add((min(a, b), max(a, b)))
    differ = np.where(np.eye(colours) > 0, -np.inf, 0.0)
    node = torch.zeros(num_nodes, colours, dtype=torch.float64)
    return PairwiseField(torch.tensor(sorted(edges)).t(), node, torch.tensor(differ).repeat(len(edges), 1, 1))


def read_pairwise(path: Path) -> PairwiseField | None:
    """A model of the UAI format; None if a factor has more than two variables."""
    words = iter(gzip.open(path, "rt").read().split())
    next(words)
    counts = [int(next(words)) for _ in range(int(next(words)))]
    scopes = [[int(next(words)) for _ in range(int(next(words)))] for _ in range(int(next(words)))]
    if max(map(len, scopes)) > 2:
        return None
    states = max(counts)
    node = np.where(np.arange(states) < np.array(counts)[:, None], 0.0, -np.inf)
    tables: dict[tuple[int, int], np.ndarray] = {}
    for scope in scopes:
        with np.errstate(divide="ignore"):
            values = np.log([float(next(words)) for _ in range(int(next(words)))])
        if len(scope) == 1:
            node[scope[0], : len(values)] += values
            continue
        one, two = scope
        values = values.reshape(counts[one], counts[two])
        if one > two:
            one, two, values = two, one, values.T
        table = tables.setdefault((one, two), np.zeros((states, states)))
        table[: counts[one], : counts[two]] += values
    pairs = sorted(tables)
    return PairwiseField(
        torch.tensor(pairs).t(), torch.tensor(node), torch.tensor(np.stack([tables[pair] for pair in pairs]))
    )


def models() -> Iterator[tuple[str, PairwiseField, float | None]]:
    """Name, field, and the score of the competition's labelling where there is one."""
    for seed in range(2):
        yield f"glass 32x32, signs, {seed}", glass(grid(32, 32), seed, signs=True), None
        yield f"glass 32x32, normal, {seed}", glass(grid(32, 32), seed, signs=False), None
    yield "glass 12x12 torus, normal", glass(grid(12, 12, torus=True), 0, signs=False), None
    yield "glass 10x10x10, signs", glass(grid(10, 10, 10), 0, signs=True), None
    yield "glass 10x10x10, normal", glass(grid(10, 10, 10), 0, signs=False), None
    yield "SK 60", complete_glass(60, 0), None
    yield "SK 200", complete_glass(200, 0), None
    yield "Potts 30x30, 5 states, evidence", potts(30, 5, 0, evidence=1.0), None
    yield "Potts 30x30, 5 states", potts(30, 5, 0, evidence=0.0), None
    yield "Potts 20x20, 20 states, evidence", potts(20, 20, 0, evidence=0.5), None
    folder = Path(os.environ.get("ACCORD_DATA", "data")) / "uai"
    for path in sorted(folder.glob("*.uai.gz")):
        field = read_pairwise(path)
        if field is None:
            continue
        name = path.name.removesuffix(".uai.gz")
        given = folder / f"{name}.MAP"
        known = None
        if given.exists():
            labels = [int(word) for word in given.read_text().split()[1:]]
            known = float(field.score(torch.tensor(labels[-field.num_nodes :])))
        yield f"UAI {name}", field, known


def with_accord(field: PairwiseField, budget: float) -> Row:
    found = maximise(field, budget=budget)
    return {
        "score": float(found.score),
        "bound": float(found.bound),
        "optimal": bool(found.optimal),
        "seconds": found.seconds,
        "method": str(found.method.item()),
    }


def with_beliefs(field: PairwiseField, budget: float) -> Row:
    begun = time.monotonic()
    try:
        score = float(field.score(propagate(field, semiring="max").decode()))
    except AccordError:
        score = -np.inf
    return {"score": score, "seconds": time.monotonic() - begun}


def with_restarts(field: PairwiseField, budget: float, together: int = 16) -> Row:
    """Random labellings, each improved by changes of single nodes, until the budget ends."""
    begun, best = time.monotonic(), -np.inf
    generator = torch.Generator().manual_seed(0)
    many = field.with_potentials(node=field.node.expand(together, -1, -1))
    node, edge = many.expanded()
    while time.monotonic() - begun < budget:
        labels = torch.randint(0, field.num_states, (together, field.num_nodes), generator=generator)
        best = max(best, float(many.score(polish(many, node, edge, True, labels)).max()))
    return {"score": best, "seconds": time.monotonic() - begun}


def with_toulbar2(field: PairwiseField, budget: float) -> Row:
    import pytoulbar2

    node, edge = field.node.numpy(), field.edge.numpy()
    begun = time.monotonic()
    problem = pytoulbar2.CFN(TOP, DIGITS)
    possible = [np.nonzero(row > -np.inf)[0] for row in node]
    constant = 0.0
    for name, states in enumerate(possible):
        values = node[name, states]
        constant += values.max()
        problem.AddVariable(f"x{name}", [f"v{state}" for state in states])
        problem.AddFunction([name], (values.max() - values).tolist())
    for table, (source, target) in zip(edge, field.edge_index.t().tolist(), strict=True):
        values = table[np.ix_(possible[source], possible[target])]
        highest = values[values > -np.inf].max()
        constant += highest
        problem.AddFunction([source, target], np.minimum(highest - values, TOP).ravel().tolist())
    result = problem.Solve(timeLimit=max(1, round(budget)))
    bound = float(constant - problem.GetDDualBound())
    score = float(constant - result[1]) if result else -np.inf
    return {"score": score, "bound": bound, "optimal": bound - score < 1e-4, "seconds": time.monotonic() - begun}


SOLVERS: dict[str, Callable[[PairwiseField, float], Row]] = {
    "accord": with_accord,
    "beliefs": with_beliefs,
    "restarts": with_restarts,
    "toulbar2": with_toulbar2,
}


def available() -> list[str]:
    try:
        import pytoulbar2  # noqa: F401
    except ImportError:
        return [name for name in SOLVERS if name != "toulbar2"]
    return list(SOLVERS)


def run(budget: float, only: str) -> list[Row]:
    rows: list[Row] = []
    for name, field, known in models():
        if only not in name:
            continue
        row: Row = {
            "model": name,
            "nodes": field.num_nodes,
            "edges": field.num_edges,
            "states": field.num_states,
            "known": known,
            **{solver: SOLVERS[solver](field, budget) for solver in available()},
        }
        rows.append(row)
        print(json.dumps(row), flush=True)
    if only in "colouring":
        for degree, size in ((4.0, 300), (4.5, 500)):
            solved = [maximise(colouring(size, degree, seed), budget=budget) for seed in range(COLOURINGS)]
            rows.append(
                {
                    "model": f"{COLOURINGS} colourings, {size} nodes of degree {degree}",
                    "solved": sum(bool(found.score > -torch.inf) for found in solved),
                    "seconds": [found.seconds for found in solved],
                }
            )
            print(json.dumps(rows[-1]), flush=True)
    return rows


def table(stored: Row) -> str:
    def score(row: Row, solver: str) -> str:
        found = row.get(solver)
        return f"{found['score']:.2f}" + ("*" if found.get("optimal") else "") if isinstance(found, dict) else ""

    lines = [
        "# The best labelling, with a bound",
        "",
        f"Written by `benchmarks/solver.py` on {stored['machine']}, accord {stored['version']}, "
        f"{stored['budget']} s for each solver and model. An asterisk marks a proved optimum. *Known* is the labelling "
        'that the competition published. *Beliefs* decodes `propagate(semiring="max")`; *restarts* improves random '
        "labellings by changes of single nodes until the time is up. toulbar2 has its default options; its limit is in "
        "processor time, and "
        "its seconds are those of the clock, with building the model.",
        "",
        "| model | nodes | edges | states | known | beliefs | restarts | toulbar2 | its bound | s | accord | its bound "
        "| s |",
        "|---|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|",
    ]
    for row in stored["rows"]:
        if "solved" in row:
            continue
        known = "" if row["known"] is None else f"{row['known']:.2f}"
        cells = [
            row["model"],
            row["nodes"],
            row["edges"],
            row["states"],
            known,
            score(row, "beliefs"),
            score(row, "restarts"),
        ]
        for solver in ("toulbar2", "accord"):
            found = row.get(solver)
            cells += [score(row, solver)] + (
                [f"{found['bound']:.2f}", f"{found['seconds']:.2f}"] if found else ["", ""]
            )
        lines.append("| " + " | ".join(map(str, cells)) + " |")
    lines.append("")
    for row in stored["rows"]:
        if "solved" in row:
            seconds = sorted(row["seconds"])
            lines.append(
                f"* {row['model']}: {row['solved']} solved; {seconds[len(seconds) // 2]:.2f} s (median), "
                f"{seconds[-1]:.2f} s (longest)"
            )
    return "\n".join(lines) + "\n"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--budget", type=float, default=3.0, help="seconds for each solver and model")
    parser.add_argument("--only", default="", help="models whose name contains this; nothing is stored")
    parser.add_argument("--redraw", action="store_true", help="write the table of the stored results")
    given = parser.parse_args()
    if not given.redraw:
        torch.set_num_threads(1)
        rows = run(given.budget, given.only)
        if given.only:
            return
        stored = {"machine": processor_name(), "version": __version__, "budget": given.budget, "rows": rows}
        write_text(FOLDER / "solver.json", json.dumps(stored, indent=1))
    write_text(FOLDER / "README.md", table(json.loads((FOLDER / "solver.json").read_text())))


if __name__ == "__main__":
    main()
