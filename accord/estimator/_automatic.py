"""What "auto" stands for: recipe, candidates and treatment of features, by parameters and training graphs."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from torch_geometric.data import Data

from accord.encoders import EncoderSpec
from accord.learning import PartOptions
from accord.methods import GNNRecipe, PairRecipe, Recipe, preset_recipe
from accord.tuning import METHODS_WITH_PORTFOLIO, Portfolio, fit_schedule, may_be_directed

AUTO = "auto"
FIXED_ENCODER = "gcnii"  # of benchmarks, and of methods that train their networks together
NODE_ENCODERS = ("gcnii", "sage", "gcn", "mlp")
EDGE_ENCODERS = ("mlp", "sage")
OWN_PART = PartOptions(learning_rate=5e-3, weight_decay=5e-4)
SPARSE = 0.8  # share of zeros from which features count as sparse, such as bags of words
MODERATE = 10.0  # largest value of sparse features that stay raw


def is_own_data(parameters: dict[str, Any]) -> bool:
    """Whether the recipe may follow the data: no benchmark and no recipe is given, and the preset is Accord's."""
    return parameters["recipe"] is None and parameters["benchmark"] is None and parameters["preset"] == "accord"


def is_automatic(parameters: dict[str, Any]) -> bool:
    """Whether encoders are chosen on validation data."""
    wanted = _is_auto(parameters["encoder"]) or _is_auto(parameters["edge_encoder"])
    return is_own_data(parameters) and wanted and parameters["method"] in METHODS_WITH_PORTFOLIO


def fixed_encoders(parameters: dict[str, Any]) -> tuple[str | EncoderSpec, str | EncoderSpec | None]:
    """Encoders of the recipe from which candidates start; "auto" is replaced."""
    encoder, edge = parameters["encoder"], parameters["edge_encoder"]
    return (FIXED_ENCODER if _is_auto(encoder) else encoder), (None if _is_auto(edge) else edge)


def recipe_for(recipe: Recipe, parameters: dict[str, Any], train: Sequence[Data]) -> Recipe:
    """The recipe with rates and a schedule for these training graphs; a recipe for a benchmark stays as it is."""
    if not is_own_data(parameters) or not isinstance(recipe, (GNNRecipe, PairRecipe)) or recipe.method == "crf":
        return recipe
    training = fit_schedule(recipe.training, train, parameters["max_epochs"])
    if isinstance(recipe, PairRecipe):
        return replace(recipe, training=training, node=OWN_PART, edge=OWN_PART)
    return replace(recipe, training=training, node=OWN_PART)


def portfolio_for(recipe: Recipe, parameters: dict[str, Any], train: Sequence[Data]) -> Portfolio:
    """The candidates; one of each kind where everything is given."""
    nodes: tuple[EncoderSpec, ...] = (recipe.encoder,)
    edges: tuple[EncoderSpec, ...] = (recipe.edge_encoder,) if isinstance(recipe, PairRecipe) else ()
    if is_automatic(parameters):
        encoder, edge_encoder = parameters["encoder"], parameters["edge_encoder"]
        nodes = _encoders(NODE_ENCODERS) if _is_auto(encoder) else nodes
        if edges and _is_auto(encoder if edge_encoder is None else edge_encoder):
            edges = _encoders(EDGE_ENCODERS)
    symmetric: tuple[bool, ...] = (True,)
    if isinstance(recipe, PairRecipe):
        symmetric = (recipe.scorer.symmetric,)
        if isinstance(parameters["symmetric"], bool):
            symmetric = (parameters["symmetric"],)
        elif is_own_data(parameters) and recipe.method == "spn" and may_be_directed(train):
            symmetric = (True, False)
    return Portfolio(nodes, edges, symmetric)


def with_direction(recipe: Recipe, portfolio: Portfolio) -> Recipe:
    """The recipe with the one choice of direction that a portfolio leaves."""
    if not isinstance(recipe, PairRecipe) or recipe.scorer.symmetric == portfolio.symmetric[0]:
        return recipe
    return replace(recipe, scorer=replace(recipe.scorer, symmetric=portfolio.symmetric[0]))


def treatment_for(train: Sequence[Data]) -> str:
    """The treatment of features by their values: sparse ones of moderate size stay raw, others are standardised.

    Standardised, a rare word weighs as much as a hundred frequent ones. Rows that sum to one have values so small that
    networks learn slowly.
    """
    values = [graph.x for graph in train if graph.x is not None and graph.x.numel()]
    if not values:
        return "raw"
    zeros = sum(int((x == 0).sum()) for x in values) / sum(x.numel() for x in values)
    moderate = max(float(x.abs().max()) for x in values) <= MODERATE
    return "raw" if zeros > SPARSE and moderate else "standardised"


def _encoders(names: Sequence[str]) -> tuple[EncoderSpec, ...]:
    return tuple(preset_recipe("accord", name).encoder for name in names)


def _is_auto(value: object) -> bool:
    return isinstance(value, str) and value.lower() == AUTO
