"""Run folders: their files, and whether a run can be started or continued in a folder."""

import json
import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from accord._files import CHECKSUM, check_seal, is_leftover, remove_leftovers, sealed, write_json
from accord.errors import AccordError, DataNotFoundError, InputError

CONFIG_FILE, RESULTS_FILE, METRICS_FILE, CASES_FILE = "config.json", "results.json", "metrics.csv", "cases.json"
CURVES_FILE, REPORT_FILE, CARD_FILE = "curves.png", "report.html", "README.md"
MODEL_FILE, MODEL_CONFIG_FILE, CHECKPOINT_FILE = "model.safetensors", "model.json", "checkpoint.safetensors"
SEEN_NODES_FILE = "seen_nodes.npz"
SEARCH_FOLDER = "search"  # of `accord tune`, which searches before there is a run
CASES_KEY = "cases"  # of cases.json
# May differ when a run continues: devices and processes change only speed and rounding, and data may have moved.
MAY_DIFFER = (
    *("versions", "settings.accelerator", "recipe.training.accelerator", "data.name", "data.source"),
    *("settings.unlabelled", "settings.start"),
    *("settings.devices", "settings.nodes", "recipe.training.devices", "recipe.training.nodes"),
)
SHOWN_DIFFERENCES = 4
# What commands read of config.json.
NEEDED: dict[str, tuple[str, ...]] = {
    "settings": ("method", "seed", "level"),
    "recipe": ("encoder",),
    "data": ("name", "source", "graphs", "num_states"),
    "versions": (),
}


@dataclass(frozen=True)
class Run:
    """A run folder and the content of its config.json."""

    path: Path
    config: dict[str, Any]

    @property
    def finished(self) -> bool:
        """Whether training and the evaluation on test graphs are done."""
        return (self.path / RESULTS_FILE).is_file() and (self.path / MODEL_FILE).is_file()

    def read(self, name: str) -> Any:
        """The content of one of the run's json files; None if there is no such file."""
        path = self.path / name
        value = read_json(path) if path.is_file() else None
        if isinstance(value, dict):
            check_seal(value, path)
        return value

    def write(self, name: str, value: Mapping[str, Any]) -> None:
        """Write one of the run's json files, atomically and with a checksum, so that damage is found."""
        write_json(self.path / name, sealed(value))


def is_empty(path: Path) -> bool:
    """Whether a folder contains nothing but a lock, what killed writes left, and a search."""
    return all(is_leftover(entry) or entry.name == SEARCH_FOLDER for entry in path.iterdir())


def check_place(path: Path) -> None:
    """Refuse a path where no run can be; nothing is written."""
    if path.exists() and not path.is_dir():
        raise InputError(f"{path}: is a file. Choose another folder for the run with --run.")
    if path.is_dir() and not (path / CONFIG_FILE).is_file() and not is_empty(path):
        raise InputError(f"{path}: is not empty and contains no run. Choose another folder with --run.")


def start_run(path: Path, config: dict[str, Any]) -> Run:
    """Make a run folder, or continue a run of the same configuration; other folders are refused and left unchanged.

    The folder must be locked (`accord._files.locked`) while the run is used.
    """
    check_place(path)
    remove_leftovers(path)
    # A run without model and checkpoint was stopped too early to lose anything: it may be replaced.
    if (path / CONFIG_FILE).is_file() and ((path / MODEL_FILE).is_file() or has_checkpoint(path)):
        before = _read_config(path)
        different = differences(before, config)
        if different:
            listed = "; ".join(different[:SHOWN_DIFFERENCES])
            more = f"; and {len(different) - SHOWN_DIFFERENCES} more" if len(different) > SHOWN_DIFFERENCES else ""
            raise InputError(
                f"{path}: contains a run with other settings ({listed}{more}). Choose another folder with --run, or "
                "remove this one."
            )
        return Run(path, before)
    path.mkdir(parents=True, exist_ok=True)
    (path / METRICS_FILE).unlink(missing_ok=True)
    run = Run(path, config)
    run.write(CONFIG_FILE, config)
    return run


