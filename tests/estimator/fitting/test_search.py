"""`NodeClassifier(search=...)`, and recipe files as `recipe`."""

import json

import pytest
import torch
from made_graphs import made_trees
from sklearn.base import clone
from torch_geometric.data import Data

from accord import NodeClassifier
from accord.errors import InputError, InputTypeError, OptionError
from accord.learning.training import StateWeights
from accord.methods import METHODS
from accord.tuning import TunedRecipe, run_trials, space_for, write_recipe

TRAIN, VALIDATION = made_trees(12, seed=0), made_trees(8, seed=1)
QUICK = {"max_epochs": 3, "accelerator": "cpu"}


@pytest.fixture(scope="module")
def found():
    return NodeClassifier(search=6, method="gnn", **QUICK).fit(TRAIN, VALIDATION)


def test_the_winner_is_trained(found):
    rows = found.search_results_
    assert len(rows) == 6 and json.loads(json.dumps(rows)) == rows
    best = max(rows, key=lambda row: (row["rung"], row["score"], -row["loss"]))
    assert found.recipe_.encoder.to_config() == best["recipe"]["encoder"]
    assert found.treatment_.name == best["features"]
    assert found.predict(VALIDATION[0]).shape == (VALIDATION[0].num_nodes,)


def test_what_is_given_stays():
    model = NodeClassifier(search=4, encoder="mlp", features="standardised", method="gnn", **QUICK)
    model.fit(TRAIN, VALIDATION)
    assert {row["recipe"]["encoder"]["kind"] for row in model.search_results_} == {"mlp"}
    assert {row["features"] for row in model.search_results_} == {"standardised"}


def test_the_parameters_of_a_search_are_not_changed(found):
    assert clone(found).get_params()["search"] == 6
    assert found.encoder == NodeClassifier().encoder, "what was found is in recipe_"


def test_a_tuned_model_is_saved_whole(found, tmp_path):
    found.save(tmp_path)
    loaded = NodeClassifier.load(tmp_path)
    assert loaded.search is None and loaded.recipe_.encoder == found.recipe_.encoder
    torch.testing.assert_close(loaded.predict_proba(VALIDATION[0]), found.predict_proba(VALIDATION[0]))


def test_trials_are_kept_in_the_folder(tmp_path):
    model = NodeClassifier(search=2, encoder="mlp", method="gnn", **QUICK)
    first = model.fit(TRAIN, VALIDATION, folder=tmp_path).search_results_
    kept = {path: path.stat().st_mtime_ns for path in (tmp_path / "search" / "trials").iterdir()}
    again = clone(model).fit(TRAIN, VALIDATION, folder=tmp_path).search_results_
    assert again == first, "also the seconds, which no second run repeats"
    assert kept == {path: path.stat().st_mtime_ns for path in (tmp_path / "search" / "trials").iterdir()}


@pytest.mark.parametrize("method", ["gnn", "spn"])
def test_a_recipe_file_sets_recipe_and_features(method, tmp_path):
    recipe = NodeClassifier(method=method, encoder="mlp", **QUICK).resolve_recipe()
    assert METHODS[method].recipe_type is type(recipe)
    write_recipe(tmp_path / "recipe.json", TunedRecipe(method, "standardised", recipe))
    model = NodeClassifier(method=method, recipe=tmp_path / "recipe.json", accelerator="cpu")
    assert model.resolve_recipe() == recipe and model.resolve_features(TRAIN) == "standardised"
    assert NodeClassifier(recipe=tmp_path / "recipe.json", features="raw").resolve_features(TRAIN) == "raw"


@pytest.mark.parametrize(("search", "error"), [(0, OptionError), (2.5, InputTypeError), (True, InputTypeError)])
def test_impossible_numbers_of_trials_are_refused(search, error):
    with pytest.raises(error, match="search"):
        NodeClassifier(search=search).fit(TRAIN, VALIDATION)


def test_trials_weigh_labels_and_the_winner_gets_ensemble_and_refit(monkeypatch):
    seen = []

    def spy(run, shape, group, *given, **named):
        seen.append((run.weights, given[1]))
        return run_trials(run, shape, group, *given, **named)

    monkeypatch.setattr("accord.tuning.trials._work.run_trials", spy)
    given = {"class_weight": "balanced", "ensemble": 3, "refit": True, "encoder": "mlp", "edge_encoder": "mlp"}
    model = NodeClassifier(search=2, **given, **QUICK)
    model.fit(TRAIN, VALIDATION)
    expected = StateWeights.balanced(TRAIN, 2)
    assert seen and all(torch.equal(weights.node, expected.node) for weights, _ in seen)
    assert all(len(seeds) == 1 and seeds[0] > 2 for _, seeds in seen), "one member, with none of the winner's seeds"
    assert all(len(value) == 3 for value in model.model_.tensors().values()), "three members"
    assert max(row["epoch"] for row in model.model_.history) > model.recipe_.training.max_epochs, "trained twice"


def test_weights_change_what_trials_find(tmp_path):
    found = [
        NodeClassifier(search=2, encoder="mlp", method="gnn", class_weight=weight, **QUICK)
        .fit(TRAIN, VALIDATION)
        .search_results_
        for weight in (None, [1, 50])
    ]
    losses = [{row["trial"]: row["loss"] for row in rows} for rows in found]
    first = found[0][0]["trial"]
    assert losses[0][first] != losses[1][first]


def test_a_search_of_other_weights_does_not_go_on(tmp_path):
    options = {"search": 2, "encoder": "mlp", "method": "gnn", **QUICK}
    NodeClassifier(**options).fit(TRAIN, VALIDATION, folder=tmp_path)
    with pytest.raises(InputError, match="weights differ"):
        NodeClassifier(class_weight="balanced", **options).fit(TRAIN, VALIDATION, folder=tmp_path)


def test_a_direction_that_is_given_stays():
    model = NodeClassifier(search=2, encoder="mlp", edge_encoder="mlp", symmetric=False, **QUICK)
    model.fit(TRAIN, VALIDATION)
    rows = [row for row in model.search_results_ if row["part"] in ("edge", "pair")]
    assert {row["recipe"]["scorer"]["symmetric"] for row in rows} == {False} and model.directed_
    one_way = [Data(x=graph.x, edge_index=graph.edge_index[:, ::2]) for graph in TRAIN]
    assert space_for(one_way).symmetric == (True, False) and space_for(one_way, symmetric=True).symmetric == (True,)


def test_there_is_nothing_to_search_where_training_goes_on(found):
    with pytest.raises(OptionError, match="Leave out search or start"):
        NodeClassifier(search=3, method="gnn", **QUICK).fit(TRAIN, VALIDATION, start=found)
