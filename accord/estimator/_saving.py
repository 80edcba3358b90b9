"""Models on disk: weights as safetensors, everything else as json, and a card for people.

model.json holds the SHA-256 checksum of the weights file (`files`) and one of its own other keys (`sha256`); both are
checked when a model is read. Models without checksums, of earlier versions, are read unchecked. The card has none,
because people may edit it.

A model that replaces another is safe from kills. New weights are first written beside the old ones, as
model.new.safetensors; then model.json is replaced, whose checksum tells which weights are its own; then the new weights
take the place of the old ones. A kill before the second step leaves the old model, a kill after it the new one.

Format 2 and all later ones stay readable. What later versions add is a new key with a default for older files; the
format is raised only where the meaning of a key changes, and then `read_model` converts what older versions wrote.
"""

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from torch import Tensor

from accord._files import check_seal, file_checksum, sealed, write_text
from accord._version import library_versions
from accord.errors import DataNotFoundError, InputError
from accord.evaluation import LEVELS
from accord.learning.training import read_checkpoint, write_checkpoint

WEIGHTS, CONFIG, CARD = "model.safetensors", "model.json", "README.md"
NEW_WEIGHTS = "model.new.safetensors"
FORMAT = 2  # 1, of versions before 0.2, did not keep the treatment of features
FILES = "files"  # key of model.json: checksums of the other files, by name
SIZES = {"num_features": 1, "num_states": 1, "num_tasks": 1, "edge_attributes": 0}  # and the least of each
LEAST_MEMBERS = 1  # of an ensemble
NETWORKS = ("encoder", "edge_encoder", "label_encoder", "scorer")  # keys of a recipe
DEPTHS = ("layers", "depth")  # options of a network: each layer has tensors of its own
FEW = 1000  # sizes up to this take no noticeable time or memory


def write_model(folder: Path, tensors: Mapping[str, Tensor], config: Mapping[str, Any]) -> None:
    """Write a model into `folder`; at every moment, a model that was there before or the new one can be read."""
    full = {"format": FORMAT, "versions": library_versions(), **config}
    if _own_weights(folder) == folder / NEW_WEIGHTS:  # of a save that was killed before its last step
        os.replace(folder / NEW_WEIGHTS, folder / WEIGHTS)
    replaces = (folder / CONFIG).is_file()
    weights = folder / (NEW_WEIGHTS if replaces else WEIGHTS)
    write_checkpoint(weights, tensors, {"format": FORMAT})
    checked = sealed({**full, FILES: {WEIGHTS: file_checksum(weights)}})
    write_text(folder / CONFIG, json.dumps(checked, indent=2) + "\n")
    if replaces:
        os.replace(weights, folder / WEIGHTS)
    (folder / NEW_WEIGHTS).unlink(missing_ok=True)  # left by a killed save, if model.json was removed since
    write_text(folder / CARD, _card(full))


def read_model(folder: Path) -> tuple[dict[str, Tensor], dict[str, Any]]:
    """Weights and configuration of a model that `write_model` wrote, checked for damage and for sizes that fit."""
    weights = _own_weights(folder)
    for name in (weights.name, CONFIG):
        if not (folder / name).is_file():
            raise DataNotFoundError(
                f"{folder}: no {name} there, so this is not a saved model. Give the folder that NodeClassifier.save or "
                "`accord fit` wrote."
            )
    try:
        config = json.loads((folder / CONFIG).read_text(encoding="utf-8"))
    except (ValueError, RecursionError) as error:
        raise InputError(f"{folder / CONFIG}: not valid json ({error}). Restore the file or train again.") from error
    if not isinstance(config, dict):
        raise InputError(f"{folder / CONFIG}: not a model's configuration. Restore the file or train again.")
    _check_format(folder, config.get("format"))
    check_seal(config, folder / CONFIG)
    tensors = read_checkpoint(weights).tensors
    files = config.get(FILES, {})
    if WEIGHTS in files and files[WEIGHTS] != file_checksum(weights):
        raise InputError(
            f"{folder / WEIGHTS}: is not the file that {CONFIG} belongs to: its checksum differs. Restore both files, "
            "or train again."
        )
    _check_sizes(folder, config, tensors)
    return tensors, config


