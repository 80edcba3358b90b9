"""`accord.maximise` beside toulbar2, PGMax, restarts of single-node changes, and decoded beliefs.

Glasses, Potts fields, fields with factors of three variables and more, the models of the UAI competitions under
$ACCORD_DATA/uai, kinds of models that nothing was set on, and colourings. Every solver gets the same budget for each
model; toulbar2 (pip install pytoulbar2) counts it in processor time and PGMax (see README.md) without compiling; both
are left out where they are not installed. Each model has a core of its own, and all solvers run on one thread. On two
cores the default budget takes about ten minutes:

    python benchmarks/solver/solver.py                # runs, then writes results/solver/
    python benchmarks/solver/solver.py --minutes 4    # stops then; the same command goes on, if no code has changed
    python benchmarks/solver/solver.py --only glass   # prints the rows of these models, and stores nothing
    python benchmarks/solver/solver.py --redraw       # the page of the stored results
"""

import argparse
import importlib.util
import json
import os
import time
from collections.abc import Callable
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from functools import cache
from multiprocessing import get_context
from multiprocessing.queues import Queue
from pathlib import Path

import numpy as np
import solver_page
import solver_pgmax
import solver_toulbar2
import torch
from origin import origin, same_code
from solver_models import Field, colouring, models

from accord import PairwiseField, maximise, propagate
from accord._files import write_text
from accord.errors import AccordError
from accord.inference.decoding._polishing import polish

FOLDER = Path(__file__).parents[2] / "results" / "solver"
COLOURINGS = 20  # of each kind
KINDS = ((300, 4.0), (500, 4.5))  # of colourings: nodes and degree
BUDGETS = (1.0, 10.0)  # seconds for OTHERS, models in which nobody proves an optimum
OTHERS = (
    "SK 200",
    "factors: 300 nodes, 1500 weighted clauses",
    "UAI map_Grids_22",
    "UAI map_wcsp_11",
)
PEERS = ("pytoulbar2", "pgmax", "jax", "jaxlib", "numba")

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


def with_beliefs(field: Field) -> Row:
    begun = time.monotonic()
    try:
        score = float(field.score(propagate(field, semiring="max").decode()))
    except AccordError:
        score = -np.inf
    return {"score": score, "seconds": time.monotonic() - begun}


def with_pgmax(field: Field, budget: float, enough: float) -> Row:
    score, seconds = solver_pgmax.solve(field, budget, enough)
    return {"score": score, "seconds": seconds}


def with_restarts(field: PairwiseField, budget: float, enough: float, together: int = 16) -> Row:
    """Random labellings, each improved by changes of single nodes, until the budget ends."""
    begun, best = time.monotonic(), -np.inf
    generator = torch.Generator().manual_seed(0)
    many = field.with_potentials(node=field.node.expand(together, -1, -1))
    node, edge = many.expanded()
    while best < enough and time.monotonic() - begun < budget:
        labels = torch.randint(0, field.num_states, (together, field.num_nodes), generator=generator)
        best = max(best, float(many.score(polish(many, node, edge, True, labels)).max()))
    return {"score": best, "seconds": time.monotonic() - begun}


def missing() -> set[str]:
    absent = set() if importlib.util.find_spec("pytoulbar2") else {"toulbar2"}
    return absent | ({"PGMax"} if solver_pgmax.missing() else set())


def compare(field: Field, budget: float, without: set[str], enough: float = np.inf) -> Row:
    """The results of all solvers. Once toulbar2 has proved an optimum, its other searches are left out, and PGMax and
    restarts stop when they reach it.

    Args:
        without: solvers that are left out.
        enough: a score that ends PGMax and restarts.
    """
    row: Row = {"accord": with_accord(field, budget)}
    if "toulbar2" not in without:
        found = row["toulbar2"] = solver_toulbar2.solve(field, budget)
        if found["optimal"]:
            enough = float(found["score"]) - solver_page.tolerance(float(found["score"]))  # type: ignore[arg-type]
        else:
            row["incomplete"] = solver_toulbar2.incomplete(field, budget)
    if "beliefs" not in without:
        row["beliefs"] = with_beliefs(field)
    if "PGMax" not in without:
        row["PGMax"] = with_pgmax(field, budget, enough)
    if "restarts" not in without and isinstance(field, PairwiseField):
        row["restarts"] = with_restarts(field, budget, enough)
    return row


