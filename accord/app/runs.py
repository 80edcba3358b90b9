"""Run folders: what a run is, what it left behind, and whether it may go on."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from accord._files import write_json
from accord.errors import DataNotFoundError, InputError

CONFIG, RESULTS, METRICS, CASES = "config.json", "results.json", "metrics.csv", "cases.json"
CURVES, REPORT, CARD = "curves.png", "report.html", "README.md"
MODEL, CHECKPOINT = "model.safetensors", "checkpoint.safetensors"
SEEN, MODEL_CONFIG = "seen_nodes.npz", "model.json"
# What may differ when a run goes on: where it is computed changes nothing but speed and the last digits.
FREE = ("versions", "settings.accelerator", "recipe.training.accelerator", "data.name", "data.source")
SHOWN_DIFFERENCES = 4


@dataclass(frozen=True)
class Run:
    """A run folder; `config` is what its config.json says."""

    path: Path
    config: dict[str, Any]

    @property
    def finished(self) -> bool:
        """Whether training and the final evaluation are done."""
        return (self.path / RESULTS).is_file() and (self.path / MODEL).is_file()

    def read(self, name: str) -> Any:
        """One of the run's json files; None where it is not there."""
        path = self.path / name
        return read_json(path) if path.is_file() else None

    def write(self, name: str, value: Any) -> None:
        """Write one, whole or not at all."""
        write_json(self.path / name, value)


def start_run(path: Path, config: dict[str, Any]) -> Run:
    """Make a run folder, or go on with one of the same configuration; anything else in it is left alone."""
    if path.exists() and not path.is_dir():
        raise InputError(f"{path}: is a file. Choose another folder for the run with --run.")
    # A run that was refused or stopped before its first checkpoint has nothing to lose.
    if (path / CONFIG).is_file() and ((path / MODEL).is_file() or has_checkpoint(path)):
        before = read_json(path / CONFIG)
        different = differences(before, config)
        if different:
            listed = "; ".join(different[:SHOWN_DIFFERENCES])
            more = f"; and {len(different) - SHOWN_DIFFERENCES} more" if len(different) > SHOWN_DIFFERENCES else ""
            raise InputError(
                f"{path}: holds a run with other settings ({listed}{more}). Choose another folder with --run, or "
                "remove this one."
            )
        return Run(path, before)
    if path.is_dir() and any(path.iterdir()) and not (path / CONFIG).is_file():
        raise InputError(f"{path}: is not empty and holds no run. Choose another folder with --run.")
    path.mkdir(parents=True, exist_ok=True)
    (path / METRICS).unlink(missing_ok=True)
    run = Run(path, config)
    run.write(CONFIG, config)
    return run


def has_checkpoint(path: Path) -> bool:
    """Whether a run has come so far that it can go on; methods of several stages keep one in a folder for each."""
    return next(path.rglob(CHECKPOINT), None) is not None


def open_run(path: Path) -> Run:
    """A run folder that `accord fit` made."""
    if not path.is_dir():
        raise DataNotFoundError(f"{path}: there is no such folder. Give a run that `accord fit` made.")
    if not (path / CONFIG).is_file():
        raise DataNotFoundError(f"{path}: has no {CONFIG}, so it is not a run. Give a folder that `accord fit` made.")
    run = Run(path, read_json(path / CONFIG))
    if not (path / MODEL).is_file():
        raise DataNotFoundError(f"{path}: has no model yet. Run the same `accord fit` again: it goes on from there.")
    return run


def open_model(path: Path) -> Run:
    """A run, or a model that `NodeClassifier.save` wrote without one."""
    if (path / MODEL).is_file() and not (path / CONFIG).is_file():
        return Run(path, {})
    return open_run(path)


def differences(before: Mapping[str, Any], now: Mapping[str, Any]) -> list[str]:
    """Which values of two configurations differ, in words."""
    old, new = flatten(before), flatten(now)
    keys = [key for key in {**old, **new} if not any(key == free or key.startswith(f"{free}.") for free in FREE)]
    return [f"{key} is {old.get(key)!r} there, {new.get(key)!r} here" for key in keys if old.get(key) != new.get(key)]


def flatten(values: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    """Nested dictionaries as one, with dots in the keys; values as JSON has them."""
    flat: dict[str, Any] = {}
    for key, value in values.items():
        if isinstance(value, Mapping):
            flat |= flatten(value, f"{prefix}{key}.")
        else:
            flat[f"{prefix}{key}"] = list(value) if isinstance(value, tuple) else value
    return flat


def read_json(path: Path) -> Any:
    """Read a json file of a run."""
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except (json.JSONDecodeError, UnicodeDecodeError) as error:
        raise InputError(f"{path}: is damaged ({error}). Restore it, or train again in another folder.") from error
