"""`NodeClassifier(search=...)`, and recipe files as `recipe`."""

import json
from dataclasses import replace

import pytest
import torch
from sklearn.base import clone
from support.made_graphs import made_trees
from torch_geometric.data import Data

from accord import NodeClassifier
from accord.errors import InputError, InputTypeError, OptionError
from accord.learning.training import StateWeights
from accord.methods import METHODS
from accord.tuning import TunedRecipe, run_trials, space_for, write_recipe
from accord.tuning.trials._search import _Search

TRAIN, VALIDATION = made_trees(12, seed=0), made_trees(8, seed=1)
QUICK = {"max_epochs": 3, "accelerator": "cpu"}


@pytest.fixture(scope="module")
def found():
    return NodeClassifier(search=6, method="gnn", **QUICK).fit(TRAIN, VALIDATION)


def test_the_winner_is_trained(found):
    rows = found.search_results_
    finals, rows = rows[:2], rows[2:]
    assert {row["trial"] for row in finals} == {"default", "winner"}
    assert len(rows) == 6 and json.loads(json.dumps(rows)) == rows
    best = max(rows, key=lambda row: (row["rung"], row["score"], -row["loss"]))
    winner = next(row for row in finals if row["trial"] == "winner")
    assert winner["recipe"]["encoder"] == best["recipe"]["encoder"] and winner["features"] == best["features"]
    assert found.recipe_.encoder.to_config() == finals[0]["recipe"]["encoder"], "the better of the two"
    assert found.treatment_.name == finals[0]["features"]
    assert found.predict(VALIDATION[0]).shape == (VALIDATION[0].num_nodes,)


@pytest.mark.parametrize("given", [{"method": "gnn"}, {}, {"ensemble": 2}], ids=str)
def test_a_search_never_ends_with_a_worse_model_than_the_default(given, monkeypatch):
    """A winner that there is no time to train loses on validation data."""

    def no_time(self, winner, training):
        return replace(training, max_epochs=0)

    monkeypatch.setattr(_Search, "winner_training", no_time)
    given = {"max_epochs": 40, "accelerator": "cpu", **given}
    train, validation = made_trees(30, seed=0), made_trees(20, seed=1)
    default = NodeClassifier(**given).fit(train, validation)
    tuned = NodeClassifier(search=2, **given).fit(train, validation)
    rows = {row["trial"]: row for row in tuned.search_results_ if row["part"] == "final"}
    assert rows["winner"]["recipe"]["training"]["max_epochs"] == 0
    assert (rows["winner"]["score"], -rows["winner"]["loss"]) < (rows["default"]["score"], -rows["default"]["loss"])
    assert rows["default"]["score"] == pytest.approx(default.score(validation))
    assert tuned.recipe_ == default.recipe_ and tuned.get_params()["search"] == 2
    for graph in validation:
        torch.testing.assert_close(tuned.predict_proba(graph), default.predict_proba(graph))


def test_a_default_that_was_kept_is_found_again(tmp_path, monkeypatch):
    monkeypatch.setattr(_Search, "winner_training", lambda self, winner, training: replace(training, max_epochs=0))
    given = {"search": 2, "refit": True, "max_epochs": 20, "encoder": "mlp", "method": "gnn", "accelerator": "cpu"}
    first, again = (NodeClassifier(**given).fit(TRAIN, VALIDATION, folder=tmp_path) for _ in range(2))
    assert first.search_results_ == again.search_results_ and first.search_results_[0]["trial"] == "default"
    for graph in VALIDATION:
        torch.testing.assert_close(first.predict_proba(graph), again.predict_proba(graph))


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
