"""Damage to every file of a run, against every command that reads runs.

A command refuses with one line, or answers as it does for the whole run.
"""

import shutil
import tempfile
from pathlib import Path

from attack.commands import Answer, load_everything, run_command
from attack.damage import DAMAGES
from attack.harness.trial import Trial
from attack.runs import LOCK, content, finished_run, fit_arguments, fruit, made_once, must_succeed

RUNS = (("finished", "spn"), ("finished", "gmnn"), ("finished", "crf"), ("stopped", "spn"), ("stopped", "gmnn"))
LEARNED = ("run/model.safetensors", "run/model.json")


class DamagedRuns:
    """Damage one file, then run the commands."""

    def __init__(self, folder: Path) -> None:
        load_everything()
        self.folder = folder
        self.data = fruit(folder)
        self.graph = self.data / "test" / "g01.npz"
        self.expected: dict[tuple[str, str], Answer] = {}

    def attempt(self, trial: Trial) -> None:
        """One file of one run, damaged in one way, against one to all commands."""
        state, method = RUNS[trial.number % len(RUNS)]
        kind = f"{state} {method}"
        source = self._stopped_run(method) if state == "stopped" else finished_run(self.folder, method)
        folder = trial.folder / "work"
        run = folder / "run"
        shutil.copytree(source, run)
        files = sorted(path for path in run.rglob("*") if path.is_file() and path.name != LOCK)
        path = trial.rng.choice(files)
        how = trial.rng.choice([*DAMAGES, *["value changed"] * (4 if path.suffix == ".json" else 0)])
        before = path.read_bytes()
        after = DAMAGES[how](trial.rng, before)
        path.write_bytes(after)
        trial.tried["damaged files"] += 1
        what = f"{kind}, {path.relative_to(run)} {how}"
        for name in self.commands(state):
            answer = run_command(self.arguments(name, run, method), trial.folder)
            trial.tried["commands on damaged runs"] += 1
            problem = self.problem(state, method, name, answer, folder)
            if problem:
                trial.fail(f"{name} of a {what}: {problem}")

    def commands(self, state: str) -> list[str]:
        """`fit` comes last: it may repair the run."""
        return ["predict", "evaluate", "report", "fit"] if state == "finished" else ["fit", "predict"]

    def arguments(self, name: str, run: Path, method: str) -> list[str]:
        if name == "predict":
            return ["predict", str(run), str(self.graph), "--marginals"]
        if name == "evaluate":
            return ["evaluate", str(run), str(self.data)]
        return ["report", str(run)] if name == "report" else fit_arguments(self.data, run, method)

    def problem(self, state: str, method: str, name: str, answer: Answer, folder: Path) -> str | None:
        """What is wrong with an answer; None if it is a refusal in one line or the right answer."""
        if answer.refused:
            return None
        if answer.code != 0:
            return answer.describe()
        if name == "predict" and answer.out != self.whole(name, method).out:
            return "exit code 0, but other labels or probabilities than those of the whole run"
        if name == "evaluate" and answer.out != self.whole(name, method).out:
            return "exit code 0, but other scores than those of the whole run"
        if name == "fit" and state == "stopped":
            found, expected = content(folder), content(finished_run(self.folder, method))
            other = [path for path in LEARNED if found.get(path) != expected[path.removeprefix("run/")]]
            if other:
                return f"exit code 0, but {' and '.join(other)} differ from those of a run that was not stopped"
        return None

    def whole(self, name: str, method: str) -> Answer:
        """The answer of a command for the whole run."""
        if (name, method) not in self.expected:
            with tempfile.TemporaryDirectory() as scratch:
                run = Path(scratch) / "run"
                shutil.copytree(finished_run(self.folder, method), run)
                arguments = self.arguments(name, run, method)
                self.expected[name, method] = must_succeed(run_command(arguments, Path(scratch)), name)
        return self.expected[name, method]

    def _stopped_run(self, method: str) -> Path:
        """A run that was killed after its second checkpoint."""

        def stop(run: Path) -> None:
            for change in range(20, 1000, 10):
                shutil.rmtree(run, ignore_errors=True)
                with tempfile.TemporaryDirectory() as scratch:
                    arguments = fit_arguments(self.data, run, method)
                    answer = run_command(arguments, Path(scratch), kill_at_change=change)
                if not answer.killed or (run / "model.safetensors").is_file():
                    break
                if any(run.rglob("checkpoint.safetensors")) and len((run / "metrics.csv").read_text().split()) > 3:
                    return
            raise RuntimeError(f"fit {method} was not stopped after a checkpoint: {answer.describe()}")

        return made_once(self.folder, f"stopped {method}", stop)
