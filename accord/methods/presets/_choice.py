"""Presets as tables: an SPN's recipe, from which each method takes the fields that it has.

`accord` (default, in this file): regularised networks, combination chosen on validation data. Values tuned on a
benchmark's validation data are stored under its name; benchmark `None` is for other data.

`paper`: the paper's letter (`_paper.py`). `authors`: what the authors' code does where it differs
(`_authors.py`).
"""

import json
from dataclasses import fields, replace
from functools import cache
from importlib import resources
from typing import Any, Literal, overload

from accord.datasets import benchmark_features, resolve_benchmark
from accord.encoders import (
    GAT,
    GCN,
    GCNII,
    MLP,
    EncoderSpec,
    GraphSAGE,
    GraphUNet,
    Identity,
    Linear,
    LinearScorer,
    SequenceSpec,
    TransitionScorer,
    encoder_spec,
)
from accord.errors import OptionError
from accord.learning import CombinationGrid, GameOptions, PartOptions, RefinementOptions
from accord.methods.presets._authors import AUTHORS_REFINEMENT, authors_method, authors_recipe
from accord.methods.presets._paper import BY_SCORE, PAPER_REFINEMENT, paper_method, paper_recipe
from accord.methods.recipes._config import recipe_from_config, recipe_to_config
from accord.methods.recipes._recipe import CRFRecipe, Recipe, SPNRecipe
from accord.methods.recipes._registry import find_method

OTHER_BENCHMARKS = ("digits",)  # sets that presets know and `accord.datasets.load_benchmark` does not read

ACCORD_ENCODERS: dict[str, EncoderSpec] = {
    "gcn": GCN(hidden=64, layers=2, dropout=0.5, input_dropout=0.3),
    "sage": GraphSAGE(hidden=64, layers=2, dropout=0.5, input_dropout=0.3),
    "gat": GAT(hidden=16, heads=(8, 8), dropout=0.5, input_dropout=0.3),
    "unet": GraphUNet(hidden=64, depth=3),
    "gcnii": GCNII(hidden=64, layers=4, alpha=0.5, theta=1.5, dropout=0.5, input_dropout=0.3),
    "mlp": MLP(hidden=64, layers=2, dropout=0.5),
    "linear": Linear(),
}
ACCORD_PART = PartOptions(learning_rate=3e-3, weight_decay=5e-4)
SEQUENCE_PART = PartOptions(learning_rate=2e-3)  # decay would shrink the vectors of rare words
SEQUENCE_CHANNELS = 200  # from which one network scores nodes and edges
SEQUENCE_CLIP = 5.0  # largest norm of a gradient; those of recurrent networks have peaks
# With twenty edges per node, as on PPI, the same evidence is counted many times: candidates go far below 1.
DENSE_GRID = CombinationGrid(
    sharpness=(10.0, 5.0, 2.0, 1.0, 0.5, 0.2, 0.1, 0.05, 0.02, 0.0), power=(0.1, 0.5, 1.0), node_weight=(1.0,)
)

# The best recipes on validation data, by encoder and benchmark (`accord tune`, benchmarks/defaults/promote_recipes.py).
ACCORD_BENCHMARKS = "accord_benchmarks.json"


def preset_features(preset: str, benchmark: str | None = None) -> str:
    """The treatment of features that a preset's values are tuned for: its own, else the benchmark's, else raw."""
    benchmark = None if benchmark is None else _canonical_benchmark(benchmark)
    if benchmark is None or benchmark in OTHER_BENCHMARKS:
        return "raw"
    citation = benchmark in ("cora*", "citeseer*", "pubmed*")
    row_normalised = citation and (preset != "accord" or benchmark == "pubmed*")
    return "row-normalised" if row_normalised else benchmark_features(benchmark)


@overload
def preset_recipe(
    preset: str = ...,
    encoder: str | EncoderSpec = ...,
    edge_encoder: str | EncoderSpec | None = ...,
    benchmark: str | None = ...,
    method: Literal["spn"] = ...,
    refine: bool = ...,
) -> SPNRecipe: ...


@overload
def preset_recipe(
    preset: str = ...,
    encoder: str | EncoderSpec = ...,
    edge_encoder: str | EncoderSpec | None = ...,
    benchmark: str | None = ...,
    method: str = ...,
    refine: bool = ...,
) -> Recipe: ...


def preset_recipe(
    preset: str = "accord",
    encoder: str | EncoderSpec = "gcnii",
    edge_encoder: str | EncoderSpec | None = None,
    benchmark: str | None = None,
    method: str = "spn",
    refine: bool = False,
) -> Recipe:
    """The recipe that a preset gives for a method and an encoder.

    Args:
        preset: "accord", "authors" or "paper".
        encoder: a name, or an encoder of your own (which keeps its own sizes).
        edge_encoder: the same for the edge network, or a GMNN's label network; None takes the node network's.
            Methods without such a network do not use it.
        benchmark: take the preset's values for this benchmark; None for other data.
        method: the method that the recipe is for; it decides the class of the recipe.
        refine: whether the SPN is refined by the maximin game.
    """
    if not isinstance(preset, str) or preset not in PRESETS:
        raise OptionError(f"preset {preset!r} is unknown. Choose one of {sorted(PRESETS)}.")
    kind = find_method(method).recipe_type
    if refine and kind is not SPNRecipe:
        raise OptionError(f"preset_recipe: method {method!r} has no refinement. Set refine=False.")
    benchmark = None if benchmark is None else _canonical_benchmark(benchmark)
    recipe = PRESETS[preset](encoder, benchmark)
    if edge_encoder is not None:
        other = PRESETS[preset](edge_encoder, benchmark)
        if preset == "authors":  # the dropout of the edge network lies in its encoder or in the scorer
            recipe = replace(recipe, edge_encoder=other.edge_encoder, scorer=other.scorer)
        else:
            recipe = replace(recipe, edge_encoder=other.encoder)
    elif kind is CRFRecipe and isinstance(recipe.encoder, Linear):
        recipe = replace(recipe, edge_encoder=Identity(), scorer=LinearScorer())  # log-linear in both ends' features
    if refine:
        recipe = replace(recipe, refinement=REFINEMENTS[preset])
    converted = METHOD_RECIPES[preset](_convert(recipe, kind))
    return _for_sequences(converted, edge_encoder) if converted.reads_sequences else converted