def has_checkpoint(path: Path) -> bool:
    """Whether a run can be continued; methods of several stages keep a checkpoint in a subfolder for each."""
    return next(path.rglob(CHECKPOINT_FILE), None) is not None


def move_checkpoints(source: Path, path: Path) -> None:
    """Move the checkpoints of another folder into a run, one by one, so that a kill loses none."""
    for file in sorted(entry for entry in source.rglob("*") if entry.is_file()):
        target = path / file.relative_to(source)
        target.parent.mkdir(parents=True, exist_ok=True)
        file.replace(target)
    shutil.rmtree(source, ignore_errors=True)


def open_run(path: Path) -> Run:
    """Open a run folder that `accord fit` wrote."""
    if not path.is_dir():
        raise DataNotFoundError(f"{path}: there is no such folder. Give a run folder that `accord fit` wrote.")
    if not (path / CONFIG_FILE).is_file():
        raise DataNotFoundError(
            f"{path}: has no {CONFIG_FILE}, so it is not a run. Give a run folder that `accord fit` wrote."
        )
    run = Run(path, _read_config(path))
    for key, names in NEEDED.items():
        values = run.config.get(key)
        missing = [f"{key}.{name}" for name in names if not isinstance(values, dict) or name not in values]
        if missing or not isinstance(values, dict):
            raise InputError(
                f"{path / CONFIG_FILE}: is damaged: {', '.join(missing or [key])} cannot be found. Restore it, or "
                "train again in another folder."
            )
    if not (path / MODEL_FILE).is_file():
        raise DataNotFoundError(f"{path}: has no model yet. Run the same `accord fit` again to continue training.")
    return run


def open_model(path: Path) -> Run:
    """Open a run folder, or a model that `NodeClassifier.save` wrote without a run."""
    if (path / MODEL_FILE).is_file() and not (path / CONFIG_FILE).is_file():
        return Run(path, {})
    return open_run(path)


def differences(before: Mapping[str, Any], now: Mapping[str, Any]) -> list[str]:
    """The values in which two configurations differ, in words."""
    old, new = flatten(before), flatten(now)
    keys = [key for key in {**old, **new} if not any(key == free or key.startswith(f"{free}.") for free in MAY_DIFFER)]
    return [f"{key} is {old.get(key)!r} there, {new.get(key)!r} here" for key in keys if old.get(key) != new.get(key)]


def flatten(values: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    """Nested dictionaries as one dictionary with dots in its keys, and tuples as lists, as in JSON."""
    flat: dict[str, Any] = {}
    for key, value in values.items():
        if isinstance(value, Mapping):
            flat |= flatten(value, f"{prefix}{key}.")
        else:
            flat[f"{prefix}{key}"] = list(value) if isinstance(value, tuple) else value
    return flat


def read_json(path: Path) -> Any:
    """Read one of a run's json files."""
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except (ValueError, RecursionError) as error:
        raise InputError(f"{path}: is damaged ({error}). Restore it, or train again in another folder.") from error


def _read_config(path: Path) -> dict[str, Any]:
    config = read_json(path / CONFIG_FILE)
    if not isinstance(config, dict):
        raise InputError(f"{path / CONFIG_FILE}: is damaged. Restore it, or train again in another folder.")
    check_seal(config, path / CONFIG_FILE)
    return {key: value for key, value in config.items() if key != CHECKSUM}


@contextmanager
def reading(path: Path) -> Iterator[None]:
    """Report values that do not fit together as damage of the run's files."""
    try:
        yield
    except AccordError:
        raise
    except (LookupError, TypeError, ValueError, AttributeError, ArithmeticError) as error:
        raise InputError(
            f"{path}: {CONFIG_FILE}, {RESULTS_FILE} or {CASES_FILE} is damaged ({type(error).__name__}: {error}). "
            f"Restore them; or remove {RESULTS_FILE} and run the same `accord fit` again."
        ) from error
