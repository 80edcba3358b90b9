"""The store of a table: one json record for each experiment, with a checksum, in a folder that is locked while used.

A stored experiment is not run again, and only the same experiment is resumed or extended by seeds: what is stored under
its name with other settings is refused. A damaged record does not stop a table: it is left out with a warning, and
kept under another name when its experiment is run again.
"""

import json
import os
import shutil
import warnings
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

from accord._files import check_seal, fingerprint
from accord.errors import DamagedFileWarning, InputError, OptionError
from accord.experiments._results import Result
from accord.experiments._runner import Announce
from accord.learning import Report
from accord.methods import Recipe, recipe_to_config

ANY_FEATURES = "the benchmark's"  # what records of older versions hold where the preset did not choose
FREE = "training.accelerator"  # changes only speed and rounding
SHOWN_DIFFERENCES = 3
Record = TypeVar("Record")


def read_record(path: Path) -> dict[str, Any]:
    """The values of a record; raises InputError if it is damaged."""
    try:
        values = json.loads(path.read_text(encoding="utf-8"))
    except (ValueError, RecursionError) as error:
        raise InputError(f"{path}: is damaged ({error}). Restore or remove it.") from error
    if not isinstance(values, dict):
        raise InputError(f"{path}: is damaged. Restore or remove it.")
    check_seal(values, path)
    return values


def read_result(path: Path) -> Result:
    """A stored result; raises InputError if it is damaged."""
    values = read_record(path)
    values.pop("sha256", None)
    try:
        result = Result(**{**values, "seeds": tuple(values["seeds"])})
        scores = [numbers for way in result.scores.values() for numbers in way.values()]
        if any(len(numbers) != len(result.seeds) or not all(map(_is_number, numbers)) for numbers in scores):
            raise ValueError("scores do not fit seeds")
    except (LookupError, TypeError, ValueError, AttributeError) as error:
        raise InputError(f"{path}: is damaged ({type(error).__name__}: {error}). Restore or remove it.") from error
    return result


def usable(read: Callable[[Path], Record], use: Callable[[Record], object]) -> Callable[[Path], Record]:
    """A reader that also refuses records from which a table cannot be made: `use` must work for them."""

    def reader(path: Path) -> Record:
        record = read(path)
        try:
            use(record)
        except (LookupError, TypeError, ValueError, AttributeError, ArithmeticError) as error:
            raise InputError(f"{path}: is damaged ({type(error).__name__}: {error}). Restore or remove it.") from error
        return record

    return reader


def read_records(folder: Path, read: Callable[[Path], Record], pattern: str = "*.json") -> list[Record]:
    """All records of a folder by file name; damaged ones are left out with a warning."""
    found = []
    for path in sorted(folder.glob(pattern)):
        try:
            found.append(read(path))
        except InputError as error:
            warnings.warn(f"{error} The table is written without it.", DamagedFileWarning, stacklevel=2)
    return found


def read_results(folder: Path) -> list[Result]:
    """All results stored in a folder, by file name; damaged ones are left out with a warning."""
    return read_records(folder, read_result)


def read_stored(path: Path, read: Callable[[Path], Record]) -> Record | None:
    """A record; None if there is none, or if it is damaged: then it is renamed, so that nothing overwrites it."""
    if not path.is_file():
        return None
    try:
        return read(path)
    except InputError as error:
        aside = path.with_name(f"{path.name}.damaged")
        os.replace(path, aside)
        warnings.warn(f"{error} It is kept as {aside.name} and run again.", DamagedFileWarning, stacklevel=2)
        return None


def run_missing(
    path: Path,
    job: str,
    recipe: Recipe,
    features: str | None,
    seeds: Sequence[int],
    run: Callable[[Sequence[int], Path, Report], Result],
    announce: Announce,
) -> None:
    """Run the seeds of an experiment that are not stored yet, resumable, and store them.

    Args:
        path: of the record.
        job: name of the experiment, for the report.
        recipe: with everything that was asked for.
        features: the treatment of features that was asked for.
        seeds: the requested ones.
        run: trains some seeds, given them, a folder for checkpoints and a callback.
        announce: called with the name of the job, and with the numbers of each evaluation.
    """
    stored = read_stored(path, read_result)
    asked = plain(recipe)
    if stored is not None:
        treatment = {"features": (stored.features, features)} if stored.features != ANY_FEATURES else {}
        refuse_other(path, differences(stored.recipe, asked) | {k: v for k, v in treatment.items() if v[0] != v[1]})

    def checkpoints(trained: Sequence[int]) -> Path:
        # The name holds the whole experiment, so that a checkpoint is resumed by the same one only.
        code = fingerprint([json.dumps([asked, features, trained], sort_keys=True)])
        return path.with_name(f"unfinished-{path.stem}-{code}")

    # New seeds are stored after older ones. A process that was killed afterwards has left their checkpoints.
    kept = () if stored is None else stored.seeds
    for first in range(len(kept)):
        shutil.rmtree(checkpoints(kept[first:]), ignore_errors=True)
    missing = [seed for seed in seeds if seed not in kept]
    if not missing:
        return
    announce(job, None)
    unfinished = checkpoints(missing)
    found = run(missing, unfinished, partial(announce, job))
    (found if stored is None else stored.with_more_seeds(found)).write(path)
    shutil.rmtree(unfinished, ignore_errors=True)  # a run without epochs leaves none


def differences(stored: Mapping[str, Any], asked: Mapping[str, Any], prefix: str = "") -> dict[str, tuple[Any, Any]]:
    """Values that differ, by name; what older records do not hold cannot differ, nor does the device count."""
    found: dict[str, tuple[Any, Any]] = {}
    for key, value in asked.items():
        name = f"{prefix}{key}"
        if key not in stored or name == FREE:
            continue
        if isinstance(value, Mapping) and isinstance(stored[key], Mapping):
            found |= differences(stored[key], value, f"{name}.")
        elif stored[key] != value:
            found[name] = (stored[key], value)
    return found


def refuse_other(path: Path, different: Mapping[str, tuple[Any, Any]]) -> None:
    """Refuse a record of other settings."""
    if different:
        pairs = list(different.items())[:SHOWN_DIFFERENCES]
        listed = "; ".join(f"{name} is {there!r} there, {here!r} here" for name, (there, here) in pairs)
        raise OptionError(
            f"{path}: holds a result of another recipe ({listed}). Choose another folder with --out, or remove the "
            "file."
        )


def plain(recipe: Recipe) -> dict[str, Any]:
    """A recipe as json values, without the device."""
    config: dict[str, Any] = json.loads(json.dumps(recipe_to_config(recipe)))
    del config["training"]["accelerator"]
    return config


def _is_number(value: object) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)
