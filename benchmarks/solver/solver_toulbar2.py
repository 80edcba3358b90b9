"""toulbar2 as a solver: its complete search with default options, or one of its incomplete searches."""

import time
from multiprocessing import get_context

import numpy as np
import torch

from accord import FactorField, PairwiseField
from accord.field.factors import flatten

TOP = 1e7  # cost of a forbidden combination
DIGITS = 6  # after the decimal point, in integer costs
CLOSE = 1e-4  # a bound as close as this to a score proves it: costs are rounded
# Options are those that toulbar2 documents: -vns, -i and -pils of its command line.
INCOMPLETE = {
    "VNS": {},
    "INCOP": {"incop_cmd": "0 1 3 idwa 100000 cv v 0 200 1 0 0"},
    "PILS": {"pils_cmd": "3 0 0.333 100 500 10000 0.1 0.5 0.1 0.1"},
}
FIRST_SOLUTION = -4  # neighbourhood search begins with the first solution of a depth-first search

Row = dict[str, object]


def solve(field: PairwiseField | FactorField, budget: float, search: str | None = None) -> Row:
    """Score, bound, proof and seconds by the clock, building the model included; its limit is in processor time.

    Each search has a process of its own: toulbar2 keeps options, such as those of VNS, for all later problems.

    Args:
        search: a name in INCOMPLETE; None for the default. INCOP and PILS come before the complete search.
    """
    context = get_context("fork")
    receiver, sender = context.Pipe(duplex=False)
    process = context.Process(target=lambda: sender.send(_solve(field, budget, search)))
    process.start()
    sender.close()
    row: Row = receiver.recv()
    process.join()
    return row


def _solve(field: PairwiseField | FactorField, budget: float, search: str | None) -> Row:
    import pytoulbar2

    flat = flatten(field)
    begun = time.monotonic()
    problem = pytoulbar2.CFN(TOP, DIGITS, vns=FIRST_SOLUTION if search == "VNS" else None)
    for option, value in INCOMPLETE.get(search or "", {}).items():
        setattr(problem.Option, option, value)
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
    return {"score": score, "bound": bound, "optimal": bound - score < CLOSE, "seconds": seconds}


def incomplete(field: PairwiseField | FactorField, budget: float) -> Row:
    """The best score of all incomplete searches, each with the whole budget."""
    each = {name: solve(field, budget, name) for name in INCOMPLETE}
    best = max(each, key=lambda name: each[name]["score"])  # type: ignore[arg-type,return-value]
    return {"score": each[best]["score"], "search": best, "each": each}
