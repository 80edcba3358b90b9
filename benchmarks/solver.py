"""`accord.maximise` beside toulbar2, PGMax, restarts of single-node changes, and decoded beliefs.

Glasses, Potts fields, colourings, fields with factors of three variables and more, and the models of the UAI
competitions under $ACCORD_DATA/uai. Every solver gets the same budget for each model; toulbar2 (pip install pytoulbar2)
counts it in processor time and PGMax (see README.md) without compiling; both are left out where they are not installed.
Takes about 15 minutes with the default budget:

    python benchmarks/solver.py                    # runs, then writes results/solver/
    python benchmarks/solver.py --only factors     # rows of these models are replaced, others stay
    python benchmarks/solver.py --budget 1 --only glass --dry
    python benchmarks/solver.py --redraw           # the table of the stored results
"""

import argparse
import importlib.util
import json
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import solver_pgmax
import torch
from solver_models import Field, colouring, models

from accord import PairwiseField, __version__, maximise, propagate
from accord._files import write_text
from accord.bench.inference._machine import processor_name
from accord.errors import AccordError
from accord.field.factors import flatten
from accord.inference.decoding._polishing import polish

FOLDER = Path(__file__).parent.parent / "results" / "solver"
COLOURINGS = 20
TOP = 1e7  # cost of a forbidden pair in toulbar2
DIGITS = 6  # after the decimal point, in toulbar2's integer costs

Row = dict[str, object]


def with_accord(field: Field, budget: float) -> Row:
    found = maximise(field, budget=budget)
    return {
        "score": float(found.score),
        "bound": float(found.bound),
        "optimal": bool(found.optimal),
        "seconds": found.seconds,
        "method": str(found.method.item()),
    }


def with_beliefs(field: Field, budget: float) -> Row:
    begun = time.monotonic()
    try:
        score = float(field.score(propagate(field, semiring="max").decode()))
    except AccordError:
        score = -np.inf
    return {"score": score, "seconds": time.monotonic() - begun}


def with_pgmax(field: Field, budget: float) -> Row:
    score, seconds = solver_pgmax.solve(field, budget)
    return {"score": score, "seconds": seconds}


def with_restarts(field: Field, budget: float, together: int = 16) -> Row | None:
    """Random labellings, each improved by changes of single nodes, until the budget ends."""
    if not isinstance(field, PairwiseField):
        return None
    begun, best = time.monotonic(), -np.inf
    generator = torch.Generator().manual_seed(0)
    many = field.with_potentials(node=field.node.expand(together, -1, -1))
    node, edge = many.expanded()
    while time.monotonic() - begun < budget:
        labels = torch.randint(0, field.num_states, (together, field.num_nodes), generator=generator)
        best = max(best, float(many.score(polish(many, node, edge, True, labels)).max()))
    return {"score": best, "seconds": time.monotonic() - begun}


def with_toulbar2(field: Field, budget: float) -> Row:
    import pytoulbar2

    flat = flatten(field)
    begun = time.monotonic()
    problem = pytoulbar2.CFN(TOP, DIGITS)
    constant = 0.0
    possible = []
    for name, (low, high) in enumerate(zip(flat.at[:-1].tolist(), flat.at[1:].tolist(), strict=True)):
        values = flat.unary[0, low:high].double().numpy()
        states = np.nonzero(values > -np.inf)[0]
        possible.append(states)
        constant += values[states].max()
        problem.AddVariable(f"x{name}", [f"v{state}" for state in states])
        problem.AddFunction([name], (values[states].max() - values[states]).tolist())
    tables = flat.tables[0].double().numpy()
    for factor, begin in enumerate(flat.table_at.tolist()):
        scope = flat.scope[flat.scope_at[factor] : flat.scope_at[factor + 1]].tolist()
        shape = flat.states[scope].tolist()
        values = tables[begin : begin + int(np.prod(shape))].reshape(shape)[np.ix_(*(possible[v] for v in scope))]
        highest = values.max(where=values > -np.inf, initial=-np.inf)
        highest = 0.0 if highest == -np.inf else highest
        constant += highest
        problem.AddFunction(scope, np.minimum(highest - values, TOP).ravel().tolist())
    result = problem.Solve(timeLimit=max(1, round(budget)))
    bound = float(constant - problem.GetDDualBound())
    seconds = time.monotonic() - begun
    if not result:
        return {"score": -np.inf, "bound": bound, "optimal": False, "seconds": seconds}
    labels = [int(possible[v][state]) for v, state in enumerate(result[0][: flat.num_own])]
    score = float(field.score(torch.tensor(labels)))  # its own is rounded
    return {"score": score, "bound": bound, "optimal": bound - score < 1e-4, "seconds": seconds}


