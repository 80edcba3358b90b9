"""What "auto" stands for: recipe, candidates and treatment of features, by parameters and training graphs."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from torch_geometric.data import Data

from accord.encoders import EncoderSpec
from accord.methods import GNNRecipe, PairRecipe, Recipe
from accord.tuning import (
    METHODS_WITH_PORTFOLIO,
    OPTIONS,
    Candidate,
    Portfolio,
    edge_candidates,
    fit_schedule,
    has_sparse_features,
    may_be_directed,
    node_candidates,
)

AUTO = "auto"
FIXED_ENCODER = "gcnii"  # of benchmarks, and of methods that train their networks together


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
        return replace(recipe, training=training, node=OPTIONS, edge=OPTIONS)
    return replace(recipe, training=training, node=OPTIONS)


def portfolio_for(recipe: Recipe, parameters: dict[str, Any], train: Sequence[Data]) -> Portfolio:
    """The candidates; one of each kind where everything is given."""
    nodes: tuple[Candidate, ...] = (Candidate(recipe.encoder, recipe.node),)
    edges: tuple[Candidate, ...] = ()
    if isinstance(recipe, PairRecipe):
        edges = (Candidate(recipe.edge_encoder, recipe.edge),)
    if is_automatic(parameters):
        encoder, edge_encoder = parameters["encoder"], parameters["edge_encoder"]
        nodes = node_candidates(train) if _is_auto(encoder) else nodes
        if edges and _is_auto(encoder if edge_encoder is None else edge_encoder):
            edges = edge_candidates(train)
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
    return "raw" if has_sparse_features(train) else "standardised"


def _is_auto(value: object) -> bool:
    return isinstance(value, str) and value.lower() == AUTO
