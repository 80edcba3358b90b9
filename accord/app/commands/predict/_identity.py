"""What results depend on, noted in their folder: a job is continued only with the same model, source and options."""

import json
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

from accord._files import check_seal, file_checksum, remove_leftovers, sealed, write_json
from accord.app.runs import MODEL_CONFIG_FILE, MODEL_FILE
from accord.datasets import TableMapping
from accord.errors import InputError

JOB_FILE = "_job.json"  # readers of Parquet folders leave out names that begin with an underscore


def model_identity(path: Path) -> dict[str, str]:
    """The checksums of a model's files."""
    return {name: file_checksum(path / name) for name in (MODEL_FILE, MODEL_CONFIG_FILE)}


def mapping_identity(mapping: TableMapping | None) -> dict[str, Any] | None:
    """What a mapping says, wherever its file is."""
    if mapping is None:
        return None
    entries = asdict(mapping)
    del entries["path"]
    found: dict[str, Any] = json.loads(json.dumps(entries))
    return found


def check_job(out: Path, identity: Mapping[str, Any]) -> None:
    """Refuse a folder of something else, or with results of another job; note the job in a folder without results.

    Args:
        out: the folder, locked.
        identity: everything on which the results depend, as json has it.
    """
    remove_leftovers(out)
    path = out / JOB_FILE
    if all(entry == path or entry.name.startswith(".") for entry in out.iterdir()):
        write_json(path, sealed(identity))
        return
    if not path.is_file():
        raise InputError(f"{out}: is not empty and holds no job. Choose another folder with --out.")
    try:
        before = json.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:
        raise _damaged(path, str(error)) from error
    if not isinstance(before, dict):
        raise _damaged(path, "it holds no json object")
    check_seal(before, path)
    differing = [name for name in identity if before.get(name) != identity[name]]
    if differing:
        raise InputError(
            f"{out}: holds labels of another job ({', '.join(differing)} differ). Choose another folder with "
            "--out, or remove this one."
        )


def _damaged(path: Path, reason: str) -> InputError:
    return InputError(f"{path}: is damaged ({reason}). Choose another folder with --out, or remove this one.")
