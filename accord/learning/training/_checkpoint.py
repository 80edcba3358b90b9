"""Checkpoints: one file of tensors and plain values, written atomically; it never holds code.

The values include a checksum of everything else, so that damage is found when the file is read. Checkpoints without a
checksum, of earlier versions, are read unchecked.
"""

import hashlib
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file
from torch import Tensor

from accord._files import replacing
from accord.errors import InputError

METADATA = "accord"  # the only key of the metadata, because safetensors writes several in any order
CHECKSUM = "sha256"
SYSTEM_ERROR = re.compile(r"(.*?): ([^:]+) \(os error (\d+)\)")  # how safetensors reports one: what, why, number
SHOWN_TENSORS = 3


@dataclass(frozen=True)
class Saved:
    """What a checkpoint holds."""

    tensors: dict[str, Tensor]
    values: dict[str, Any]


def write_checkpoint(path: Path, tensors: Mapping[str, Tensor], values: Mapping[str, Any]) -> None:
    """Write atomically: a crash or a full disk leaves the old file unchanged."""
    ready = {name: tensor.detach().cpu().contiguous().clone() for name, tensor in tensors.items()}
    text = json.dumps({**values, CHECKSUM: _checksum(ready, values)})
    with replacing(path) as beside:
        try:
            save_file(ready, beside, metadata={METADATA: text})
        except SafetensorError as error:
            found = SYSTEM_ERROR.search(str(error))
            if found is None:
                raise
            raise OSError(int(found[3]), found[2]) from error


def read_checkpoint(path: Path) -> Saved:
    """Read a checkpoint; raises InputError if the file is not one, or is damaged.

    safetensors opens a file twice, for its header and for its tensors. If another process replaced the file in between,
    the two do not fit, and it is read again.
    """
    while True:
        before = _identity(path)
        try:
            return _read(path)
        except InputError:
            if _identity(path) == before:
                raise


def _identity(path: Path) -> tuple[int, int] | None:
    """What differs between a file and the one that replaces it; None if there is no file."""
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_ino, found.st_mtime_ns


def _read(path: Path) -> Saved:
    try:
        with safe_open(path, framework="pt") as file:
            values = dict(json.loads(file.metadata()[METADATA]))
            tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
    except (SafetensorError, OSError, KeyError, TypeError, ValueError, RecursionError) as error:
        raise InputError(
            f"{path}: not a checkpoint of Accord ({error}). It may be damaged or written by another program; remove "
            "it to start again."
        ) from error
    checksum = values.pop(CHECKSUM, None)
    if checksum is not None and checksum != _checksum(tensors, values):
        raise InputError(
            f"{path}: is damaged: its content does not match its checksum. Restore the file, or remove it to start "
            "again."
        )
    return Saved(tensors, values)


def check_tensors(path: Path, found: Mapping[str, Tensor], needed: Mapping[str, Tensor]) -> None:
    """Refuse tensors whose names, shapes or types differ from those that are needed; their values do not matter."""
    faults = [f"{name} is missing" for name in needed if name not in found]
    faults += [f"{name} is not part of the model" for name in found if name not in needed]
    for name in needed:
        if name in found and _form(found[name]) != _form(needed[name]):
            faults.append(f"{name} is {_form(found[name])} instead of {_form(needed[name])}")
    if faults:
        more = f"; and {len(faults) - SHOWN_TENSORS} more" if len(faults) > SHOWN_TENSORS else ""
        raise InputError(
            f"{path}: its tensors do not fit the model ({'; '.join(faults[:SHOWN_TENSORS])}{more}). Restore the file, "
            "or train again."
        )


def _form(tensor: Tensor) -> str:
    return f"{str(tensor.dtype).removeprefix('torch.')} {list(tensor.shape)}"


def _checksum(tensors: Mapping[str, Tensor], values: Mapping[str, Any]) -> str:
    """Of tensors on the CPU, with their names, shapes and types, and of values as json."""
    digest = hashlib.sha256(json.dumps(values, sort_keys=True).encode())
    for name in sorted(tensors):
        digest.update(f"{name} {_form(tensors[name])}".encode())
        digest.update(tensors[name].reshape(-1).view(torch.uint8).numpy().data)
    return digest.hexdigest()


def flatten_optimiser(optimiser: torch.optim.Optimizer) -> dict[str, Tensor]:
    """The state of an optimiser as named tensors."""
    state = optimiser.state_dict()["state"]
    return {f"{index}.{name}": value for index, entry in state.items() for name, value in entry.items()}


def restore_optimiser(optimiser: torch.optim.Optimizer, tensors: Mapping[str, Tensor]) -> None:
    """Restore the state that `flatten_optimiser` returned."""
    state: dict[int, dict[str, Tensor]] = {}
    for key, value in tensors.items():
        index, name = key.split(".", 1)
        state.setdefault(int(index), {})[name] = value
    optimiser.load_state_dict({"state": state, "param_groups": optimiser.state_dict()["param_groups"]})
