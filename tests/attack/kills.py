"""kill -9 at random moments of every command; the same command, given again, must end as if nothing had happened."""

import json
import os
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from attack.commands import Answer, load_everything, run_command
from attack.harness.trial import Trial
from attack.runs import METHODS, content, differences, finished_run, fit_arguments, fruit, made_once, must_succeed

MOST_KILLS = 5  # of one job
AT_A_CHANGE = 0.6  # share of kills at a change to the disk; the others come after a random time
CITESEER = "planetoid_citeseer.npz"


@dataclass(frozen=True)
class Job:
    """A command that writes into a folder."""

    arguments: Callable[[Path], list[str]]
    before: Callable[[], None] | None = None
    start: Path | None = None  # what the folder contains at first


@dataclass(frozen=True)
class Undisturbed:
    """The result of a job that was not killed."""

    files: dict[str, object]
    changes: int
    seconds: float


class Kills:
    """Kill, kill again, finish, compare."""

    def __init__(self, folder: Path) -> None:
        load_everything()
        self.folder = folder
        self.jobs = make_jobs(folder)
        self.undisturbed: dict[str, Undisturbed] = {}

    def attempt(self, trial: Trial) -> None:
        """One job, killed up to five times."""
        name = list(self.jobs)[trial.number % len(self.jobs)]
        job, expected = self.jobs[name], self.result(name)
        folder = start_folder(trial.folder / "job", job)
        moments = []
        for _ in range(trial.rng.randint(1, MOST_KILLS)):
            # Less is left to do after each kill.
            part = trial.rng.random() ** (1 + len(moments))
            if trial.rng.random() < AT_A_CHANGE:
                moment = {"kill_at_change": 1 + int(part * expected.changes)}
            else:
                moment = {"kill_after": round(part * expected.seconds, 3)}
            answer = run_command(job.arguments(folder), trial.folder, before=job.before, **moment)  # type: ignore[arg-type]
            moments.append(f"{moment}: {'killed' if answer.killed else 'ended'}")
            trial.tried["kills"] += answer.killed
            trial.tried["killed commands"] += 1
            if not answer.killed and answer.code != 0:
                trial.fail(f"{name}, {moments}: {answer.describe()}")
                return
        last = run_command(job.arguments(folder), trial.folder, before=job.before)
        for problem in problems(last, expected, content(folder)):
            trial.fail(f"{name}, {moments}: {problem}")

    def result(self, name: str) -> Undisturbed:
        """The result of a job without kills; computed when a process first needs it."""
        if name not in self.undisturbed:
            job = self.jobs[name]

            def run(made: Path) -> None:
                made.mkdir()
                folder = start_folder(made / "job", job)
                answer = must_succeed(run_command(job.arguments(folder), made, before=job.before), name)
                (made / "answer.json").write_text(json.dumps([answer.changes, answer.seconds]))

            made = made_once(self.folder, f"undisturbed {name}", run)
            changes, seconds = json.loads((made / "answer.json").read_text())
            self.undisturbed[name] = Undisturbed(content(made / "job"), changes, seconds)
        return self.undisturbed[name]


def start_folder(folder: Path, job: Job) -> Path:
    shutil.rmtree(folder, ignore_errors=True)
    if job.start is not None:
        shutil.copytree(job.start, folder)
    return folder


def problems(answer: Answer, expected: Undisturbed, files: dict[str, object]) -> list[str]:
    """What is wrong after the last command, which nothing disturbed."""
    if answer.code != 0:
        return [f"given again: {answer.describe()}"]
    return differences(expected.files, files)


def make_jobs(folder: Path) -> dict[str, Job]:
    """Every command that writes files."""
    data = fruit(folder)
    trained = finished_run(folder, "spn")
    jobs = {
        f"fit {method}": Job(lambda out, method=method: fit_arguments(data, out / "run", method))  # type: ignore[misc]
        for method in METHODS
    }
    jobs["predict"] = Job(lambda out: ["predict", str(trained), str(data / "test"), "--out", str(out / "labels.csv")])
    jobs["evaluate"] = Job(lambda out: ["evaluate", str(trained), str(data), "--out", str(out / "scores.json")])
    jobs["report"] = Job(lambda out: ["report", str(out)], start=trained)
    jobs["demo"] = Job(lambda out: ["demo", "--run", str(out / "demo")], shrink_demo)
    if (Path(os.environ.get("ACCORD_DATA", "")) / CITESEER).is_file():
        jobs["reproduce"] = Job(reproduce_slice)
    return jobs


def shrink_demo() -> None:
    """Few graphs and epochs."""
    from accord.app.commands import demo

    demo.TRAIN, demo.VAL, demo.TEST, demo.EPOCHS = 20, 20, 20, 5


def reproduce_slice(out: Path) -> list[str]:
    chosen = ["--benchmark", "citeseer*", "--encoder", "gcn", "--preset", "paper"]
    return ["reproduce", "citation", *chosen, "--seeds", "1-2", "--max-epochs", "2", "--out", str(out / "tables")]
