"""Finished trials on disk: one file for each, written at once, so that a search that was stopped goes on."""

import json
import shutil
import warnings
from collections.abc import Mapping
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from accord._files import check_seal, sealed, write_json
from accord.errors import DamagedFileWarning, InputError
from accord.tuning.trials._trial import TrialResult

SAME = ("epochs", "features", "evidence", "recipe")  # of a trial that need not be run again
SEARCH_FILE, TRIALS, CHECKPOINTS = "search.json", "trials", "checkpoints"


class TrialStore:
    """The results of trials by part, number and rung, in memory and in a folder.

    Args:
        folder: of one search.
        identity: everything on which trials depend: data, space, seeds. A folder of another search is refused.
    """

    def __init__(self, folder: Path, identity: Mapping[str, Any]) -> None:
        self.folder = folder
        self.results: dict[tuple[str, int, int], TrialResult] = {}
        plain = json.loads(json.dumps(identity))
        path = folder / SEARCH_FILE
        before = _read(path) if path.is_file() else None
        if before is not None and before != plain:
            names = [key for key in {**before, **plain} if before.get(key) != plain.get(key)]
            raise InputError(
                f"{folder}: holds a search with other settings or data ({', '.join(names)} differ). Choose another "
                "folder, or remove this one."
            )
        write_json(path, sealed(plain))
        for entry in sorted((folder / TRIALS).glob("*.json")):
            values = _read(entry)
            try:
                result = None if values is None else TrialResult(**values)
            except TypeError as error:
                warnings.warn(f"{entry}: is damaged ({error}). The trial is run again.", DamagedFileWarning, 2)
                continue
            if result is not None:
                self.results[result.part, result.number, result.rung] = result

    def find(self, wanted: TrialResult) -> TrialResult | None:
        """The stored result of the same trial: same settings, features, epochs and evidence."""
        stored = self.results.get((wanted.part, wanted.number, wanted.rung))
        if stored is None:
            return None
        same = all(getattr(stored, name) == getattr(wanted, name) for name in SAME)
        return stored if same else None

    def add(self, result: TrialResult, taken: float | None = None) -> TrialResult:
        """Keep a result, on disk first.

        Args:
            result: of one trial.
            taken: seconds that the search took for it, less than its own where trials run side by side; None for those.
        """
        result = replace(result, at=round(self.elapsed + (result.seconds if taken is None else taken), 3))
        name = f"{result.part}-{result.number:03d}-{result.rung}.json"
        write_json(self.folder / TRIALS / name, sealed(asdict(result)))
        self.results[result.part, result.number, result.rung] = result
        return result

    @property
    def elapsed(self) -> float:
        """Seconds that the search took so far, without the time in which it was stopped."""
        return max((result.at for result in self.results.values()), default=0.0)

    def checkpoint_folder(self, name: str) -> Path:
        """Where a group of trials keeps its checkpoint."""
        return self.folder / CHECKPOINTS / name

    def remove_checkpoints(self) -> None:
        """Remove all checkpoints: the search is complete."""
        shutil.rmtree(self.folder / CHECKPOINTS, ignore_errors=True)


def _read(path: Path) -> dict[str, Any] | None:
    """The values of a file, without their checksum; None, with a warning, if it is damaged."""
    try:
        values = json.loads(path.read_text(encoding="utf-8"))
        if not isinstance(values, dict):
            raise ValueError("not an object")
        check_seal(values, path)
    except (ValueError, RecursionError, InputError) as error:
        warnings.warn(f"{path}: is damaged ({error}). It is written again.", DamagedFileWarning, stacklevel=3)
        return None
    values.pop("sha256", None)
    return values
