"""Run tasks: peers, our node network and our joint model with default settings; one stored record for each seed."""

import multiprocessing
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import asdict
from pathlib import Path
from typing import Any

import torch

from accord._files import write_json, write_text
from accord.bench.defaults._peers import answers_of, fit_logistic_regression, fit_plain_gnn
from accord.bench.defaults._records import MEASURES, PEERS, Record, read_records
from accord.bench.defaults._table import table
from accord.bench.defaults._tasks import Task, load_task
from accord.estimator import NodeClassifier
from accord.evaluation import score_answers
from accord.experiments import provenance

NOTES = "notes.md"


def run_defaults(
    tasks: Sequence[str],
    seeds: Sequence[int],
    models: Sequence[str],
    out: Path,
    parameters: dict[str, Any] | None = None,
    tell: Callable[[str], None] = print,
    jobs: int = 1,
) -> list[Record]:
    """Run what is not stored yet, store each record as it comes, and write the table.

    Args:
        tasks: their names.
        seeds: one run each.
        models: of `PEERS`, and "default" or another name for `NodeClassifier` with `parameters`.
        out: folder of the records and the table; notes.md there goes to the end of the page.
        parameters: of `NodeClassifier`, where they are not the defaults.
        tell: called with a line for each record.
        jobs: processes side by side, each with one thread.
    """
    path = out / "records.json"
    records = read_records(path) if path.is_file() else []
    done = {(record.task, record.model, record.seed) for record in records}
    wanted = [(task, model, seed) for seed in seeds for task in tasks for model in models]
    missing = [(*one, parameters or {}) for one in wanted if one not in done]
    for record in _run_all(missing, jobs):
        records.append(record)
        tell(describe(record))
        write_json(path, {"records": [asdict(record) for record in records]})
    notes = out / NOTES
    write_text(out / "README.md", table(records, notes.read_text(encoding="utf-8") if notes.is_file() else ""))
    return records


def _run_all(missing: Sequence[tuple[str, str, int, dict[str, Any]]], jobs: int) -> Iterator[Record]:
    """Records as they come."""
    if jobs <= 1:
        yield from (run_job(*one) for one in missing)
        return
    spawn = multiprocessing.get_context("spawn")  # a forked process cannot use a GPU that its parent has used
    with ProcessPoolExecutor(jobs, spawn, initializer=torch.set_num_threads, initargs=(1,)) as pool:
        for done in as_completed([pool.submit(run_job, *one) for one in missing]):
            yield done.result()


def run_job(name: str, model: str, seed: int, parameters: dict[str, Any]) -> Record:
    """One model on one task."""
    return run_one(load_task(name, seed), model, seed, parameters)


def run_one(task: Task, model: str, seed: int, parameters: dict[str, Any]) -> Record:
    """Train one model and score it once on the test graphs."""
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    begin = time.perf_counter()
    if model in PEERS:
        predict = fit_logistic_regression(task) if model == "logistic" else fit_plain_gnn(model, task, seed, device)
        seconds = time.perf_counter() - begin
        scores = score_answers(answers_of(predict, task.test, model))
        return Record(task.name, model, seed, scores, seconds, provenance=provenance())
    known: dict[str, Any] = {"seed": seed, "num_states": task.num_states, "level": task.level}
    classifier = NodeClassifier(**known | parameters)
    classifier.fit(task.train, task.val)
    seconds = time.perf_counter() - begin
    details: dict[str, Any] = {
        "choice": classifier.choice_,
        "networks": _networks(classifier),
        "features": classifier.treatment_.name,
    }
    details["candidates"] = classifier.candidates_
    scores = score_answers(classifier.answers(task.test))
    return Record(task.name, model, seed, scores, seconds, details, provenance())


def _networks(classifier: NodeClassifier) -> dict[str, Any]:
    """Kinds of the encoders, and whether edges are read with their direction."""
    names = ("encoder", "edge_encoder")
    kinds = {name: getattr(classifier.recipe_, name).kind for name in names if hasattr(classifier.recipe_, name)}
    return kinds | {"directed": classifier.directed_}


def describe(record: Record) -> str:
    """A record in one line."""
    parts = []
    for part, scores in record.scores.items():
        values = [100 * (scores[measure] or 0.0) for measure in MEASURES]
        parts.append(f"{part} {values[0]:.1f}/{values[1]:.1f}/{values[2]:.1f}")
    return f"{record.task:18s} {record.model:12s} seed {record.seed}: {'  '.join(parts)}  {record.seconds:.1f} s"
