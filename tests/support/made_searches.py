"""A small search, which tests of the search and of its engines share."""

from dataclasses import replace

from support.made_graphs import made_trees

from accord.encoders import GCN, MLP
from accord.learning import TrainingOptions
from accord.methods import Shape, preset_recipe
from accord.tuning import Problem, SearchBudget, SearchSpace, trial_rows
from accord.tuning.trials._search import coarse_grid

TRAINING = TrainingOptions(max_epochs=9, accelerator="cpu")
BUDGET = SearchBudget(trials=6, max_epochs=9)
SPACE = SearchSpace(encoders=(MLP(hidden=8), GCN(hidden=8)), edge_encoders=(MLP(hidden=8),))


def made_problem(method="spn", **changed):
    base = preset_recipe("accord", MLP(hidden=4), method=method)
    base = replace(base, training=TRAINING, **({"grid": coarse_grid(base.grid)} if method == "spn" else {}))
    given = {"train": made_trees(12, seed=0), "validation": made_trees(8, seed=1), "recipe": base} | changed
    return Problem(shape=Shape(2, 2), level="node", method=method, features="raw", **given)


def table(found):
    """The rows without the time that they took."""
    return [{key: value for key, value in row.items() if key != "seconds"} for row in trial_rows(found.trials)]
