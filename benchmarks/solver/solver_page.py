"""The page of `benchmarks/solver/solver.py`: tables, and in words who is ahead where."""

import statistics
from typing import Any

from origin import told

Row = dict[str, Any]
COLUMNS = {"beliefs": "beliefs", "PGMax": "PGMax", "restarts": "restarts", "incomplete": "toulbar2, incomplete"}
BOUNDED = ("toulbar2", "accord")  # these also tell a bound
RIVALS = ("toulbar2", "incomplete", "PGMax", "restarts", "beliefs")
ROUNDED = 1e-4  # bounds of toulbar2 come from rounded costs
INTRODUCTION = """\
An asterisk marks a proved optimum. *Known* is the labelling that the competition published. *Beliefs* decodes
`propagate(semiring="max")`; *restarts* improves random labellings by changes of single nodes until the time is up, on
pairwise fields. PGMax runs max-product with damping 0.5 and a little noise in the evidence; the best labels on the way
count. *toulbar2* has its default options; its limit is in processor time, and its seconds are those of the clock, with
building the model. *Order* is the largest number of variables of a factor. All solvers run on one thread."""
SEARCHES = """\
*Incomplete* is the best of toulbar2's other searches (VNS, INCOP, PILS), each with the whole budget, where the default
proves no optimum. PGMax and restarts stop at an optimum that toulbar2 has proved. Models that begin with *new* are of
kinds on which nothing in accord was set; their parameters were chosen before their first run."""
KNOWN = """\
*Known* lies far below some proved optima. With variable 0 fixed at 0, the published labellings of the three models
Segmentation are optimal (-51.23, -96.37, -411.17), so they are answers under that evidence, which is not among the
files. For Promedas_52 the evidence was not found; without any, no variable is 1 in the optimum, and 168 are 1 in the
published labelling."""


EARLIER = """\
These figures are older than the script: *beliefs* are those of a decoder that did not search graphs whose messages do
not converge, only accord was given the colourings, and toulbar2 its default search."""


def tolerance(score: float) -> float:
    """Differences that summing in another order may make."""
    return 1e-6 * max(1.0, abs(score))


def shown(found: Row | None) -> str:
    return f"{found['score']:.2f}" + ("*" if found.get("optimal") else "") if found else ""


def bounded(row: Row) -> list[str]:
    cells = []
    for solver in BOUNDED:
        found = row.get(solver)
        cells += [shown(found), *([f"{found['bound']:.2f}", f"{found['seconds']:.2f}"] if found else ["", ""])]
    return cells


def table(names: list[str], aligned: str, rows: list[list[object]]) -> list[str]:
    return ["| " + " | ".join(names) + " |", aligned, *("| " + " | ".join(map(str, row)) + " |" for row in rows), ""]


def models(rows: list[Row]) -> list[str]:
    sizes = ["nodes", "factors", "order", "states"]
    columns = [solver for solver in COLUMNS if any(solver in row for row in rows)]
    names = ["model", *sizes, "known", *(COLUMNS[solver] for solver in columns)]
    names += [name for solver in BOUNDED for name in (solver, "its bound", "s")]
    cells = [
        [
            row["model"],
            *(row[size] for size in sizes),
            "" if row["known"] is None else f"{row['known']:.2f}",
            *(shown(row.get(solver)) for solver in columns),
            *bounded(row),
        ]
        for row in rows
    ]
    return table(names, "|---" + "|--:" * (len(names) - 1) + "|", cells)


