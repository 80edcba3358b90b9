"""Tuning: networks trained apart and judged on validation data, and the search over their settings."""

from accord.tuning._candidates import OPTIONS, Candidate, edge_candidates, has_sparse_features, node_candidates
from accord.tuning._direction import may_be_directed
from accord.tuning._parts import TrainedPart, combine_parts, train_edge_part, train_node_part
from accord.tuning._portfolio import METHODS_WITH_PORTFOLIO, Fitted, Portfolio, fit_portfolio
from accord.tuning._recipe_file import TunedRecipe, read_recipe, write_recipe
from accord.tuning._schedule import fit_schedule, sequence_schedule
from accord.tuning.trials._finals import Final, FitFinal, Settings
from accord.tuning.trials._groups import Problem
from accord.tuning.trials._plan import SearchBudget
from accord.tuning.trials._search import SearchResult, search
from accord.tuning.trials._space import SearchSpace, space_for
from accord.tuning.trials._table import COLUMNS, TITLES, markdown_table, table_cells, trial_rows
from accord.tuning.trials._trial import Group, TrialResult, run_trial, run_trials

__all__ = [
    "COLUMNS",
    "METHODS_WITH_PORTFOLIO",
    "OPTIONS",
    "TITLES",
    "Candidate",
    "Final",
    "FitFinal",
    "Fitted",
    "Group",
    "Portfolio",
    "Problem",
    "SearchBudget",
    "SearchResult",
    "SearchSpace",
    "Settings",
    "TrainedPart",
    "TrialResult",
    "TunedRecipe",
    "combine_parts",
    "edge_candidates",
    "fit_portfolio",
    "fit_schedule",
    "has_sparse_features",
    "markdown_table",
    "may_be_directed",
    "node_candidates",
    "read_recipe",
    "run_trial",
    "run_trials",
    "search",
    "sequence_schedule",
    "space_for",
    "table_cells",
    "train_edge_part",
    "train_node_part",
    "trial_rows",
    "write_recipe",
]
