"""The runner: computes what is missing within a budget of time, and stores every record as soon as it is there."""

import json
import shutil
import time
import traceback
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from enum import Enum
from functools import partial
from pathlib import Path

import torch

from accord._files import fingerprint, locked
from accord._memory import is_out_of_memory, release_memory
from accord.distributed.engines import Engine, LocalEngine, Report
from accord.errors import DataNotFoundError, OptionError
from accord.experiments.reproduction._cells import RUN_TIME
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
        left: tasks that are still missing, for whatever reason.
        absent: names of data sets whose files were not found.
        failed: tasks that ended with an error, with the error.
    """

    finished: int
    left: int
    absent: tuple[str, ...]
    failed: tuple[str, ...] = ()


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


def device_kind(accelerator: str, has_gpus: bool) -> str:
    """ "cuda" or "cpu": where tasks will run."""
    return "cuda" if accelerator != "cpu" and has_gpus else "cpu"


@dataclass(frozen=True)
class Begun:
    """A task that is given to a worker: where it keeps checkpoints, its device, and when its time is over."""

    task: Task
    accelerator: str
    folder: Path | None
    until: float  # by the wall clock, which machines share; each has its own monotonic clock


def run_missing(
    folder: Path,
    asked: Asked,
    budget: float,
    accelerator: str = "auto",
    announce: Announce = lambda job, row: None,
    engine: Engine | None = None,
) -> Progress:
    """Compute what is asked for and not stored yet, until the budget is used up.

    Tasks that would not fit into what is left of the budget give way to later ones that do. If none fits, the first is
    begun; on a CPU its checkpoints let the next run go on. Run times are measured only where no other task runs beside.

    Args:
        folder: holds the store, which this process alone writes.
        asked: what is asked for.
        budget: seconds; a task is stopped when they are over, at its next evaluation or step of the ablation.
        accelerator: "auto", "cpu" or "cuda".
        announce: called with the name of each task, and with the numbers of each evaluation in this process.
        engine: where tasks are computed; None for this process.
    """
    end, engine = time.monotonic() + budget, engine or LocalEngine()
    device, store = device_kind(accelerator, engine.has_gpus), Store(folder / STORE)
    absent: list[str] = []
    failed: list[str] = []
    finished = later = 0
    with locked(folder):
        records, contexts = store.read()
        todo = missing_tasks(asked, current_records(records, contexts), device)
        alone = [task for task in todo if task.cell.experiment == RUN_TIME and engine.workers > 1]
        todo = [task for task in todo if task not in alone]

        def waiting() -> Iterator[Begun]:
            nonlocal later
            while todo:
                here = [
                    r for r in records if r.context in contexts and _is_here(contexts[r.context].provenance, device)
                ]
                left = end - time.monotonic()
                task = _next_task(todo, here, device, left)
                if task is None:
                    return
                todo.remove(task)
                if task.cell.data in absent:
                    later += 1
                else:
                    announce(task_name(task), None)
                    # On a GPU tasks are short, and checkpoints of large networks take longer to write than they save.
                    kept = _checkpoints(folder, task) if device == "cpu" else None
                    yield Begun(task, accelerator, kept, time.time() + left)

        def follow(told: tuple[str, HistoryRow]) -> None:
            announce(*told)

        for begun, outcome in engine.map(attempt, waiting(), follow):
            if outcome is Ended.OUT_OF_TIME:
                todo.append(begun.task)
            elif outcome is Ended.ABSENT:
                absent += [begun.task.cell.data] if begun.task.cell.data not in absent else []
                later += 1
            elif isinstance(outcome, Failure):
                failed.append(f"{task_name(begun.task)}: {outcome.error}")
                announce(f"{task_name(begun.task)}: {outcome.trace}", None)
                later += 1
            elif isinstance(outcome, Ended):
                announce(f"{task_name(begun.task)}: {outcome.value}; left for another run", None)
                later += 1
            else:
                store.append(*outcome)
                records += outcome[0]
                contexts |= {context.code: context for context in outcome[1]}
                finished += 1
                if begun.folder is not None:  # only now: what is not stored must not lose its checkpoint
                    shutil.rmtree(begun.folder, ignore_errors=True)
    return Progress(finished, len(todo) + later + len(alone), tuple(absent), tuple(failed))


class Ended(Enum):
    """Why a task has no outcome."""

    OUT_OF_TIME = "the budget is used up; its checkpoint stays for the next run"
    ABSENT = "the files of its data set are not there"
    UNSTEADY = "times could not be told apart"
    NO_MEMORY = "other tasks took the memory"


@dataclass(frozen=True)
class Failure:
    """An error that nobody expected: it must not end a run of hours, nor go unseen."""

    error: str
    trace: str


def attempt(begun: Begun, report: Report) -> Outcome | Ended | Failure:
    """Compute a task, in any process; the reason for not ending it is returned."""
    end, job = time.monotonic() + begun.until - time.time(), task_name(begun.task)
    place = Place(begun.accelerator, begun.folder, partial(_follow, job, end, report), partial(_check, end))
    try:
        return compute(begun.task, place)
    except OutOfTime:
        return Ended.OUT_OF_TIME
    except DataNotFoundError:
        return Ended.ABSENT
    except Unsteady:
        return Ended.UNSTEADY
    except Exception as error:
        if not isinstance(error, RuntimeError | MemoryError) or not is_out_of_memory(error):
            told = " ".join(f"{type(error).__name__}: {error}".split())
            return Failure(told, "".join(traceback.format_exception(error)))
    # Only here, where the error no longer refers to the networks.
    release_memory(torch.device(device_kind(begun.accelerator, torch.cuda.is_available())))
    return Ended.NO_MEMORY


def _is_here(facts: object, device: str) -> bool:
    return isinstance(facts, dict) and str(facts.get("device", "")).startswith(device)


def _next_task(todo: Sequence[Task], here: Sequence[Record], device: str, left: float) -> Task | None:
    """The first task that fits into the time left; the first of all if none does."""
    if left <= 0 or not todo:
        return None
    return next((task for task in todo if task_seconds(task, here, device) <= left), todo[0])


def _checkpoints(folder: Path, task: Task) -> Path:
    """Where a task keeps its checkpoints. The name holds the whole task, so that only the same one resumes them."""
    code = fingerprint([json.dumps([asdict(task), cell_code(task.cell)], sort_keys=True)])
    return (folder / UNFINISHED / code).resolve()


def _follow(job: str, end: float, report: Report, row: HistoryRow) -> None:
    report((job, row))
    _check(end)


def _check(end: float) -> None:
    if time.monotonic() > end:
        raise OutOfTime


def task_name(task: Task) -> str:
    """A task in words."""
    seeds = ",".join(map(str, task.seeds))
    labels = "" if task.block is None else f" labels {task.block[0]}-{task.block[1] - 1}"
    return f"{task.cell.key} seed {seeds}{labels}"
