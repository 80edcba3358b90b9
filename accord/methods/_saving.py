"""Models on disk: weights as safetensors, everything else as json, and a card for people."""

import json
from collections.abc import Mapping
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from accord._files import write_text
from accord.errors import DataNotFoundError, InputError
from accord.learning import read_checkpoint, write_checkpoint

WEIGHTS, CONFIG, CARD = "model.safetensors", "model.json", "README.md"
FORMAT = 1  # raised when old files can no longer be read as they are


def write_model(folder: Path, tensors: Mapping[str, Tensor], config: Mapping[str, Any]) -> None:
    """Leave a model in `folder`; each file is written whole or not at all."""
    folder.mkdir(parents=True, exist_ok=True)
    full = {"format": FORMAT, "versions": library_versions(), **config}
    write_checkpoint(folder / WEIGHTS, tensors, {"format": FORMAT})
    write_text(folder / CONFIG, json.dumps(full, indent=2) + "\n")
    write_text(folder / CARD, _card(full))


def read_model(folder: Path) -> tuple[dict[str, Tensor], dict[str, Any]]:
    """Weights and configuration of a model that `write_model` left."""
    for name in (WEIGHTS, CONFIG):
        if not (folder / name).is_file():
            raise DataNotFoundError(
                f"{folder}: no {name} there, so this is not a saved model. Give the folder that NodeClassifier.save or "
                "`accord fit` wrote."
            )
    try:
        config = json.loads((folder / CONFIG).read_text())
    except ValueError as error:
        raise InputError(f"{folder / CONFIG}: not valid json ({error}). Restore the file or train again.") from error
    if not isinstance(config, dict):
        raise InputError(f"{folder / CONFIG}: not a model's configuration. Restore the file or train again.")
    if config.get("format") != FORMAT:
        raise InputError(
            f"{folder / CONFIG}: format {config.get('format')!r} cannot be read by this version, which reads {FORMAT}."
        )
    return read_checkpoint(folder / WEIGHTS).tensors, config


def library_versions() -> dict[str, str]:
    """Versions of what a result depends on."""
    try:
        own = version("accord")
    except PackageNotFoundError:
        own = "unknown"
    return {"accord": own, "torch": torch.__version__}


def _card(config: Mapping[str, Any]) -> str:
    shape, recipe = config["shape"], config["recipe"]
    names = config["label_names"] or [str(state) for state in range(shape["num_states"])]
    return f"""# Node labels, method `{config["method"]}`

Labels the nodes of graphs with {shape["num_features"]} features a node, {shape["num_tasks"]} label(s) a node, jointly.

* States: {", ".join(names)}
* Node encoder: `{json.dumps(recipe["encoder"])}`
* Edge encoder: `{json.dumps(recipe["edge_encoder"])}`
* Chosen on validation data by {config["level"]} accuracy; seed {config["seed"]}; preset `{config["preset"]}`.
* Written by accord {config["versions"]["accord"]} with torch {config["versions"]["torch"]}.

```python
import accord
model = accord.NodeClassifier.load("this/folder")
model.predict(graph)
```
"""
