"""Edge attributes as inputs of the networks: labels that depend on them alone are learned."""

import json
from dataclasses import replace

import pytest
import torch
from torch_geometric.data import Data

from accord import NodeClassifier
from accord.errors import GraphError
from accord.estimator.fitting import _unlabelled
from accord.methods import GNNRecipe, recipe_from_config, recipe_to_config

NODES = 8
QUICK = {"method": "gnn", "max_epochs": 60, "accelerator": "cpu"}


def majority(seed, told_by_features=False):
    """A ring with chords whose edges have one of two types; a node's label is the type of most of its edges."""
    generator = torch.Generator().manual_seed(seed)
    ring = torch.arange(NODES)
    edges = torch.cat([torch.stack([ring, (ring + step) % NODES]) for step in (1, 3)], 1)
    kind = torch.randint(0, 2, (edges.shape[1],), generator=generator)
    votes = torch.zeros(NODES).index_add_(0, edges.flatten(), 2.0 * torch.cat([kind, kind]) - 1)
    y = (votes > 0).long()
    x = torch.randn(NODES, 2, generator=generator)
    if told_by_features:
        y = torch.randint(0, 2, (NODES,), generator=generator)
        x[:, 0] += 4 * y
    both = torch.cat([edges, edges.flip(0)], 1)
    attributes = torch.nn.functional.one_hot(torch.cat([kind, kind]), 2).float()
    return Data(x=x, edge_index=both, edge_attr=attributes, y=y)


TRAIN, VALIDATION, TEST = (
    [majority(first + n) for n in range(count)] for first, count in ((0, 24), (100, 12), (200, 12))
)


@pytest.fixture(scope="module")
def default():
    return NodeClassifier(**QUICK).fit(TRAIN, VALIDATION)


@pytest.fixture(scope="module")
def given(default):
    """A model whose recipe asks for edge inputs."""
    recipe = replace(default.recipe_, encoder=NodeClassifier(encoder="mlp", **QUICK).resolve_recipe().encoder)
    return NodeClassifier(recipe=recipe, **QUICK).fit(TRAIN, VALIDATION)


def test_the_default_learns_labels_that_depend_on_edge_attributes_alone(default):
    assert default.recipe_.edge_inputs and default.score(TEST) > 0.9
    assert NodeClassifier(encoder="gcn", **QUICK).fit(TRAIN, VALIDATION).score(TEST) < 0.8
    kinds = [row["kind"] for row in default.candidates_]
    assert len(kinds) == 5 and kinds[-1].endswith(", without edge attributes")


@pytest.mark.parametrize("method", ["gnn", "smooth"])
def test_where_they_say_nothing_validation_data_leave_them_out(method, tmp_path):
    train, validation = ([majority(n, True) for n in range(first, first + 12)] for first in (0, 50))
    for number, graph in enumerate((*train, *validation)):
        graph.edge_attr = torch.randn(graph.num_edges, 8, generator=torch.Generator().manual_seed(number))
    options = QUICK | {"method": method, "max_epochs": 12}
    model = NodeClassifier(**options).fit(train, validation, folder=tmp_path)
    assert not model.recipe_.edge_inputs and model.edge_columns_ is None and model.shape_.edge_columns == 0
    assert model.score(validation) > 0.85
    tried = [row["kind"] for row in model.candidates_ if row["kind"].endswith("without edge attributes")]
    assert len(tried) == 2, "the next one too, because the first was better without"


def test_a_saved_model_reads_edges_as_before(default, tmp_path):
    default.save(tmp_path)
    loaded = NodeClassifier.load(tmp_path)
    assert loaded.recipe_.edge_inputs and loaded.shape_ == default.shape_
    for graph in TEST[:3]:
        assert torch.equal(loaded.predict_proba(graph), default.predict_proba(graph))
    assert "attributes of a node's edges" in (tmp_path / "README.md").read_text()
    with pytest.raises(GraphError, match="edge attributes"):
        loaded.predict(Data(x=TEST[0].x, edge_index=TEST[0].edge_index))


def test_the_recipe_trains_the_same_model_again(default):
    again = NodeClassifier(recipe=default.recipe_, accelerator="cpu", method="gnn").fit(TRAIN, VALIDATION)
    for name, value in default.model_.tensors().items():
        torch.testing.assert_close(again.model_.tensors()[name], value)


@pytest.mark.parametrize("both", [True, False])
def test_the_direction_in_which_edges_are_stored_counts_only_where_it_may(given, both):
    graph = TEST[0]
    half = Data(x=graph.x, edge_index=graph.edge_index[:, : 2 * NODES], edge_attr=graph.edge_attr[: 2 * NODES])
    assert not given.edge_columns_.directed
    torch.testing.assert_close(given.predict_proba(half), given.predict_proba(graph))
    columns = NodeClassifier(recipe=given.recipe_, symmetric=both, **QUICK | {"max_epochs": 0}).fit(TRAIN, VALIDATION)
    assert columns.edge_columns_.directed is not both


def test_training_goes_on_with_the_same_columns(given):
    after = NodeClassifier(recipe=given.recipe_, **QUICK | {"max_epochs": 0}).fit(TEST, VALIDATION, start=given)
    assert after.edge_columns_ is given.edge_columns_
    assert torch.equal(after.predict_proba(TEST[0]), given.predict_proba(TEST[0]))


def test_ensemble_refit_and_unlabelled_graphs_have_the_columns_too(given, monkeypatch):
    monkeypatch.setattr(_unlabelled, "is_better", lambda *given: True)
    options = QUICK | {"max_epochs": 3, "ensemble": 2, "refit": True}
    model = NodeClassifier(recipe=given.recipe_, **options).fit(TRAIN, VALIDATION, unlabelled=TEST)
    assert model.unlabelled_["graphs"] == 12 and model.predict(TEST[0]).shape == (NODES,)


def test_a_search_tries_both(tmp_path):
    model = NodeClassifier(search=18, **QUICK | {"max_epochs": 9}).fit(TRAIN, VALIDATION)
    read = [row["recipe"].get("edge_inputs", False) for row in model.search_results_]
    assert set(read) == {True, False} and model.recipe_.edge_inputs
    assert model.edge_columns_ is not None and model.score(TEST) > 0.7


def test_recipes_of_earlier_versions_are_written_as_before():
    recipe = NodeClassifier(encoder="mlp", method="gnn").resolve_recipe()
    assert isinstance(recipe, GNNRecipe) and "edge_inputs" not in recipe_to_config(recipe)
    asked = replace(recipe, edge_inputs=True)
    assert recipe_from_config(json.loads(json.dumps(recipe_to_config(asked)))) == asked
