"""Three thresholds of the default model, judged by validation data that it did not choose by.

    python benchmarks/defaults/thresholds.py results/thresholds --jobs 16 --minutes 9
    python benchmarks/defaults/thresholds.py results/thresholds --page

Validation graphs are halved at random: a default model makes its choices by one half and is scored on the other. Of a
single validation graph, the labels are halved. No test graph is read. One threshold is changed at a time; where nothing
that the model decides before training changes with it, the fit of the default stands for it.

A fit with one thread and its scores are a cell, in a file of its own under OUT/cells. A finished cell is not run again,
so one call may continue another. Calls at the same time, or on another device, need tasks of their own. Each call
writes the page at its end, and OUT/records.json with all cells; their files can be deleted then.
"""

import argparse
import json
import multiprocessing
import time
import warnings
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor, wait
from contextlib import nullcontext
from copy import copy
from itertools import product
from pathlib import Path
from statistics import mean, stdev
from typing import Any
from unittest.mock import patch

import torch
from torch_geometric.data import Data

from accord import NodeClassifier
from accord._files import remove_leftovers, write_json, write_text
from accord.bench.defaults import Task, load_task
from accord.estimator.fitting._automatic import portfolio_for
from accord.evaluation import graph_accuracy, mean_log_likelihood, node_accuracy
from accord.experiments import provenance
from accord.experiments._results import markdown_table
from accord.graphs import fit_treatment
from accord.tuning import _candidates, _schedule

# By the time of a fit, the shortest first. Not few-graphs, where two graphs of eight nodes would judge.
TASKS = (
    *("fraud", "grids", "digits", "citeseer*", "chameleon-parts", "cora*", "signed-edges", "pubmed*", "photo-egos"),
    *("chameleon-egos", "words", "facebook-egos", "letters", "coauthor-egos", "photo-parts", "citation-domains"),
    *("coauthor-parts", "facebook-parts"),
)
MODULES = {"BATCH_NODES": _schedule, "PATIENCE": _schedule, "SPARSE": _candidates}  # each is read in its module only
OTHERS = {"BATCH_NODES": (128, 512), "PATIENCE": (200, 800), "SPARSE": (0.6, 0.95)}
USUAL = {name: getattr(module, name) for name, module in MODULES.items()}
DEFAULT = "default"
VARIANTS = {DEFAULT: ("", 0.0)} | {f"{name}-{value}": (name, value) for name in OTHERS for value in OTHERS[name]}
MEASURES = {"nodes": 100, "graphs": 100, "likelihood": 1000}
SEEDS = (20, 21, 22)  # not those of the stored tables: other parts, graphs and folds, where the seed makes them
DECIDES = "nodes"

HEAD = """# Thresholds of the default model

Written by `python benchmarks/defaults/thresholds.py results/thresholds`: {where}.

Default models, seeds {seeds}. Validation graphs are halved at random, once for each seed (the labels, where there is
one graph only): one half chooses, the other is scored. No test graph is read. Differences to the default are paired:
points of node accuracy and of graphs with every node right, thousandths of a nat of mean log-likelihood of a node;
± is the standard error over seeds. *Same*: nothing that the model decides before training changes, so no fit was run.

**Rule**, fixed before the first run: the default stays unless another value has a mean difference in node accuracy over
the tasks where it matters of more than two standard errors, and is not worse by two in graphs or likelihood. The
standard error of a mean is the larger of two: from the spread of tasks, and from the seeds of each task.

{summary}

*Time*: of all fits of these tasks, divided by that of the default.
"""
FOOT = """
Halves of ego networks share nodes, since the networks of one part overlap. Tasks of one source (parts and egos) are not
independent. Six comparisons are made: were all values equally good, about one study in seven would call one better.
Where a value matters on one or two tasks only, its standard error rests on few figures. Few-graphs is left out: two
graphs of eight nodes would judge. Validation graphs of Cora\\*, Citeseer\\* and Pubmed\\* are the same for every seed,
and were there when the thresholds were set.
"""


def halve(graphs: Sequence[Data], seed: int) -> tuple[list[Data], list[Data]]:
    """Two random halves of the graphs; of a single one, with half of the labels each."""
    generator = torch.Generator().manual_seed(seed)
    if len(graphs) > 1:
        order = torch.randperm(len(graphs), generator=generator).tolist()
        return [graphs[place] for place in order[::2]], [graphs[place] for place in order[1::2]]
    hidden = torch.rand(len(graphs[0].y), generator=generator) < 0.5
    halves = copy(graphs[0]), copy(graphs[0])
    for half, mask in zip(halves, (hidden, ~hidden), strict=True):
        half.y = half.y.masked_fill(mask, -1)
    return [halves[0]], [halves[1]]


