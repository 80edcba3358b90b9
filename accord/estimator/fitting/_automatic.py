"""What "auto" stands for: recipe, candidates and treatment of features, by parameters and training graphs."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from torch_geometric.data import Data

from accord.encoders import EncoderSpec, SequenceSpec, encoder_spec
from accord.estimator.sequences import check_scheme
from accord.graphs import EdgeColumns, each, fit_edge_columns
from accord.learning import TrainingRun
from accord.methods import GNNRecipe, PairRecipe, Recipe, Shape
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
    sequence_schedule,
)

AUTO = "auto"
FIXED_ENCODER = "gcnii"  # of benchmarks, and of methods that train their networks together
SEQUENCE_ENCODER = "bilstm"  # of graphs with tokens, and beside another encoder of sequences


def is_own_data(parameters: dict[str, Any]) -> bool:
    """Whether the recipe may follow the data: no benchmark and no recipe is given, and the preset is Accord's."""
    return parameters["recipe"] is None and parameters["benchmark"] is None and parameters["preset"] == "accord"


def is_automatic(parameters: dict[str, Any]) -> bool:
    """Whether encoders are chosen on validation data."""
    wanted = _is_auto(parameters["encoder"]) or _is_auto(parameters["edge_encoder"])
    return is_own_data(parameters) and wanted and parameters["method"] in METHODS_WITH_PORTFOLIO


def fixed_encoders(
    parameters: dict[str, Any], words: bool = False
) -> tuple[str | EncoderSpec, str | EncoderSpec | None]:
    """Encoders of the recipe from which candidates start; "auto" is replaced, by another one for sequences."""
    encoder = parameters["encoder"]
    edge = None if _is_auto(parameters["edge_encoder"]) else parameters["edge_encoder"]
    sequences = words or (edge is not None and isinstance(encoder_spec(edge), SequenceSpec))
    fixed = SEQUENCE_ENCODER if sequences else FIXED_ENCODER
    return (fixed if _is_auto(encoder) else encoder), edge


def recipe_for(recipe: Recipe, parameters: dict[str, Any], train: Sequence[Data]) -> Recipe:
    """The recipe with rates and a schedule for these training graphs; a recipe for a benchmark stays as it is.

    Options of training that are given count in any case. A scheme of labels that the recipe cannot keep to is refused.
    """
    check_scheme(parameters["scheme"], parameters["method"], recipe)
    return with_options(_recipe_for(recipe, parameters, train), parameters["training"])


def _recipe_for(recipe: Recipe, parameters: dict[str, Any], train: Sequence[Data]) -> Recipe:
    if is_own_data(parameters) and recipe.reads_sequences:
        return replace(recipe, training=sequence_schedule(recipe.training, train, parameters["max_epochs"]))
    if not is_own_data(parameters) or not isinstance(recipe, (GNNRecipe, PairRecipe)) or recipe.method == "crf":
        return recipe
    training = fit_schedule(recipe.training, train, parameters["max_epochs"])
    if isinstance(recipe, PairRecipe):
        return replace(recipe, training=training, node=OPTIONS, edge=OPTIONS)
    return replace(recipe, training=training, node=OPTIONS)


def with_training(recipe: Recipe, parameters: dict[str, Any]) -> Recipe:
    """The recipe with what parameters say about training."""
    own = {name: parameters[name] for name in ("accelerator", "devices", "nodes")}
    if parameters["max_epochs"] is not None:
        own["max_epochs"] = parameters["max_epochs"]
    return with_options(with_options(recipe, own), parameters["training"])


def with_options(recipe: Recipe, options: Mapping[str, Any] | None) -> Recipe:
    """The recipe with some options of training."""
    return replace(recipe, training=replace(recipe.training, **options)) if options else recipe


def portfolio_for(recipe: Recipe, parameters: dict[str, Any], train: Sequence[Data]) -> Portfolio:
    """The candidates; one of each kind where everything is given."""
    nodes: tuple[Candidate, ...] = (Candidate(recipe.encoder, recipe.node),)
    edges: tuple[Candidate, ...] = ()
    if isinstance(recipe, PairRecipe):
        edges = (Candidate(recipe.edge_encoder, recipe.edge),)
    if recipe.reads_sequences:  # nothing to choose: sequences have a direction
        given = parameters["symmetric"] if isinstance(parameters["symmetric"], bool) else False
        return Portfolio(nodes, edges, (given,))
    if is_automatic(parameters):
        encoder, edge_encoder = parameters["encoder"], parameters["edge_encoder"]
        nodes = node_candidates(train) if _is_auto(encoder) else nodes
        if edges and _is_auto(encoder if edge_encoder is None else edge_encoder):
            edges = edge_candidates(train)
    own_edges = is_automatic(parameters) and _is_auto(parameters["encoder"]) and _have_attributes(train)
    symmetric: tuple[bool, ...] = (True,)
    if isinstance(recipe, PairRecipe):
        symmetric = (recipe.scorer.symmetric,)
        if isinstance(parameters["symmetric"], bool):
            symmetric = (parameters["symmetric"],)
        elif is_own_data(parameters) and recipe.method == "spn" and may_be_directed(train):
            symmetric = (True, False)
    return Portfolio(nodes, edges, symmetric, own_edges)


def edge_columns_for(
    recipe: Recipe, portfolio: Portfolio, symmetric: bool | str, train: Sequence[Data], attributes: int
) -> EdgeColumns | None:
    """Edge columns for training graphs, where networks read them or may read them and edges have attributes.

    Args:
        recipe: may ask for them.
        portfolio: may try them.
        symmetric: whether direction is left out; "auto" keeps it where it may matter.
        train: the training graphs.
        attributes: of an edge.
    """
    if not attributes or not (recipe.edge_inputs or portfolio.edge_inputs):
        return None
    directed = not symmetric if isinstance(symmetric, bool) else may_be_directed(train)
    return fit_edge_columns(train, attributes, directed)


def with_edge_columns(columns: EdgeColumns | None, run: TrainingRun, shape: Shape) -> tuple[TrainingRun, Shape]:
    """A run and its sizes, with the edge columns among the features of its graphs."""
    if columns is None:
        return run, shape
    train, validation = (each(graphs, columns.apply) for graphs in (run.train, run.validation))
    return replace(run, train=train, validation=validation), replace(shape, edge_columns=columns.count)


def _have_attributes(graphs: Sequence[Data]) -> bool:
    return any(graph.edge_attr is not None and graph.edge_attr.numel() for graph in graphs)


def with_networks(recipe: Recipe, portfolio: Portfolio) -> Recipe:
    """The recipe with the first networks of a portfolio."""
    node = portfolio.nodes[0]
    recipe = replace(recipe, encoder=node.encoder, node=node.options)
    if not isinstance(recipe, PairRecipe):
        return recipe
    edge = portfolio.edges[0]
    return replace(recipe, edge_encoder=edge.encoder, edge=edge.options)


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
