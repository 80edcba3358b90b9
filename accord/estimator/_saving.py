"""Models on disk: weights as safetensors, everything else as json, and a card for people.

Format 2 and all later ones stay readable. What later versions add is a new key with a default for older files; the
format is raised only where the meaning of a key changes, and then `read_model` converts what older versions wrote.
"""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from torch import Tensor

from accord._files import write_text
from accord._version import library_versions
from accord.errors import DataNotFoundError, InputError
from accord.learning.training import read_checkpoint, write_checkpoint

WEIGHTS, CONFIG, CARD = "model.safetensors", "model.json", "README.md"
FORMAT = 2  # 1, of versions before 0.2, did not keep the treatment of features


def write_model(folder: Path, tensors: Mapping[str, Tensor], config: Mapping[str, Any]) -> None:
    """Write a model into `folder`, each file atomically."""
    full = {"format": FORMAT, "versions": library_versions(), **config}
    write_checkpoint(folder / WEIGHTS, tensors, {"format": FORMAT})
    write_text(folder / CONFIG, json.dumps(full, indent=2) + "\n")
    write_text(folder / CARD, _card(full))


def read_model(folder: Path) -> tuple[dict[str, Tensor], dict[str, Any]]:
    """Weights and configuration of a model that `write_model` wrote."""
    for name in (WEIGHTS, CONFIG):
        if not (folder / name).is_file():
            raise DataNotFoundError(
                f"{folder}: no {name} there, so this is not a saved model. Give the folder that NodeClassifier.save or "
                "`accord fit` wrote."
            )
    try:
        config = json.loads((folder / CONFIG).read_text(encoding="utf-8"))
    except ValueError as error:
        raise InputError(f"{folder / CONFIG}: not valid json ({error}). Restore the file or train again.") from error
    if not isinstance(config, dict):
        raise InputError(f"{folder / CONFIG}: not a model's configuration. Restore the file or train again.")
    _check_format(folder, config.get("format"))
    return read_checkpoint(folder / WEIGHTS).tensors, config


def _check_format(folder: Path, found: object) -> None:
    if found == 1:
        raise InputError(
            f"{folder / CONFIG}: the model was saved in format 1, by a version of Accord before 0.2, which did not "
            "keep how features were treated. Train it again with this version."
        )
    if found != FORMAT:
        raise InputError(
            f"{folder / CONFIG}: format {found!r} is unknown to this version, which reads format {FORMAT}. "
            "Update Accord, or restore the file."
        )


def _card(config: Mapping[str, Any]) -> str:
    shape, recipe, labels = config["shape"], config["recipe"], config["labels"]
    names = labels["names"] or [str(state) for state in range(shape["num_states"])]
    titles = {"encoder": "Node encoder", "edge_encoder": "Edge encoder", "label_encoder": "Label encoder"}
    encoders = "\n".join(f"* {title}: `{json.dumps(recipe[key])}`" for key, title in titles.items() if key in recipe)
    return f"""# Node labels, method `{config["method"]}`

Labels the nodes of graphs with {shape["num_features"]} features a node, {shape["num_tasks"]} label(s) a node, jointly.

* States: {", ".join(names)}
* Features: {config["features"]["treatment"]} (give them raw; the model treats them itself)
{encoders}
* Chosen by {config["level"]} accuracy on validation data
* Seed {config["seed"]}, preset `{config["preset"]}`
* Written by accord {config["versions"]["accord"]} with torch {config["versions"]["torch"]}

```python
import accord
model = accord.NodeClassifier.load("this/folder")
model.predict(graph)
```
"""
