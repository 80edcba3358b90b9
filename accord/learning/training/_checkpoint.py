"""Checkpoints: one file of tensors and plain values, written atomically; it never holds code."""

import json
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


@dataclass(frozen=True)
class Saved:
    """What a checkpoint holds."""

    tensors: dict[str, Tensor]
    values: dict[str, Any]


def write_checkpoint(path: Path, tensors: Mapping[str, Tensor], values: Mapping[str, Any]) -> None:
    """Write atomically: a crash leaves the old file unchanged."""
    ready = {name: tensor.detach().cpu().contiguous().clone() for name, tensor in tensors.items()}
    with replacing(path) as beside:
        save_file(ready, beside, metadata={"accord": json.dumps(dict(values))})


def read_checkpoint(path: Path) -> Saved:
    """Read a checkpoint; raises InputError if the file is not one."""
    try:
        with safe_open(path, framework="pt") as file:
            values = json.loads(file.metadata()["accord"])
            return Saved({name: file.get_tensor(name) for name in file.keys()}, values)  # noqa: SIM118
    except (SafetensorError, OSError, KeyError, TypeError, json.JSONDecodeError) as error:
        raise InputError(
            f"{path}: not a checkpoint of Accord ({error}). It may be damaged or written by another program; remove "
            "it to start again."
        ) from error


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