def changed(variant: str):
    """A context with one threshold changed."""
    name, value = VARIANTS[variant]
    return patch.object(MODULES[name], name, type(USUAL[name])(value)) if name else nullcontext()


def plan(model: NodeClassifier, task: Task) -> tuple:
    """What a default model decides before training: features, schedule and candidates."""
    features = model.resolve_features(task.train)
    treatment = fit_treatment(features, task.train)
    treated = [treatment.apply(graph) for graph in task.train]
    recipe = model.resolve_recipe(treated)
    return features, recipe, portfolio_for(recipe, model.get_params(deep=False), treated)


def run(name: str, seed: int, variant: str, accelerator: str) -> dict[str, Any]:
    """Fit one variant on one task and score it."""
    warnings.simplefilter("ignore")
    task = load_task(name, seed)
    cell: dict[str, Any] = {"task": name, "seed": seed, "variant": variant}
    model = NodeClassifier(seed=seed, num_states=task.num_states, level=task.level, accelerator=accelerator)
    usual = plan(model, task) if variant != DEFAULT else None
    with changed(variant):
        if usual is not None and plan(model, task) == usual:
            return {**cell, "same": True}
        own, other = halve(task.val, seed)
        began = time.perf_counter()
        model.fit(task.train, own)
        seconds = time.perf_counter() - began
        answers = model.answers(other)
    labels, probabilities = answers.labels[answers.whole], answers.probabilities[answers.whole]
    assert answers.truth is not None
    scores = {
        "nodes": float(node_accuracy(labels, answers.truth)[0]),
        "likelihood": float(mean_log_likelihood(probabilities.log(), answers.truth)[0]),
    }
    if len(other) > 1:
        scores["graphs"] = float(graph_accuracy(labels, answers.truth, answers.topology)[0])
    networks = [getattr(model.recipe_, part).kind for part in ("encoder", "edge_encoder")]
    details = {"features": model.treatment_.name, "networks": networks, "seconds": round(seconds, 2)}
    return {**cell, **scores, **details, "provenance": provenance(torch.device(accelerator))}


def run_and_store(name: str, seed: int, variant: str, accelerator: str, path: Path) -> None:
    cell = run(name, seed, variant, accelerator)
    write_json(path, cell)
    print(name, seed, variant, "same" if "same" in cell else f"{cell['seconds']:.1f} s", flush=True)


def run_all(missing: Sequence[tuple], jobs: int, seconds: float | None) -> list[BaseException]:
    """Run cells until the time is over; returns the errors of those that failed."""
    spawn = multiprocessing.get_context("spawn")  # a forked process cannot use a GPU
    pool = ProcessPoolExecutor(jobs, spawn, initializer=torch.set_num_threads, initargs=(1,))
    done, late = wait([pool.submit(run_and_store, *one) for one in missing], seconds)
    pool.shutdown(wait=not late, cancel_futures=True)
    if late:
        print(f"the time is over; cells not finished: {len(late)}", flush=True)
        for child in multiprocessing.active_children():
            child.kill()
            child.join()
    return [error for one in done if (error := one.exception()) is not None]


def read(out: Path) -> list[dict[str, Any]]:
    """All finished cells, in the order of tasks, seeds and variants."""
    stored = json.loads((out / "records.json").read_text()) if (out / "records.json").is_file() else []
    stored += [json.loads(path.read_text()) for path in sorted((out / "cells").glob("*.json"))]
    found = {(one["task"], one["seed"], one["variant"]): one for one in stored}
    variants = list(VARIANTS)
    return [found[key] for key in sorted(found, key=lambda key: (TASKS.index(key[0]), key[1], variants.index(key[2])))]


def differences(records: Sequence[dict], variant: str) -> dict[str, dict[str, list[float]]]:
    """Of a variant to the default, by task and measure over seeds; nothing for a task where they are the same."""
    usual = {(one["task"], one["seed"]): one for one in records if one["variant"] == DEFAULT}
    found: dict[str, dict[str, list[float]]] = {}
    for one in records:
        if one["variant"] == variant and (before := usual.get((one["task"], one["seed"]))) is not None:
            values = found.setdefault(one["task"], {measure: [] for measure in MEASURES if measure in before})
            after = before if "same" in one else one
            for measure in values:
                values[measure].append(MEASURES[measure] * (after[measure] - before[measure]))
    same = {one["task"] for one in records if one["variant"] == variant and "same" in one}
    return {task: {} if task in same and not any(map(any, own.values())) else own for task, own in found.items()}


def over_tasks(values: Sequence[Sequence[float]]) -> tuple[float, float]:
    """The mean over tasks and its standard error, infinite where neither tasks nor seeds give one."""
    means, errors = [mean(own) for own in values], [torch.inf]
    if len(means) > 1:
        errors.append(stdev(means) / len(means) ** 0.5)
    if all(len(own) > 1 for own in values):
        errors.append(sum(stdev(own) ** 2 / len(own) for own in values) ** 0.5 / len(means))
    return mean(means), max(errors[1:], default=torch.inf)


