"""What `accord tune` gains over the default model in ten minutes on two cores.

    taskset -c 0,1 python benchmarks/tuning_gain.py results/tuning --task letters --minutes 9

The search and the training of its winner take the time that is asked for; choices are made on validation data. Test
graphs are read once. The default model's record of the same task and seed comes from results/defaults, or is run.
"""

import argparse
import json
import time
from pathlib import Path

import torch

from accord import NodeClassifier
from accord._files import write_json, write_text
from accord.bench.defaults import TASKS, load_task
from accord.bench.defaults._run import run_one
from accord.estimator.fitting._search import find_settings
from accord.evaluation import score_answers
from accord.experiments import provenance
from accord.experiments._results import markdown_table
from accord.tuning import SearchBudget

DEFAULTS = Path("results/defaults/records.json")
MEASURES = {"node_accuracy": "nodes", "graph_accuracy": "graphs", "ece": "calibration error"}


def run(name: str, seed: int, minutes: float, trials: int) -> dict:
    """Search, train the winner, and score it once on the test graphs."""
    task = load_task(name, seed)
    known = {"seed": seed, "num_states": task.num_states, "level": task.level, "accelerator": "cpu"}
    began = time.perf_counter()
    budget = SearchBudget(trials=trials, minutes=minutes)
    found = find_settings(NodeClassifier(**known), task.train, task.val, budget=budget)
    searched = time.perf_counter() - began
    model = NodeClassifier(**known, recipe=found.recipe, features=found.features).fit(task.train, task.val)
    seconds = time.perf_counter() - began
    recipe = found.recipe
    return {
        "task": name,
        "seed": seed,
        "minutes": minutes,
        "threads": torch.get_num_threads(),
        "trials": len({(own.part, own.number) for own in found.trials}),
        "searched": searched,
        "seconds": seconds,
        "networks": [recipe.encoder.kind, recipe.edge_encoder.kind],
        "tuned": score_answers(model.answers(task.test))["spn"],
        "tuned validation": model.choice_["score"],
        "provenance": provenance(),
    }


def default_of(name: str, seed: int) -> dict:
    """The default model's record of the same task and seed."""
    if DEFAULTS.is_file():
        for record in json.loads(DEFAULTS.read_text())["records"]:
            if (record["task"], record["model"], record["seed"]) == (name, "default", seed):
                return _default(record["scores"], record["seconds"], record["details"])
    record = run_one(load_task(name, seed), "default", seed, {})
    return _default(record.scores, record.seconds, record.details)


def _default(scores: dict, seconds: float, details: dict) -> dict:
    return {"scores": scores["spn"], "seconds": seconds, "validation": details["choice"]["score"]}


def table(records: list[dict]) -> str:
    head = ["task", "seed", "trials", "minutes", "validation: default", "validation: tuned"]
    head += [f"{title}: {who}" for title in MEASURES.values() for who in ("default", "tuned")]
    lines = []
    for own in sorted(records, key=lambda one: (one["task"], one["seed"])):
        before = own["default"]
        validation = [100 * before["validation"][0], 100 * own["tuned validation"][0]]
        cells = [100 * scores[key] for key in MEASURES for scores in (before["scores"], own["tuned"])]
        minutes = f"{own['seconds'] / 60:.1f}"
        lines.append(
            [own["task"], str(own["seed"]), str(own["trials"]), minutes, *(f"{v:.1f}" for v in [*validation, *cells])]
        )
    text = "# What a search of ten minutes gains over the default model\n\n"
    text += "Written by `python benchmarks/tuning_gain.py results/tuning`, two cores.\n"
    text += "SPN, one seed; validation scores at the level of the task (nodes), test figures in percent.\n\n"
    return text + markdown_table(head, lines) + "\n"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out", type=Path)
    parser.add_argument("--task", nargs="+", default=["letters"], choices=list(TASKS))
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--minutes", type=float, default=9.0)
    parser.add_argument("--trials", type=int, default=200)
    given = parser.parse_args()
    path = given.out / "records.json"
    for name in given.task:
        record = run(name, given.seed, given.minutes, given.trials)
        record["default"] = default_of(name, given.seed)
        records = json.loads(path.read_text()) if path.is_file() else []
        records = [own for own in records if (own["task"], own["seed"]) != (name, given.seed)] + [record]
        write_json(path, records)
        write_text(given.out / "README.md", table(records))
        print(table(records))


if __name__ == "__main__":
    main()