def _for_sequences(recipe: Recipe, edge_encoder: str | EncoderSpec | None) -> Recipe:
    """A recipe for sequences: fields are solved exactly, and steps have a direction.

    Without an edge encoder, a CRF is the usual linear-chain CRF (one table of transitions, start and end scores), and
    one network of an SPN scores nodes and edges, which is less work than two (benchmarks/structures/sequences.py
    --pilot --separate compares them on validation data).
    """
    recipe = replace(recipe, node=SEQUENCE_PART, training=replace(recipe.training, clip_norm=SEQUENCE_CLIP))
    if isinstance(recipe, (CRFRecipe, SPNRecipe)):
        scorer = replace(recipe.scorer, symmetric=False)
        recipe = replace(recipe, edge=SEQUENCE_PART, scorer=scorer, game=GameOptions(exact=True))
    if isinstance(recipe, CRFRecipe) and edge_encoder is None:
        node = recipe.encoder
        assert isinstance(node, SequenceSpec)
        ended = replace(node, ends=True)
        recipe = replace(recipe, encoder=ended, edge_encoder=Identity(), scorer=TransitionScorer())
    if isinstance(recipe, SPNRecipe) and edge_encoder is None:
        scorer = replace(recipe.scorer, dropout=0.0)  # the encoder ends in dropout
        recipe = replace(recipe, shared=True, edge_channels=SEQUENCE_CHANNELS, scorer=scorer)
    return recipe


def _convert(recipe: SPNRecipe, kind: type[Recipe]) -> Recipe:
    """The recipe of another method: its fields take the SPN's values, a label network those of the edge network."""
    renamed = {"label_encoder": "edge_encoder", "label_channels": "edge_channels", "label": "edge"}
    names = {entry.name: renamed.get(entry.name, entry.name) for entry in fields(kind)}
    return kind(**{name: getattr(recipe, own) for name, own in names.items() if hasattr(recipe, own)})


def _accord(encoder: str | EncoderSpec, benchmark: str | None) -> SPNRecipe:
    name = _canonical(encoder) if isinstance(encoder, str) else ""
    spec = ACCORD_ENCODERS[name] if name in ACCORD_ENCODERS else encoder_spec(encoder)
    recipe = SPNRecipe(
        encoder=spec, edge_encoder=spec, scorer=LinearScorer(dropout=0.5), node=ACCORD_PART, edge=ACCORD_PART
    )
    if benchmark is not None:
        recipe = replace(recipe, **BY_SCORE)
    if benchmark is not None and benchmark.startswith("ppi"):
        recipe = replace(recipe, grid=DENSE_GRID)
    tuned = _tuned_recipes().get(_canonical(encoder), {}) if isinstance(encoder, str) else {}
    if benchmark not in tuned:
        return recipe
    found = recipe_from_config({**recipe_to_config(recipe), **tuned[benchmark]})
    assert isinstance(found, SPNRecipe)
    return found


@cache
def _tuned_recipes() -> dict[str, dict[str, dict[str, Any]]]:
    text = resources.files("accord.methods.presets").joinpath(ACCORD_BENCHMARKS).read_text()
    table: dict[str, dict[str, dict[str, Any]]] = json.loads(text)
    return table


def _accord_method(recipe: Recipe) -> Recipe:
    """A CRF's gradients are clipped: those of the game are noisier than those of plain cross-entropy."""
    if isinstance(recipe, CRFRecipe):
        return replace(recipe, training=replace(recipe.training, clip_norm=1.0))
    return recipe


def _canonical(name: str) -> str:
    """An encoder's name as the tables have it: case is ignored, and each encoder has one name."""
    return encoder_spec(name).kind


def _canonical_benchmark(name: str) -> str:
    """A benchmark's name as the tables have it."""
    return resolve_benchmark(name, also=OTHER_BENCHMARKS)


def _paper(encoder: str | EncoderSpec, benchmark: str | None) -> SPNRecipe:
    return paper_recipe(_canonical(encoder) if isinstance(encoder, str) else encoder, benchmark)


def _authors(encoder: str | EncoderSpec, benchmark: str | None) -> SPNRecipe:
    return authors_recipe(_canonical(encoder) if isinstance(encoder, str) else encoder, benchmark)


PRESETS = {"accord": _accord, "authors": _authors, "paper": _paper}
METHOD_RECIPES = {"accord": _accord_method, "authors": authors_method, "paper": paper_method}
REFINEMENTS = {
    "accord": RefinementOptions(learning_rate=1e-4, max_epochs=50),
    "authors": AUTHORS_REFINEMENT,
    "paper": PAPER_REFINEMENT,
}
