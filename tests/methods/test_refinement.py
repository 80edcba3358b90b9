"""Refinement starts from the solution of the proxy problem and never lowers validation accuracy."""

from dataclasses import replace
from functools import partial
from importlib import import_module

import pytest
import torch
from support.made_graphs import made_trees
from support.made_recipes import recipe_for
from torch.testing import assert_close

import accord
from accord.encoders import GCN, MLP, LinearScorer
from accord.errors import InputTypeError, OptionError
from accord.evaluation import graph_accuracy
from accord.graphs import GraphBatch
from accord.inference import eliminate_beliefs
from accord.learning import PartOptions, RefinementOptions, Replicas, TrainingOptions, TrainingRun
from accord.methods import METHODS, Shape, SPNRecipe, StructuredProxyNetwork

TRAIN, VAL, TEST = made_trees(60, 0, states=3), made_trees(30, 1, states=3), made_trees(60, 2, states=3)
SHAPE = Shape(3, 3)
MODULES = {"spn": "_spn", "gmnn": "_gmnn", "smooth": "_smoothing"}
RECIPE = SPNRecipe(
    encoder=MLP(hidden=8),
    edge_encoder=GCN(hidden=8),
    edge_channels=8,
    scorer=LinearScorer(),
    node=PartOptions(learning_rate=2e-2),
    edge=PartOptions(learning_rate=2e-2),
    training=TrainingOptions(max_epochs=20, accelerator="cpu"),
)
REFINED = replace(RECIPE, refinement=RefinementOptions(learning_rate=5e-3, max_epochs=20))


def likelihood(model, graphs):
    """Mean log-likelihood of the true labels, exact on these trees."""
    batch = GraphBatch.collate(graphs)
    field = model.field(batch)
    return (field.score(batch.y[None]) - eliminate_beliefs(field).log_partition).mean(-1)


def test_refinement_keeps_the_combination_and_validation_accuracy():
    before = StructuredProxyNetwork(RECIPE, "graph").fit(TrainingRun(TRAIN, VAL), SHAPE, Replicas((0, 1)))
    after = StructuredProxyNetwork(REFINED, "graph").fit(TrainingRun(TRAIN, VAL), SHAPE, Replicas((0, 1)))
    for name, value in before.chosen.tensors().items():
        assert_close(after.chosen.tensors()[name], value)
    batch = GraphBatch.collate(VAL)
    scores = [graph_accuracy(model.labels(batch), batch.y[None], batch.topology) for model in (before, after)]
    assert bool((scores[1] >= scores[0]).all())
    assert [row["epoch"] for row in after.history] == list(range(0, 45, 5))
    assert "field_loss" in after.history[-1] and "node_loss" in after.history[4]
    assert {"node_score", "field_score"} <= after.history[4].keys()  # where one stage ends and the next begins


def test_the_game_raises_the_likelihood_of_the_training_labels():
    before = StructuredProxyNetwork(RECIPE).fit(TrainingRun(TRAIN, VAL), SHAPE, Replicas((0,)))
    options = RefinementOptions(learning_rate=5e-3, max_epochs=40)
    # Validation on the training graphs, so that the parameters that fit them best are kept.
    after = StructuredProxyNetwork(replace(RECIPE, refinement=options)).fit(
        TrainingRun(TRAIN, TRAIN), SHAPE, Replicas((0,))
    )
    assert likelihood(after, TRAIN) > likelihood(before, TRAIN)


def test_without_the_proxy_the_game_starts_from_untrained_networks():
    alone = replace(REFINED, training=replace(RECIPE.training, max_epochs=0))
    model = StructuredProxyNetwork(alone, "graph").fit(TrainingRun(TRAIN, VAL), SHAPE, Replicas((0,)))
    assert not any("node_loss" in row for row in model.history)
    assert model.history[-1]["field_score"] > model.history[0]["node_score"]
    first = alone.grid.candidates()[0]  # nothing is chosen by untrained networks
    assert [float(values[0]) for values in model.chosen.tensors().values()][: len(first)] == pytest.approx(first)
    assert model.chosen.score.isnan().all()


@pytest.mark.parametrize("method", ["spn", "gmnn", "smooth"])
def test_choices_after_training_are_deterministic_if_asked_for(method, monkeypatch):
    seen = []

    def noted(*given, wrapped, **named):
        seen.append(torch.are_deterministic_algorithms_enabled())
        return wrapped(*given, **named)

    module = import_module(f"accord.methods.{MODULES[method]}")
    name = "choose_carefully" if method == "spn" else "rank"
    monkeypatch.setattr(module, name, partial(noted, wrapped=getattr(module, name)))
    training = replace(RECIPE.training, max_epochs=1, deterministic=True)
    recipe = recipe_for(METHODS[method], vars(RECIPE) | {"training": training})
    METHODS[method](recipe, "graph").fit(TrainingRun(TRAIN, VAL), SHAPE, Replicas((0,)))
    assert seen and all(seen)
    assert not torch.are_deterministic_algorithms_enabled()


def test_a_refined_run_that_was_stopped_resumes(tmp_path):
    whole = StructuredProxyNetwork(REFINED).fit(TrainingRun(TRAIN, VAL), SHAPE, Replicas((0,)))
    rows = 0

    class Stop(Exception):
        """In the middle of the second stage."""

    def stop(row):
        nonlocal rows
        rows += 1
        if row["epoch"] == 35:
            raise Stop

    with pytest.raises(Stop):
        StructuredProxyNetwork(REFINED).fit(TrainingRun(TRAIN, VAL, tmp_path, stop), SHAPE, Replicas((0,)))
    assert rows == 9  # the start of the second stage is reported too
    again = StructuredProxyNetwork(REFINED).fit(TrainingRun(TRAIN, VAL, tmp_path), SHAPE, Replicas((0,)))
    assert again.history == whole.history
    assert all(torch.equal(again.tensors()[name], value) for name, value in whole.tensors().items())


def test_the_classifier_refines_and_saves_that_it_did(tmp_path):
    model = accord.NodeClassifier(recipe=RECIPE, refine=True, accelerator="cpu", max_epochs=5).fit(TRAIN, VAL)
    model.save(tmp_path)
    again = accord.NodeClassifier.load(tmp_path)
    assert again.refine and again.recipe_.refinement == RefinementOptions()
    assert torch.equal(again.predict(TEST[0]), model.predict(TEST[0]))
    with pytest.raises(OptionError, match="method 'gnn' has no refinement"):
        accord.NodeClassifier("gnn", refine=True).fit(TRAIN, VAL)
    with pytest.raises(InputTypeError, match="the recipe is a SPNRecipe, but a CRFRecipe is needed"):
        accord.NodeClassifier("crf", recipe=REFINED).fit(TRAIN, VAL)
    for wrong in ({"learning_rate": 0.0}, {"learning_rate": "x"}, {"max_epochs": -1}):
        with pytest.raises(OptionError):
            RefinementOptions(**wrong)