def colourings(rows: list[Row]) -> list[str]:
    """How many fields each solver coloured, and how long that took."""
    lines = [
        "## Colourings",
        "",
        "Random graphs that have a colouring with 3 colours, and seconds for one graph.",
        "",
    ]
    cells: list[list[object]] = []
    for kind in dict.fromkeys(row["colouring"] for row in rows):
        own = [row for row in rows if row["colouring"] == kind]
        for solver in ("accord", *RIVALS):
            found = [row[solver] for row in own if solver in row]
            if found:
                solved = sum(one["score"] > float("-inf") for one in found)
                seconds = sorted(_seconds(one) for one in found)
                times = [f"{statistics.median(seconds):.2f}", f"{seconds[-1]:.2f}"]
                cells.append([kind, COLUMNS.get(solver, solver), f"{solved} of {len(found)}", *times])
    return lines + table(["graph", "solver", "solved", "median s", "longest s"], "|---|---|--:|--:|--:|", cells)


def _seconds(found: Row) -> float:
    return sum(one["seconds"] for one in found["each"].values()) if "each" in found else found["seconds"]


def budgets(rows: list[Row]) -> list[str]:
    names = ["model", "budget, s", COLUMNS["incomplete"], "its search"]
    names += [name for solver in BOUNDED for name in (solver, "its bound", "s")]
    cells = [
        [
            row["model"],
            f"{row['budget']:g}",
            shown(row.get("incomplete")),
            row.get("incomplete", {}).get("search", ""),
            *bounded(row),
        ]
        for row in rows
    ]
    return ["## Other budgets", "", *table(names, "|---|--:|--:|---" + "|--:" * 6 + "|", cells)]


def verdicts(rows: list[Row]) -> list[str]:
    """In words: scores below a rival's, optima that toulbar2 alone proves, and bounds that are looser."""
    lines = []
    for solver in RIVALS:
        pairs = [(row, row[solver]["score"], row["accord"]["score"]) for row in rows if row.get(solver)]
        below = [
            f"{_name(row)} ({own:.2f}, {solver} {other:.2f})"
            for row, other, own in pairs
            if own < other - tolerance(other)
        ]
        above = sum(own > other + tolerance(other) for _, other, own in pairs)
        if pairs:
            title = COLUMNS.get(solver, solver)
            lines.append(
                f"* Scores beside {title} ({len(pairs)}): accord is above on {above}, below on "
                f"{len(below)}{': ' + '; '.join(below) if below else ''}."
            )
    both = [row for row in rows if row.get("toulbar2")]
    proved = {name: [row for row in both if row[name]["optimal"]] for name in BOUNDED}
    alone = [_name(row) for row in proved["toulbar2"] if not row["accord"]["optimal"]]
    lines.append(
        f"* Optima proved: accord {len(proved['accord'])}, toulbar2 {len(proved['toulbar2'])}, of {len(both)}; by "
        f"toulbar2 alone: {'; '.join(alone) or 'none'}."
    )
    looser = [
        f"{_name(row)} ({row['accord']['bound']:.2f}, toulbar2 {row['toulbar2']['bound']:.2f})"
        for row in both
        if row["accord"]["bound"] > row["toulbar2"]["bound"] + ROUNDED
    ]
    lines.append(f"* Bounds that are looser than toulbar2's: {'; '.join(looser) or 'none'}.")
    return [*lines, ""]


def _name(row: Row) -> str:
    return row["model"] + (f" in {row['budget']:g} s" if "budget" in row else "")


def page(stored: Row) -> str:
    rows = stored["models"]
    lines = [
        "# The best labelling, with a bound",
        "",
        f"Written by `benchmarks/solver/solver.py`, {stored['budget']:g} s for each solver and model.",
        "",
        told(stored["origin"]),
        *([] if "commit" in stored["origin"] else [EARLIER]),
        "",
        INTRODUCTION,
        *([SEARCHES] if any("incomplete" in row for row in rows) else []),
        "",
        *verdicts(rows),
        *models(rows),
        KNOWN,
        "",
    ]
    if stored.get("colourings"):
        lines += colourings(stored["colourings"])
    if stored.get("budgets"):
        lines += budgets(stored["budgets"]) + verdicts(stored["budgets"])
    return "\n".join(lines).rstrip() + "\n"