def _own_weights(folder: Path) -> Path:
    """The weights that model.json belongs to: the new ones if a kill has left them and their checksum is that."""
    new = folder / NEW_WEIGHTS
    if new.is_file():
        try:
            files = json.loads((folder / CONFIG).read_text(encoding="utf-8"))[FILES]
            if files[WEIGHTS] == file_checksum(new):
                return new
        except (OSError, ValueError, LookupError, TypeError, RecursionError):
            pass  # reading the model says what is wrong with model.json
    return folder / WEIGHTS


def _check_sizes(folder: Path, config: Mapping[str, Any], tensors: Mapping[str, Tensor]) -> None:
    """Refuse sizes that these weights cannot have, before anything of that size is made."""
    numbers = sum(tensor.numel() for tensor in tensors.values())
    rows = max((len(tensor) for tensor in tensors.values() if tensor.dim()), default=0)  # first axis: members x tasks
    most = {name: max(FEW, len(tensors)) for name in DEPTHS}
    most |= dict.fromkeys(("num_tasks", "ensemble"), max(rows, len(tensors)))
    found: dict[str, Any] = {f"shape.{name}": config["shape"][name] for name in SIZES}
    found["shape.edge_columns"] = config["shape"].get("edge_columns", 0)  # models of earlier versions have none
    found["ensemble"] = config.get("ensemble", 1)
    for network in NETWORKS:
        options = config["recipe"].get(network, {})
        options = {**options, **(options.get("words") or {})}
        found |= {f"recipe.{network}.{name}": value for name, value in options.items()}
    for name, value in found.items():
        place, _, last = name.rpartition(".")
        least = LEAST_MEMBERS if name == "ensemble" else SIZES.get(last, 0) if place == "shape" else None
        whole = isinstance(value, int) and not isinstance(value, bool)
        if (least is not None and (not whole or value < least)) or (
            whole and value > most.get(last, max(FEW, numbers))
        ):
            shown = f"{value:.6g}" if whole else repr(value)[:80]
            raise InputError(
                f"{folder / CONFIG}: {name} is {shown}, which does not fit the {numbers} numbers in {WEIGHTS}. Restore "
                "both files, or train again."
            )
    shape, labels = config["shape"], config["labels"]
    named = {
        "features.names": (config["features"]["names"], shape["num_features"]),
        "edges.names": (config.get("edges", {}).get("names"), shape["edge_attributes"]),
        "labels.names": (labels["names"], shape["num_states"]),
        "labels.tasks": (labels["tasks"], shape["num_tasks"]),
    }
    for name, (names, count) in named.items():
        if names is not None and len(names) != count:
            raise InputError(
                f"{folder / CONFIG}: {name} has {len(names)} entries for {count}. Restore the file, or train again."
            )


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
* Chosen on validation data by {LEVELS[config["level"]]}
{_training(config)}* Seed {config["seed"]}, preset `{config["preset"]}`
* Written by accord {config["versions"]["accord"]} with torch {config["versions"]["torch"]}

```python
import accord
model = accord.NodeClassifier.load("this/folder")
model.predict(graph)
```
"""


def _training(config: Mapping[str, Any]) -> str:
    """Lines of the card about an ensemble, edge attributes, unlabelled graphs and refitting."""
    lines, members = "", config.get("ensemble", 1)
    if members > 1:
        lines += f"* Average of {members} members, seeds {config['seed']} to {config['seed'] + members - 1}\n"
    if config["shape"].get("edge_columns", 0):
        lines += "* The networks read mean and sum of the attributes of a node's edges beside its features\n"
    more = config.get("unlabelled")
    if more:
        done = "used in training" if more["kept"] else "not better on validation data, so not used"
        lines += f"* Confident labels of {more['graphs']} unlabelled graphs ({more['share']:.0%} of them): {done}\n"
    if config.get("refit", False):
        lines += "* Trained again on training and validation graphs together (refit), after every choice was made\n"
    return lines
