"""Small data, and the content of run folders without what differs between two equal runs."""

import fcntl
import json
import re
import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path

from attack.commands import Answer, run_command
from support.command_line import make_data

QUICK = ["--encoder", "mlp", "--max-epochs", "15", "--accelerator", "cpu", "--set", "training.checkpoint_every=5"]
METHODS: dict[str, list[str]] = {
    "gnn": ["--method", "gnn"],
    "spn": ["--method", "spn"],
    "spn refined": ["--method", "spn", "--refine", "--set", "refinement.max_epochs=5"],
    "crf": ["--method", "crf"],
    "gmnn": ["--method", "gmnn"],
    "smooth": ["--method", "smooth"],
}
TIMED = {"seconds", "date", "provenance"}  # keys of json files that differ between equal runs
SECONDS = re.compile(rb"Trained in \d+ s")
SEAL = "sha256"  # key of a json file that holds the checksum of its other keys, seconds included
LOCK = ".lock"  # its content names the process that had the folder last


def made_once(folder: Path, name: str, make: Callable[[Path], object]) -> Path:
    """A folder inside `folder`, made by the first process that asks for it; other processes wait until it is whole."""
    path = folder / name
    with (folder / "made_once.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not path.is_dir():
            half = folder / f"half of {name}"
            shutil.rmtree(half, ignore_errors=True)
            make(half)
            half.rename(path)
    return path


def fruit(folder: Path) -> Path:
    """A data folder with graphs in all formats."""
    return made_once(folder, "fruit", make_data)


def fit_arguments(data: Path, run: Path, method: str) -> list[str]:
    return ["fit", str(data), "--run", str(run), *METHODS[method], *QUICK]


def content(folder: Path) -> dict[str, object]:
    """Every file below a folder by its relative path, without the seconds and dates in it. Locks are left out."""
    return {
        str(path.relative_to(folder)): _comparable(path)
        for path in sorted(folder.rglob("*"))
        if path.is_file() and path.name != LOCK
    }


def _comparable(path: Path) -> object:
    if path.suffix == ".json":
        try:
            return _untimed(json.loads(path.read_bytes()))
        except ValueError:
            return path.read_bytes()
    return SECONDS.sub(b"", path.read_bytes())


def _untimed(value: object) -> object:
    if isinstance(value, dict):
        timed = {*TIMED, SEAL} if TIMED & value.keys() else TIMED
        return {key: _untimed(entry) for key, entry in value.items() if key not in timed}
    return [_untimed(entry) for entry in value] if isinstance(value, list) else value


def differences(expected: dict[str, object], found: dict[str, object]) -> list[str]:
    """Which files are missing, additional or different."""
    missing = [f"{name} is missing" for name in expected.keys() - found.keys()]
    more = [f"{name} is left over" for name in found.keys() - expected.keys()]
    other = [f"{name} differs" for name in expected.keys() & found.keys() if expected[name] != found[name]]
    return sorted([*missing, *more, *other])


def must_succeed(answer: Answer, what: str) -> Answer:
    """Stop the attack if a command fails that nothing has disturbed."""
    if answer.code != 0:
        raise RuntimeError(f"{what}: {answer.describe()}\n{answer.err[-2000:]}")
    return answer


def finished_run(folder: Path, method: str) -> Path:
    """A finished run of a method."""
    data = fruit(folder)

    def fit(run: Path) -> None:
        with tempfile.TemporaryDirectory() as scratch:
            must_succeed(run_command(fit_arguments(data, run, method), Path(scratch)), f"fit {method}")

    return made_once(folder, f"finished {method}", fit)