def described(field: Field) -> Row:
    pairwise = isinstance(field, PairwiseField)
    return {
        "nodes": field.num_nodes,
        "factors": field.num_edges if pairwise else field.num_factors,
        "order": 2 if pairwise else max(group.order for group in field.groups),
        "states": field.num_states,
    }


@cache
def tasks(budget: float) -> list[tuple[str, Row, Callable[[], Row]]]:
    """Part of the results, what names the row, and what measures it."""
    absent, every, found = missing(), list(models()), []
    for name, field, known in every:
        measure = lambda field=field, known=known: described(field) | {"known": known} | compare(field, budget, absent)  # noqa: E731
        found.append(("models", {"model": name}, measure))
    for size, degree in KINDS:
        for seed in range(COLOURINGS):
            field = colouring(size, degree, seed)
            named = {"colouring": f"{size} nodes of degree {degree}", "seed": seed}
            measure = lambda field=field: compare(field, budget, absent | {"restarts"}, enough=0.0)  # noqa: E731
            found.append(("colourings", named, measure))
    for name, field, _ in every:
        for other in BUDGETS if name in OTHERS else ():
            measure = lambda field=field, other=other: compare(field, other, absent | {"beliefs", "PGMax", "restarts"})  # noqa: E731
            found.append(("budgets", {"model": name, "budget": other}, measure))
    return found


def settle(cores: "Queue[int]") -> None:
    """Take a core for this process."""
    os.sched_setaffinity(0, {cores.get()})
    torch.set_num_threads(1)


def measured(place: int, budget: float) -> Row:
    _, named, measure = tasks(budget)[place]
    return named | measure()


def run(stored: Row, until: float) -> None:
    """Measure the rows that are not stored yet, each on a core of its own."""
    budget = float(stored["budget"])  # type: ignore[arg-type]
    work, context, cores = tasks(budget), get_context("spawn"), sorted(os.sched_getaffinity(0))
    queue: Queue[int] = context.Queue()
    for core in cores:
        queue.put(core)
    for part, _, _ in work:
        stored.setdefault(part, [])
    with ProcessPoolExecutor(len(cores), context, settle, (queue,)) as pool:
        lacking = [k for k, (part, named, _) in enumerate(work) if _place(named, stored[part]) is None]  # type: ignore[arg-type]
        running: dict[Future[Row], int] = {}
        while running or lacking:
            while lacking and len(running) < len(cores) and time.monotonic() < until:
                place = lacking.pop(0)
                running[pool.submit(measured, place, budget)] = place
            if not running:
                return
            for done in wait(running, return_when=FIRST_COMPLETED).done:
                part = work[running.pop(done)][0]
                order = [named for kind, named, _ in work if kind == part]
                rows: list[Row] = [*stored[part], done.result()]  # type: ignore[misc]
                stored[part] = sorted(rows, key=lambda row: _place(row, order))  # type: ignore[arg-type,return-value] # noqa: B023
                write_text(FOLDER / "solver.json", json.dumps(stored, indent=1) + "\n")
                print(f"{len(rows)} of {part}", flush=True)


def _place(named: Row, rows: list[Row]) -> int | None:
    """Where the row stands whose name is the same."""
    keys = [key for key in ("model", "colouring", "seed", "budget") if key in named]
    return next((k for k, row in enumerate(rows) if all(row.get(key) == named[key] for key in keys)), None)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--budget", type=float, default=2.0, help="seconds for each solver and model")
    parser.add_argument("--minutes", type=float, default=np.inf, help="of this call")
    parser.add_argument("--only", help="models whose name contains this; store nothing")
    parser.add_argument("--redraw", action="store_true", help="write the page of the stored results")
    given = parser.parse_args()
    path = FOLDER / "solver.json"
    torch.set_num_threads(1)  # here and in every process
    if given.only is not None:
        for _, named, measure in tasks(given.budget):
            if given.only in str(named):
                print(json.dumps(named | measure()), flush=True)
        return
    stored: Row = json.loads(path.read_text())
    if not given.redraw:
        fresh: Row = {"origin": origin(*PEERS), "budget": given.budget}
        same = stored["budget"] == given.budget and "origin" in stored
        same = same and same_code(stored["origin"], fresh["origin"])  # type: ignore[arg-type]
        stored = stored if same else fresh
        run(stored, time.monotonic() + 60 * given.minutes)
    write_text(FOLDER / "README.md", solver_page.page(stored))


if __name__ == "__main__":
    main()