def is_better(found: dict[str, dict[str, list[float]]]) -> bool:
    """The rule of the page."""
    pooled = {name: [own[name] for own in found.values() if name in own] for name in MEASURES}
    ends = {name: over_tasks(own) for name, own in pooled.items() if own}
    gain, error = ends.get(DECIDES, (0.0, 0.0))
    return gain > 2 * error and all(value >= -2 * own for value, own in ends.values())


def shown(values: Sequence[Sequence[float]]) -> str:
    if not any(values):
        return ""
    value, error = over_tasks(values)
    return f"{value:+.2f}" + (f" ± {error:.2f}" if error < torch.inf else "")


def verdict(records: Sequence[dict], variant: str) -> list[str]:
    """A row of the summary."""
    name, value = VARIANTS[variant]
    every = differences(records, variant)
    found = {task: own for task, own in every.items() if own}
    pooled = [[own[measure] for own in found.values() if measure in own] for measure in MEASURES]
    seconds = {(one["task"], one["seed"], one["variant"]): one["seconds"] for one in records if "seconds" in one}
    usual = {key: seconds.get((*key[:2], DEFAULT)) for key in seconds if key[2] == variant}
    spent = [(seconds[key], before) for key, before in usual.items() if before is not None]
    ratio = f"{sum(after for after, _ in spent) / sum(before for _, before in spent):.2f}" if spent else ""
    decided = f"{value:g} is better" if is_better(found) else f"{USUAL[name]:g} stays" if every else "not run"
    return [name, f"{value:g}", f"{len(found)} of {len(every)}", *map(shown, pooled), ratio, decided]


def task_table(records: Sequence[dict], name: str) -> str:
    """All values of a threshold, a row for each task."""
    every = {value: differences(records, f"{name}-{value}") for value in OTHERS[name]}
    lines = []
    for task in [task for task in TASKS if any(task in found for found in every.values())]:
        lines.append([task.replace("*", "\\*")])
        for value, measure in product(OTHERS[name], MEASURES):
            own = every[value].get(task)
            lines[-1].append("same" if own == {} else "" if own is None else shown([own.get(measure, [])]))
    head = ["task", *(f"{value:g}: {measure}" for value, measure in product(OTHERS[name], MEASURES))]
    return f"\n## {name}: {USUAL[name]:g} by default\n\n{markdown_table(head, lines)}\n"


def page(records: Sequence[dict]) -> str:
    """The decisions, then a table for each threshold."""
    keys = ("device", "torch", "commit", "date")
    places = {tuple(one["provenance"][key] for key in keys) for one in records if "provenance" in one}
    where = "; ".join("{}, torch {}, commit {}, {}".format(*one) for one in sorted(places))
    seeds = ", ".join(map(str, sorted({one["seed"] for one in records})))
    head = ["threshold", "value", "tasks where it matters", *MEASURES, "time", "by the rule"]
    summary = markdown_table(head, [verdict(records, variant) for variant in VARIANTS if variant != DEFAULT])
    tables = "".join(task_table(records, name) for name in OTHERS)
    return HEAD.format(where=where, seeds=seeds, summary=summary) + tables + FOOT


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out", type=Path)
    parser.add_argument("--tasks", nargs="+", default=list(TASKS), choices=list(TASKS))
    parser.add_argument("--seeds", type=int, nargs="+", default=list(SEEDS))
    parser.add_argument("--variants", nargs="+", default=list(VARIANTS), choices=list(VARIANTS))
    parser.add_argument("--accelerator", default="cpu", choices=["cpu", "cuda"])
    parser.add_argument("--jobs", type=int, default=1, help="processes, with one thread each")
    parser.add_argument("--minutes", type=float, help="end then; cells that are not finished are left out")
    parser.add_argument("--page", action="store_true", help="only write the page of what is finished")
    given = parser.parse_args()
    failed: list[BaseException] = []
    if not given.page:
        done = {(one["task"], one["seed"], one["variant"]) for one in read(given.out)}
        tasks, cells = sorted(given.tasks, key=TASKS.index), given.out / "cells"
        missing = [
            (*one, given.accelerator, cells / f"{one[0].rstrip('*')}-{one[1]}-{one[2]}.json")
            for one in product(tasks, given.seeds, given.variants)
            if one not in done
        ]
        failed = run_all(missing, given.jobs, None if given.minutes is None else 60 * given.minutes)
        remove_leftovers(cells)
    records = read(given.out)
    write_json(given.out / "records.json", records)
    write_text(given.out / "README.md", page(records))
    print(page(records))
    if failed:
        raise failed[0]


if __name__ == "__main__":
    main()