# A solver returns None for models that it does not take.
SOLVERS: dict[str, Callable[[Field, float], Row | None]] = {
    "accord": with_accord,
    "beliefs": with_beliefs,
    "PGMax": with_pgmax,
    "restarts": with_restarts,
    "toulbar2": with_toulbar2,
}
BOUNDED = ("toulbar2", "accord")  # these also tell a bound
UNBOUNDED = ("beliefs", "PGMax", "restarts")


def available() -> list[str]:
    absent = set() if importlib.util.find_spec("pytoulbar2") else {"toulbar2"}
    absent |= {"PGMax"} if solver_pgmax.missing() else set()
    return [name for name in SOLVERS if name not in absent]


def run(budget: float, only: str) -> list[Row]:
    rows: list[Row] = []
    for name, field, known in models():
        if only not in name:
            continue
        row: Row = {
            "model": name,
            "nodes": field.num_nodes,
            "factors": field.num_edges if isinstance(field, PairwiseField) else field.num_factors,
            "order": 2 if isinstance(field, PairwiseField) else max(group.order for group in field.groups),
            "states": field.num_states,
            "known": known,
            **{solver: SOLVERS[solver](field, budget) for solver in available()},
        }
        rows.append(row)
        print(json.dumps(row), flush=True)
    if only in f"{COLOURINGS} colourings":
        for degree, size in ((4.0, 300), (4.5, 500)):
            name = f"{COLOURINGS} colourings, {size} nodes of degree {degree}"
            solved = [maximise(colouring(size, degree, seed), budget=budget) for seed in range(COLOURINGS)]
            rows.append(
                {
                    "model": name,
                    "solved": sum(bool(found.score > -torch.inf) for found in solved),
                    "seconds": [found.seconds for found in solved],
                }
            )
            print(json.dumps(rows[-1]), flush=True)
    return rows


def merged(stored: Row, rows: list[Row]) -> Row:
    """The stored results with some rows replaced, or added where they are new."""
    new = {row["model"]: row for row in rows}
    kept = [new.pop(row["model"], row) for row in stored["rows"]]
    return {**stored, "rows": [*kept, *new.values()]}


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
        "labellings by changes of single nodes until the time is up, on pairwise fields. PGMax runs max-product with "
        "damping 0.5 and a little noise in the evidence; the best labels on the way count. *Order* is the largest "
        "number of variables of a factor. toulbar2 has its default options; its limit is in processor time, and its "
        "seconds are those of the clock, with building the model. All run on one thread.",
        "",
        "| model | nodes | factors | order | states | known | "
        + " | ".join([*UNBOUNDED, *(f"{solver} | its bound | s" for solver in BOUNDED)])
        + " |",
        "|---" + "|--:" * (5 + len(UNBOUNDED) + 3 * len(BOUNDED)) + "|",
    ]
    for row in stored["rows"]:
        if "solved" in row:
            continue
        known = "" if row["known"] is None else f"{row['known']:.2f}"
        cells = [
            row["model"],
            row["nodes"],
            row["factors"],
            row["order"],
            row["states"],
            known,
            *(score(row, solver) for solver in UNBOUNDED),
        ]
        for solver in BOUNDED:
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
    parser.add_argument("--only", default="", help="models whose name contains this")
    parser.add_argument("--dry", action="store_true", help="store nothing")
    parser.add_argument("--redraw", action="store_true", help="write the table of the stored results")
    given = parser.parse_args()
    if not given.redraw:
        torch.set_num_threads(1)
        rows = run(given.budget, given.only)
        if given.dry:
            return
        stored = {"machine": processor_name(), "version": __version__, "budget": given.budget, "rows": rows}
        if given.only:
            stored = merged(json.loads((FOLDER / "solver.json").read_text()), rows)
        write_text(FOLDER / "solver.json", json.dumps(stored, indent=1))
    write_text(FOLDER / "README.md", table(json.loads((FOLDER / "solver.json").read_text())))


if __name__ == "__main__":
    main()
