"""From a fitted `NodeClassifier` to what is saved of it, and back."""

from collections.abc import Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from accord.errors import AccordError, InputError
from accord.estimator._saving import WEIGHTS, read_model
from accord.estimator.fitting._weights import plain_weights
from accord.graphs import Columns, EdgeColumns, FeatureTreatment, GraphColumns
from accord.graphs.sequences import Vocabulary, WordOptions
from accord.learning import Replicas
from accord.learning.training import check_tensors, usual_torch
from accord.methods import Shape, SPNRecipe, recipe_from_config, recipe_to_config

if TYPE_CHECKING:
    from accord.estimator._classifier import NodeClassifier


def config_of(model: "NodeClassifier") -> dict[str, Any]:
    """Everything about a fitted model besides its tensors, as JSON values."""
    columns = model.edge_columns_
    return {
        "method": model.method,
        "level": model.level,
        "seed": model.seed,
        "preset": model.preset,
        "benchmark": model.benchmark,
        "recipe": recipe_to_config(model.recipe_),
        "shape": vars(model.shape_),
        "features": {"treatment": model.treatment_.name, **_stored_columns(model.columns_.nodes), **_vocabulary(model)},
        "labels": {"names": model.label_names_, "tasks": _listed(model.task_names)},
        "edges": {
            "directed": model.directed_,
            "columns": None if columns is None else {"directed": columns.directed},
            **_stored_columns(model.columns_.edges),
        },
        "choice": model.model_.choice(),
        "ensemble": model.ensemble,
        "refit": model.refit,
        "class_weight": plain_weights(model.class_weight, model.shape_.num_states, model.label_names_),
        "fallback": model.fallback,
        "unlabelled": model.unlabelled_,
        **_sequence_options(model),
    }


def _sequence_options(model: "NodeClassifier") -> dict[str, Any]:
    """Options of sequences that differ from their defaults, so that files of other models stay the same."""
    found: dict[str, Any] = {}
    if model.words is not None:
        vectors = model.words.vectors
        found["words"] = asdict(model.words) | {"vectors": None if vectors is None else str(vectors)}
    if model.scheme != "auto":
        found["scheme"] = model.scheme
    return found


def tensors_of(model: "NodeClassifier") -> dict[str, Tensor]:
    """All tensors of a fitted model: weights, and what was fitted of its inputs."""
    fitted = {f"features/{name}": value for name, value in model.treatment_.tensors().items()}
    if model.edge_columns_ is not None:
        fitted |= {f"edges/{name}": value for name, value in model.edge_columns_.tensors().items()}
    return model.model_.tensors() | fitted


def load_model(kind: type["NodeClassifier"], folder: Path, accelerator: str) -> "NodeClassifier":
    """The model that was saved in a folder, of class `kind`, on the CPU or a GPU."""
    try:
        tensors, config = read_model(folder)
        recipe = recipe_from_config(config["recipe"])
        loaded = kind(
            method=config["method"],
            encoder=recipe.encoder,
            edge_encoder=getattr(recipe, "edge_encoder", None),
            level=config["level"],
            refine=isinstance(recipe, SPNRecipe) and recipe.refinement is not None,
            max_epochs=recipe.training.max_epochs,
            seed=config["seed"],
            preset=config["preset"],
            benchmark=config["benchmark"],
            recipe=recipe,
            num_states=config["shape"]["num_states"],
            label_names=config["labels"]["names"],
            accelerator=accelerator,
            features=config["features"]["treatment"],
            task_names=config["labels"]["tasks"],
            ensemble=config.get("ensemble", 1),
            refit=config.get("refit", False),
            class_weight=config.get("class_weight"),
            fallback=config.get("fallback", False),
            words=None if config.get("words") is None else WordOptions(**config["words"]),
            scheme=config.get("scheme", "auto"),
            order=3 if isinstance(recipe, SPNRecipe) and recipe.triangles is not None else 2,
        )
        with usual_torch():
            _restore(loaded, folder, tensors, config)
    except (LookupError, TypeError, ValueError, AttributeError, RuntimeError, ArithmeticError) as error:
        if isinstance(error, AccordError):
            raise
        raise InputError(
            f"{folder}: the saved model is damaged ({type(error).__name__}: {error}). Restore its files or train again."
        ) from error
    if accelerator != "cpu" and torch.cuda.is_available():
        loaded.model_.to(torch.device("cuda"))
    return loaded


def _restore(model: "NodeClassifier", folder: Path, tensors: dict[str, Tensor], config: dict[str, Any]) -> None:
    """Take over what was learned, if names, shapes and types of all tensors are those of the model."""
    model.recipe_ = model.resolve_recipe()
    model.shape_ = Shape(**config["shape"])
    model.columns_ = GraphColumns(_read_columns(config["features"]), _read_columns(config.get("edges", {})))
    model.label_names_ = config["labels"]["names"]
    model.unlabelled_ = config.get("unlabelled")
    fitted = {name: tensors.get(f"features/{name}") for name in ("mean", "deviation")}
    vocabulary = config["features"].get("vocabulary")
    read = None if vocabulary is None else Vocabulary.from_config(vocabulary)
    model.treatment_ = FeatureTreatment(config["features"]["treatment"], **fitted, vocabulary=read)
    model.given_shape_ = replace(model.shape_, num_features=model.shape_.num_features - model.treatment_.added)
    model.classes_ = torch.arange(model.shape_.num_states).numpy()
    model.replicas_ = Replicas((model.seed,), model.shape_.num_tasks)
    with torch.device("meta"):  # sizes without memory
        needed = model._method().build(model.shape_, model._members()).tensors()
    if model.treatment_.name == "standardised":
        column = torch.empty(model.shape_.num_features, dtype=torch.float64, device="meta")
        needed |= {"features/mean": column, "features/deviation": column}
    columns = config["edges"].get("columns")  # models of earlier versions have none
    if columns is not None:
        column = torch.empty(model.shape_.edge_columns, dtype=torch.float64, device="meta")
        needed |= {"edges/mean": column, "edges/deviation": column}
    check_tensors(folder / WEIGHTS, tensors, needed)
    if columns is not None:
        model.edge_columns_ = EdgeColumns(columns["directed"], tensors["edges/mean"], tensors["edges/deviation"])
    model.model_ = model._method().build(model.shape_, model._members())
    model.model_.load(tensors, config["choice"])


def _vocabulary(model: "NodeClassifier") -> dict[str, Any]:
    """The vocabulary, of models that read words."""
    found = model.treatment_.vocabulary
    return {} if found is None else {"vocabulary": found.to_config()}


def _stored_columns(columns: Columns | None) -> dict[str, Any]:
    """Names, kinds and fill of columns; kinds and fill only where a column is not a number."""
    if columns is None:
        return {"names": None}
    stored: dict[str, Any] = {"names": list(columns.names)}
    if columns.fill is not None:
        stored |= {"kinds": list(columns.kinds), "fill": list(columns.fill)}
        stored |= {} if columns.spread is None else {"spread": list(columns.spread)}
    return stored


def _read_columns(stored: dict[str, Any]) -> Columns | None:
    """The columns that were stored; models of earlier versions have names only, of numbers."""
    names = stored.get("names")
    if names is None:
        return None
    kinds = stored.get("kinds") or ["number"] * len(names)
    fill, spread = (None if stored.get(key) is None else tuple(map(float, stored[key])) for key in ("fill", "spread"))
    return Columns(tuple(names), tuple(kinds), fill, spread)


def _listed(names: Sequence[str] | None) -> list[str] | None:
    return None if names is None else list(names)
