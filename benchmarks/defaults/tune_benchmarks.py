"""Search the preset's recipes for the citation sets anew, side by side, on validation data alone.

    python benchmarks/defaults/tune_benchmarks.py out --minutes 4 --device cuda
    python benchmarks/defaults/tune_benchmarks.py out --benchmarks cora* --encoders gcn --minutes 10 --jobs 1

Each benchmark and encoder is searched by a process of its own, as `accord tune BENCHMARK --encoder ENCODER --seeds 3
--trials 80 --search-only` does; only the packages of the core are needed. `out` receives:

- summary.md: the validation score of the preset's recipe and of the best one that was found,
- table.json: the preset's table with every recipe that is better, in the form of
  accord/methods/presets/accord_benchmarks.json,
- runs/: the searches; the same command continues those that were stopped.

Test labels are never read. Scores of the best of many trials are too high; judge a new table on fresh seeds.
"""

import argparse
import json
import os
from concurrent.futures import ProcessPoolExecutor
from itertools import product
from multiprocessing import get_context
from pathlib import Path
from typing import Any

from promote_recipes import KEPT, TABLE, promote

from accord._files import write_json, write_text
from accord.datasets import load_benchmark
from accord.estimator import NodeClassifier, find_settings
from accord.experiments._results import markdown_table as as_markdown
from accord.methods import preset_recipe, recipe_to_config
from accord.tuning import SearchBudget, TunedRecipe, markdown_table, trial_rows, write_recipe

BENCHMARKS = ("cora*", "citeseer*", "pubmed*")
ENCODERS = ("gcn", "gat", "gcnii")


def tune(benchmark: str, encoder: str, folder: Path, budget: SearchBudget, device: str, seed: int) -> dict[str, Any]:
    """Search one recipe; its file and table are written to `folder`/search."""
    bench = load_benchmark(benchmark, features="raw")
    model = NodeClassifier(encoder=encoder, benchmark=benchmark, level=bench.level, accelerator=device, seed=seed)
    model.set_params(num_states=bench.num_states)
    found = find_settings(model, bench.train, bench.val, folder, budget, fixed=["encoder"])
    rows = trial_rows(found.trials)
    path = folder / "search" / "recipe.json"
    write_recipe(path, TunedRecipe(found.method, found.features, found.recipe))
    write_text(folder / "search" / "table.md", markdown_table(rows))
    pairs = [row for row in rows if row["part"] == "pair"]
    preset = json.loads(json.dumps(recipe_to_config(preset_recipe("accord", encoder, benchmark=benchmark))))
    own = [row["score"] for row in pairs if all(row["recipe"][key] == preset[key] for key in KEPT)]
    counts = [sum(row["part"] == part for row in rows) for part in ("node", "edge", "pair")]
    record = {"benchmark": benchmark, "encoder": encoder, "preset": own[0] if own else None, "trials": counts}
    return record | {"found": pairs[0]["score"], "file": str(path)}


def summary(records: list[dict[str, Any]], level: str = "graph") -> str:
    """The validation scores as markdown."""
    rows = []
    for own in records:
        scores = ["-" if own[key] is None else f"{100 * own[key]:.1f}" for key in ("preset", "found")]
        rows.append([own["benchmark"].replace("*", "\\*"), own["encoder"], *map(str, own["trials"]), *scores])
    head = ["benchmark", "encoder", "node trials", "edge trials", "pairs", "preset's recipe, %", "best, %"]
    return f"Validation accuracy ({level}), mean over the seeds of a trial.\n\n{as_markdown(head, rows)}\n"


def is_better(record: dict[str, Any]) -> bool:
    """Whether a search has found something better than the preset's recipe, in as many epochs."""
    return record["preset"] is not None and record["found"] > record["preset"]


def main() -> None:
    """Run all searches, then write summary and table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out", type=Path)
    parser.add_argument("--benchmarks", nargs="+", default=BENCHMARKS, choices=BENCHMARKS)
    parser.add_argument("--encoders", nargs="+", default=ENCODERS, choices=ENCODERS)
    parser.add_argument("--trials", type=int, default=80)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--minutes", type=float, default=4.0)
    parser.add_argument("--jobs", type=int, default=9, help="searches at a time")
    parser.add_argument("--device", default="auto", choices=["auto", "cpu", "cuda"])
    parser.add_argument("--runs", type=Path, help="folder of the searches; OUT/runs if it is not given")
    args = parser.parse_args()
    os.environ.setdefault("OMP_NUM_THREADS", str(max(1, (os.cpu_count() or 1) // args.jobs)))  # of the processes below
    budget = SearchBudget(trials=args.trials, minutes=args.minutes, seeds=args.seeds, train_winner=False)
    runs = args.runs or args.out / "runs"
    records = []
    with ProcessPoolExecutor(args.jobs, mp_context=get_context("spawn")) as pool:
        waiting = [
            pool.submit(tune, name, kind, runs / f"{name.rstrip('*')}-{kind}", budget, args.device, args.seed)
            for name, kind in product(args.benchmarks, args.encoders)
        ]
        for job in waiting:
            records.append(job.result())
            print(json.dumps(records[-1]), flush=True)
            write_text(args.out / "summary.md", summary(records))
    table = json.loads(TABLE.read_text())
    for record in filter(is_better, records):
        table = promote(table, record["benchmark"], record["encoder"], Path(record["file"]))
    write_json(args.out / "table.json", table)


if __name__ == "__main__":
    main()
