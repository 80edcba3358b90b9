"""`NodeClassifier(search=...)`: what a model's parameters leave open is searched on validation data."""

from collections.abc import Collection, Sequence
from dataclasses import replace
from inspect import signature
from pathlib import Path
from typing import TYPE_CHECKING

from torch_geometric.data import Data

from accord.distributed.engines import Engine
from accord.errors import OptionError
from accord.estimator.fitting._automatic import (
    edge_columns_for,
    is_own_data,
    portfolio_for,
    with_direction,
    with_networks,
)
from accord.estimator.fitting._finals import FinalFits
from accord.estimator.fitting._streaming import check_streaming
from accord.estimator.fitting._weights import state_weights
from accord.estimator.sequences import WORDS
from accord.graphs import common_treatment
from accord.learning import Report, TrainingRun
from accord.learning.training import usual_torch
from accord.tuning import FitFinal, Portfolio, Problem, SearchBudget, SearchResult, search, space_for, trial_rows
from accord.tuning.trials._search import ReportTrial

if TYPE_CHECKING:
    from accord.estimator._classifier import NodeClassifier

SEARCH_FOLDER = "search"  # inside the folder of a fit


def find_settings(
    model: "NodeClassifier",
    graphs: Sequence[Data],
    validation: Sequence[Data] | None = None,
    folder: Path | None = None,
    budget: SearchBudget | None = None,
    report: ReportTrial | None = None,
    fixed: Collection[str] = (),
    engine: Engine | None = None,
) -> SearchResult:
    """Search the settings that a model would be fitted with.

    Where the budget has time for the winner's training, winner and default model are trained, and the result has the
    settings of the better one. The arguments are those of `NodeClassifier.fit` and `search_settings`.
    """
    check_streaming(graphs, validation, search=True)
    with usual_torch():
        data = model._read(graphs, validation)
        final = None if budget is not None and not budget.train_winner else FinalFits(model, *data)
        return search_settings(model, *data, folder, budget, report, fixed, engine, final)


def fit_searched(
    model: "NodeClassifier",
    train: Sequence[Data],
    validation: Sequence[Data],
    folder: Path | None,
    follow: Report | None,
) -> TrainingRun:
    """Fit a model whose data have been read with what a search finds, or with the default if that is better.

    Args:
        model: changed in place.
        train: training graphs with raw features and labels as states.
        validation: validation graphs, likewise.
        folder: of the fit.
        follow: called with the rows of the winner's training.

    Returns:
        The run of the model.
    """
    finals = FinalFits(model, train, validation, follow)
    found = search_settings(model, train, validation, folder, final=finals)
    own, run = finals.better(found)
    for name, value in vars(own).items():
        if name.endswith("_"):
            setattr(model, name, value)
    model.search_results_ = trial_rows(found.trials)
    return replace(run, folder=folder, report=follow)


def search_settings(
    model: "NodeClassifier",
    train: Sequence[Data],
    validation: Sequence[Data],
    folder: Path | None = None,
    budget: SearchBudget | None = None,
    report: ReportTrial | None = None,
    fixed: Collection[str] = (),
    engine: Engine | None = None,
    final: FitFinal | None = None,
) -> SearchResult:
    """Search for the settings of a model whose data have been read: `recipe_` and `shape_` are set.

    Parameters that were given stay as they are: an encoder, an edge encoder, features, `symmetric`. Those at their
    defaults are searched. A benchmark keeps the features of its preset. Trials weigh training labels as the model does;
    they have one member each, and no refit: an ensemble is trained with the settings that single members do best with.

    Args:
        model: gives the recipe to start from, method, level and seed.
        train: training graphs with raw features and labels as states.
        validation: validation graphs, likewise.
        folder: of the fit; finished trials are kept in a folder inside it.
        budget: None takes the model's `search` trials.
        report: called with every trial.
        fixed: parameters that stay as they are even if that is their default: "encoder", "edge_encoder".
        engine: where trials run; None for this process.
        final: trains the default model and the winner, which are compared; None compares nothing.
    """
    defaults = {name: entry.default for name, entry in signature(type(model)).parameters.items()}
    encoder, edge_encoder = (
        None if name not in fixed and getattr(model, name) == defaults[name] else getattr(model, name)
        for name in ("encoder", "edge_encoder")
    )
    treated = common_treatment(train)
    features = treated.name if treated is not None else model.resolve_features(train)
    if features == WORDS:
        raise OptionError(
            "NodeClassifier: the search does not know networks for words. Leave out search, and compare encoders such "
            "as 'bilstm' and 'convolution' yourself."
        )
    is_open = treated is None and model.features == "auto" and model.benchmark is None
    symmetric = model.symmetric if isinstance(model.symmetric, bool) else None
    space = space_for(
        train, encoder, edge_encoder, None if is_open else features, symmetric, model.benchmark is not None
    )
    recipe = model.resolve_recipe(train)
    if symmetric is not None:
        recipe = with_direction(recipe, Portfolio((), (), (symmetric,)))
    columns = None
    parameters = model.get_params(deep=False)
    if is_own_data(parameters) and encoder is None and model.shape_.edge_attributes:
        space, recipe = replace(space, edge_inputs=(True, False)), replace(recipe, edge_inputs=True)
    if recipe.edge_inputs:
        columns = edge_columns_for(recipe, Portfolio((), ()), model.symmetric, train, model.shape_.edge_attributes)
    weights = state_weights(model.class_weight, train, model.shape_, model.label_names_)
    own = portfolio_for(recipe, parameters, train)  # the networks that `fit` would try come first
    problem = Problem(
        train,
        validation,
        model.shape_,
        model.level,
        model.method,
        with_networks(recipe, own),
        features,
        weights,
        columns,
        own.nodes[1:],
        own.edges[1:],
    )
    if budget is None:
        budget = SearchBudget(trials=model.search or 1, max_epochs=model.max_epochs)
    place = None if folder is None else folder / SEARCH_FOLDER
    return search(problem, space, budget, model.seed, place, report, engine, final)
