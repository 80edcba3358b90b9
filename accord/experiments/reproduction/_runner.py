"""The runner: computes what is missing within a budget of time, and stores every record as soon as it is there."""

import json
import shutil
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path

import torch

from accord._files import fingerprint, locked
from accord.errors import DataNotFoundError, OptionError
from accord.experiments.reproduction._plan import Asked, cell_code, current_records, missing_tasks, task_seconds
from accord.experiments.reproduction._records import Record
from accord.experiments.reproduction._store import Store
from accord.experiments.reproduction._studies import compute
from accord.experiments.reproduction._training import Outcome, Place, Task, Unsteady
from accord.learning import HistoryRow

STORE, UNFINISHED = "records.jsonl", "unfinished"
UNITS = {"s": 1.0, "m": 60.0, "h": 3600.0}
Announce = Callable[[str, HistoryRow | None], None]


class OutOfTime(Exception):
    """The budget is used up in the middle of a task; its checkpoint stays for the next run."""


@dataclass(frozen=True)
class Progress:
    """What a run has done.

    Attributes:
        finished: tasks that were computed and stored.
        left: tasks that are still missing.
        absent: names of data sets whose files were not found.
    """

    finished: int
    left: int
    absent: tuple[str, ...]


def parse_budget(text: str) -> float:
    """`25m`, `90s` or `2h` as seconds."""
    number, unit = text.strip()[:-1], text.strip()[-1:]
    try:
        seconds = float(number) * UNITS[unit]
    except (ValueError, KeyError):
        seconds = float("nan")
    if not 0 <= seconds < float("inf"):
        raise OptionError(f"--budget {text!r} cannot be read. Give a time as 90s, 25m or 2h.")
    return seconds


def device_kind(accelerator: str) -> str:
    """ "cuda" or "cpu": where tasks will run."""
    return "cuda" if accelerator != "cpu" and torch.cuda.is_available() else "cpu"


def run_missing(
    folder: Path,
    asked: Asked,
    budget: float,
    accelerator: str = "auto",
    announce: Announce = lambda job, row: None,
) -> Progress:
    """Compute what is asked for and not stored yet, until the budget is used up.

    Tasks that would not fit into what is left of the budget give way to later ones that do. If none fits, the first is
    begun; on a CPU its checkpoints let the next run go on.

    Args:
        folder: holds the store.
        asked: what is asked for.
        budget: seconds; a task is stopped when they are over, at its next evaluation or step of the ablation.
        accelerator: "auto", "cpu" or "cuda".
        announce: called with the name of each task, and with the numbers of each evaluation.
    """
    end = time.monotonic() + budget
    device, store = device_kind(accelerator), Store(folder / STORE)
    absent: list[str] = []
    finished = unsteady = 0
    with locked(folder):
        records, contexts = store.read()
        todo = missing_tasks(asked, current_records(records, contexts), device)
        while todo:
            here = [r for r in records if r.context in contexts and _is_here(contexts[r.context].provenance, device)]
            task = _next_task(todo, here, device, end - time.monotonic())
            if task is None:
                break
            todo.remove(task)
            if task.cell.data in absent:
                continue
            try:
                outcome = _run(folder, task, accelerator, end, announce)
            except OutOfTime:
                todo.append(task)
                break
            except DataNotFoundError:
                absent.append(task.cell.data)
                continue
            except Unsteady:
                unsteady += 1
                continue
            store.append(*outcome)
            records += outcome[0]
            contexts |= {context.code: context for context in outcome[1]}
            finished += 1
    return Progress(finished, len(todo) + unsteady, tuple(absent))


def _is_here(facts: object, device: str) -> bool:
    return isinstance(facts, dict) and str(facts.get("device", "")).startswith(device)


def _next_task(todo: Sequence[Task], here: Sequence[Record], device: str, left: float) -> Task | None:
    """The first task that fits into the time left; the first of all if none does."""
    if left <= 0 or not todo:
        return None
    return next((task for task in todo if task_seconds(task, here, device) <= left), todo[0])


def _run(folder: Path, task: Task, accelerator: str, end: float, announce: Announce) -> Outcome:
    job = task_name(task)
    announce(job, None)
    # The name holds the whole task, so that a checkpoint is resumed by the same one only.
    code = fingerprint([json.dumps([asdict(task), cell_code(task.cell)], sort_keys=True)])
    checkpoints = folder / UNFINISHED / code
    report = partial(_follow, job, end, announce)
    # Tasks are short on a GPU, and checkpoints of its large networks take longer to write than they save.
    kept = checkpoints if device_kind(accelerator) == "cpu" else None
    outcome = compute(task, Place(accelerator, kept, report, partial(_check, end)))
    shutil.rmtree(checkpoints, ignore_errors=True)
    return outcome


def _follow(job: str, end: float, announce: Announce, row: HistoryRow) -> None:
    announce(job, row)
    _check(end)


def _check(end: float) -> None:
    if time.monotonic() > end:
        raise OutOfTime


def task_name(task: Task) -> str:
    """A task in words."""
    seeds = ",".join(map(str, task.seeds))
    labels = "" if task.block is None else f" labels {task.block[0]}-{task.block[1] - 1}"
    return f"{task.cell.key} seed {seeds}{labels}"
