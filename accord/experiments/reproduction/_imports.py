"""Results of earlier tables as records: what was measured once is not lost.

Their files hold recipes of their time, so such records carry the code "imported" and the file that they come from.
What preset `paper` was before it became the paper's letter (sizes and rates of the appendix, own sums to the power 0.1)
is called `appendix`; `picked` is the same trainings with the sharpness picked on validation data.
"""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from accord.errors import InputError
from accord.experiments.reproduction._cells import CONVERGENCE, NUM_LABELS, RUN_TIME, TRAINING, Cell
from accord.experiments.reproduction._plan import IMPORTED
from accord.experiments.reproduction._records import Context, Metrics, Record
from accord.experiments.reproduction._studies import PAPER_TIMED_EPOCHS

APPENDIX, PICKED = "appendix", "picked"
VARIANTS = {  # names of the methods table -> method, variant
    "mlp": ("gnn", ""),
    "gnn": ("gnn", ""),
    "smooth": ("smooth", ""),
    "crf-linear": ("crf", ""),
    "crf": ("crf", ""),
    "crf-pl": ("crf", "pseudolikelihood"),
    "gmnn": ("gmnn", ""),
    "spn": ("spn", ""),
    "spn-shared": ("spn", "shared"),
    "spn-constrained": ("spn", "constrained"),
    "spn-refined": ("spn", "refined"),
}
WAYS = {"GNN": "gnn", "appendix": "spn", "sharpness picked": "picked", "accord's grid": "grid"}
COMMANDS = {
    "citation": "accord reproduce citation",
    "methods": "accord reproduce methods",
    "ppi": "accord reproduce ppi",
    "run-time": "accord reproduce run-time",
    "convergence": "accord reproduce convergence",
    "paper_preset": "benchmarks/explain_paper_preset.py",
}
Outcome = tuple[list[Record], list[Context]]


def import_results(folder: Path) -> Outcome:
    """The records of all tables in a folder of results."""
    records: list[Record] = []
    contexts: list[Context] = []
    for name, command in COMMANDS.items():
        for path in sorted((folder / name).rglob("*.json")):
            try:
                values = json.loads(path.read_text(encoding="utf-8"))
                found = list(_records(name, path, values))
                context = _context(values, f"imported from {path.relative_to(folder)}, written by {command}")
            except (ValueError, TypeError, LookupError, AttributeError) as error:
                raise InputError(f"{path}: is no result of {command} ({type(error).__name__}: {error}).") from error
            contexts.append(context)
            records += [Record(recipe=IMPORTED, context=context.code, **{"metrics": {}, **record}) for record in found]
    if not records:
        raise InputError(f"{folder}: has no results of earlier tables. Give a folder with citation/, methods/ or ppi/.")
    return records, contexts


def _context(values: dict[str, Any], source: str) -> Context:
    facts = values.get("provenance") or {}
    return Context(
        values.get("recipe") or {},
        values.get("features") or "the preset's",
        facts[0] if isinstance(facts, list) else facts,
        source,
    )


def _records(table: str, path: Path, values: dict[str, Any]) -> Iterator[dict[str, Any]]:
    preset = APPENDIX if values.get("preset", "paper") == "paper" else values["preset"]
    data, encoder = values["benchmark"], values["encoder"]
    if table == "run-time":
        times = {
            way: {"seconds": PAPER_TIMED_EPOCHS * sorted(seconds)[len(seconds) // 2]}
            for way, seconds in values["seconds"].items()
        }
        cell = Cell(RUN_TIME, data, "spn", encoder, preset)
        yield {"cell": cell, "seed": 1, "epochs": values.get("epochs", 40), "metrics": times}
    elif table == "convergence":
        cell = Cell(CONVERGENCE, data, "spn", encoder, preset, f"rate {values['rate']:g}")
        for place, seed in enumerate(values["seeds"]):
            curves = {name: runs[place] for name, runs in values["curves"].items()}
            epochs = int(max(row["epoch"] for rows in curves.values() for row in rows))
            yield {"cell": cell, "seed": seed, "epochs": epochs, "details": curves, "metrics": _ends(curves)}
    else:
        yield from _scores(table, path, values, preset)


def _scores(table: str, path: Path, values: dict[str, Any], preset: str) -> Iterator[dict[str, Any]]:
    """Scores of each seed; tables that score two ways of one training give both."""
    data, encoder = values["benchmark"], values["encoder"]
    method, variant = "spn", values.get("variant", "")
    scores = {WAYS.get(way, way): measures for way, measures in values["scores"].items()}
    if table == "methods" or "crf_full_batch" in path.parts:
        (name,) = values["scores"]
        method, variant = VARIANTS[name]
        variant = "full batch" if "crf_full_batch" in path.parts else variant
        scores = {method: values["scores"][name]}
    elif table == "paper_preset" and "gnn" not in scores:
        method = str(values.get("method", "crf" if "-crf-" in path.name else "gmnn"))
        scores = {method: next(iter(values["scores"].values()))}
    epochs = values["max_epochs"] if "max_epochs" in values else values["recipe"]["training"]["max_epochs"]
    seconds = values.get("seconds")
    for place, seed in enumerate(values["seeds"]):
        metrics: Metrics = {
            way: {name: float(numbers[place]) for name, numbers in measures.items() if name != "sharpness"}
            for way, measures in scores.items()
        }
        common = {
            "seed": seed,
            "epochs": int(epochs),
            "block": (0, NUM_LABELS) if table == "ppi" else None,
            "seconds": None if seconds is None else seconds / len(values["seeds"]),
        }
        yield {"cell": Cell(TRAINING, data, method, encoder, preset, variant), "metrics": metrics, **common}
        if PICKED in metrics and variant in ("", "as it is"):
            both = {"gnn": metrics["gnn"], "spn": metrics[PICKED]}
            yield {"cell": Cell(TRAINING, data, method, encoder, PICKED), "metrics": both, **common}


def _ends(curves: dict[str, list[dict[str, float]]]) -> Metrics:
    return {
        name: {
            "start": rows[0]["field_score"],
            "end": rows[-1]["field_score"],
            "best": max(row["field_score"] for row in rows),
        }
        for name, rows in curves.items()
    }
