"""What `accord tune` gains over the default model in nine minutes.

    taskset -c 0 python benchmarks/defaults/tuning_gain.py results/tuning --task chameleon-egos --seed 0 1 2

The default model, the search and the training of its winner take the time that is asked for, and the better of the two
models on validation data is kept, as in `accord tune`. Test graphs are read after that, once by each of the two.
"""

import argparse
import json
import time
from pathlib import Path
from statistics import mean, stdev
from tempfile import TemporaryDirectory

import torch

from accord import NodeClassifier
from accord._files import write_json, write_text
from accord.bench.defaults import TASKS, load_task
from accord.estimator.fitting._finals import FinalFits
from accord.estimator.fitting._search import search_settings
from accord.evaluation import score_answers
from accord.experiments import provenance
from accord.experiments._results import markdown_table
from accord.learning.training import usual_torch
from accord.tuning import SearchBudget
from accord.tuning.trials._finals import FINAL, FINAL_NAMES

OLDER = "older.json"  # from when the winner was kept whatever the default model's score
MEASURES = {"node_accuracy": "nodes", "graph_accuracy": "graphs", "ece": "calibration error"}

HEAD = """# What a search of nine minutes gains over the default model

Written by `python benchmarks/defaults/tuning_gain.py results/tuning`: {threads} thread, {device}, commits {commits}.
SPN; validation scores at the level of the task (nodes), test figures in percent. *Default* and *winner* are trained by
the same commit with the same seed, inside the time. *Tuned* is the one of the two that is better on validation graphs.

{table}

## Gain

Tuned minus default on test graphs, in points, mean ± standard deviation over seeds. Commits are named as they were when
this was run.

{gains}
"""
OLDER_HEAD = """
## Older records

One seed, seven minutes on two cores, 16 November. The winner was kept without a comparison, and the default model was
that of an earlier commit: these rows say what a search found then, not what it gains now.

{table}
"""


def run(name: str, seed: int, minutes: float, trials: int) -> dict:
    """Search, train winner and default model, keep one, and score both once on the test graphs."""
    task, began = load_task(name, seed), time.perf_counter()
    model = NodeClassifier(seed=seed, num_states=task.num_states, level=task.level, accelerator="cpu")
    budget = SearchBudget(trials=trials, minutes=minutes)
    with usual_torch(), TemporaryDirectory() as folder:
        data = model._read(task.train, task.val)
        fits = FinalFits(model, *data)
        found = search_settings(model, *data, Path(folder), budget, final=fits)
        seconds = time.perf_counter() - began
        if not found.compared:
            raise SystemExit(f"{name}: half of {minutes:g} minutes is too short for the default model.")
        kept = fits.better(found)[0]
    record = {
        "task": name,
        "seed": seed,
        "minutes": minutes,
        "threads": torch.get_num_threads(),
        "trials": len({(own.part, own.number) for own in found.trials if own.part != FINAL}),
        "seconds": seconds,
        "kept": FINAL_NAMES[0 if found.kept_default else 1],
        "networks": [kept.recipe_.encoder.kind, kept.recipe_.edge_encoder.kind],
        "provenance": provenance(),
    }
    finals = {FINAL_NAMES[own.number]: own for own in found.trials if own.part == FINAL}
    for who, (own, _) in zip(FINAL_NAMES, fits.trained.values(), strict=True):
        result = finals[who]
        validation = {"score": result.score, "loss": result.loss, "seconds": result.seconds}
        record[who] = {"validation": validation, "test": score_answers(own.answers(task.test))["spn"]}
    return record


def page(records: list[dict], older: list[dict]) -> str:
    """The table of all runs, what is gained on average, and older records."""
    head = ["task", "seed", "trials", "minutes", "kept", "validation: default", "validation: winner"]
    head += [f"{title}: {who}" for title in MEASURES.values() for who in ("default", "tuned")]
    lines = []
    for own in sorted(records, key=lambda one: (one["task"], one["seed"])):
        scores = [100 * own[who]["validation"]["score"] for who in FINAL_NAMES]
        scores += [100 * own[who]["test"][key] for key in MEASURES for who in ("default", own["kept"])]
        cells = [own["task"], str(own["seed"]), str(own["trials"]), f"{own['seconds'] / 60:.1f}", own["kept"]]
        lines.append([*cells, *(f"{value:.1f}" for value in scores)])
    made = sorted({(own["provenance"]["commit"], own["provenance"]["date"]) for own in records})
    text = HEAD.format(
        threads=records[0]["threads"],
        device=records[0]["provenance"]["device"],
        commits=", ".join(f"{commit} ({date})" for commit, date in made),
        table=markdown_table(head, lines),
        gains=markdown_table(["task", "seeds", "kept", *MEASURES.values()], gains(records)),
    )
    return text + (OLDER_HEAD.format(table=older_table(older)) if older else "")


def gains(records: list[dict]) -> list[list[str]]:
    """A row for each task: what tuning adds on test graphs."""
    rows = []
    for task in dict.fromkeys(own["task"] for own in sorted(records, key=lambda one: one["task"])):
        mine = [own for own in records if own["task"] == task]
        won = sum(own["kept"] == "winner" for own in mine)
        row = [task, str(len(mine)), f"winner {won} of {len(mine)}"]
        for key in MEASURES:
            values = [100 * (own[own["kept"]]["test"][key] - own["default"]["test"][key]) for own in mine]
            row.append(f"{mean(values):+.1f}" + (f" ± {stdev(values):.1f}" if len(values) > 1 else ""))
        rows.append(row)
    return rows


def older_table(records: list[dict]) -> str:
    """The tuned model of older records; the default's figures of today are in results/defaults."""
    head = ["task", "trials", "validation: default then", "validation: tuned", *MEASURES.values()]
    lines = []
    for own in sorted(records, key=lambda one: one["task"]):
        values = [own["default"]["validation"][0], own["tuned validation"][0], *(own["tuned"][key] for key in MEASURES)]
        lines.append([own["task"], str(own["trials"]), *(f"{100 * value:.1f}" for value in values)])
    return markdown_table(head, lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out", type=Path)
    parser.add_argument("--task", nargs="*", default=[], choices=list(TASKS), help="None writes the page again.")
    parser.add_argument("--seed", type=int, nargs="+", default=[0])
    parser.add_argument("--minutes", type=float, default=9.0)
    parser.add_argument("--trials", type=int, default=200)
    given = parser.parse_args()
    path = given.out / "records.json"
    for name in given.task:
        for seed in given.seed:
            record = run(name, seed, given.minutes, given.trials)
            records = json.loads(path.read_text()) if path.is_file() else []
            records = [own for own in records if (own["task"], own["seed"]) != (name, seed)] + [record]
            write_json(path, records)
    older = given.out / OLDER
    text = page(json.loads(path.read_text()), json.loads(older.read_text()) if older.is_file() else [])
    write_text(given.out / "README.md", text)
    print(text)


if __name__ == "__main__":
    main()
