"""`NodeClassifier(order=3)`: triangles beside the networks of order 2."""

import warnings
from dataclasses import replace

import pytest
import torch
from torch_geometric.data import Data

from accord import NodeClassifier
from accord.datasets import TriplesOptions, make_triples
from accord.encoders import Linear
from accord.encoders.scorers.triangles import AgreementTriangles
from accord.errors import DepartureWarning, OptionError
from accord.learning import PartOptions, RefinementOptions
from accord.methods import TriangleModel, TriangleRecipe, recipe_from_config, recipe_to_config

OPTIONS = TriplesOptions(min_triangles=4, max_triangles=8, faithful=0.99, noise=0.8)
QUICK = {"encoder": "linear", "max_epochs": 12, "seed": 0}


@pytest.fixture(scope="module")
def bench():
    return make_triples(60, 40, 40, options=OPTIONS)


@pytest.fixture(scope="module")
def pairs(bench):
    return NodeClassifier(**QUICK).fit(bench.train, bench.val)


def recipe_of(bench):
    """A triangle network that learns in a few epochs."""
    recipe = NodeClassifier(**QUICK, order=3).resolve_recipe(bench.train)
    fast = TriangleRecipe(
        scorer=AgreementTriangles(), part=PartOptions(learning_rate=0.05), encoder=Linear(), channels=8
    )
    part = PartOptions(learning_rate=0.03)
    return replace(recipe, triangles=fast, node=part, edge=part, scorer=replace(recipe.scorer, dropout=0.0))


@pytest.fixture(scope="module")
def model(bench):
    return NodeClassifier(**QUICK, order=3, recipe=recipe_of(bench)).fit(bench.train, bench.val)


def test_networks_and_choice_of_nodes_and_edges_are_those_of_order_2(bench):
    recipe = recipe_of(bench)
    two, three = (
        NodeClassifier(**QUICK, recipe=replace(recipe, triangles=triangles)).fit(bench.train, bench.val)
        for triangles in (None, recipe.triangles)
    )
    before, after = two.model_.tensors(), three.model_.tensors()
    assert set(after) > set(before) and all(torch.equal(after[name], value) for name, value in before.items())
    chosen = three.model_.chosen
    same = {name: value for name, value in two.model_.chosen.tensors().items() if name != "score"}
    assert all(torch.equal(getattr(chosen, name), value) for name, value in same.items())


def test_triangles_gain_where_labels_follow_triples(model, bench):
    assert isinstance(model.model_, TriangleModel) and float(model.model_.triangle_choice.triangle_weight) > 0
    answers = model.answers(bench.test)
    right = {name: float((labels == answers.truth).double().mean()) for name, labels in answers.labels.items()}
    assert right["spn"] > right["gnn"] + 0.05
    assert abs(model.score(bench.test) - right["spn"]) < 1e-9


def test_a_saved_model_says_the_same(model, bench, tmp_path):
    model.save(tmp_path)
    loaded = NodeClassifier.load(tmp_path)
    assert loaded.order == 3
    for graph in bench.test[:5]:
        assert torch.equal(loaded.predict(graph), model.predict(graph))
        torch.testing.assert_close(loaded.predict_proba(graph), model.predict_proba(graph))


def test_a_graph_is_labelled_as_in_a_list(model, bench):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DepartureWarning)
        together = model.predict(bench.test[:6])
        for graph, labels in zip(bench.test[:6], together, strict=True):
            assert torch.equal(model.predict(graph), labels)


def test_known_labels_and_forbidden_pairs_hold(model, bench):
    graph = bench.test[0]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DepartureWarning)
        known = {0: int(graph.y[0]), 2: int(graph.y[2])}
        labels = model.predict(graph, known=known)
        assert all(int(labels[node]) == label for node, label in known.items())
        assert float(model.predict_proba(graph, known=known)[0, known[0]]) == 1.0
        labels = model.predict(graph, forbid=[(0, 1)])
        ends = labels[graph.edge_index]
        assert not bool(((ends.amin(0) == 0) & (ends.amax(0) == 1)).any())
        assert model.predict_edge_proba(graph, forbid=[(0, 1)]).shape[-2:] == (3, 3)


def test_diagnosis_and_thresholds_work_and_explanations_are_refused(model, bench):
    graph = bench.test[0]
    assert model.diagnose(graph).labels.shape == (1, len(graph.y))
    assert len(model.predict(graph, threshold={0: 0.9})) == len(graph.y)
    with pytest.raises(OptionError, match="order=3"):
        model.explain(graph, 0)
    with pytest.raises(OptionError, match="order=3"):
        model.sweeps(graph)


def test_without_triangles_order_3_is_order_2(bench, pairs):
    """Graphs that are trees have no triangles: there is nothing to learn, and nothing changes."""

    def tree(graph):
        cut = graph.clone()
        cut.edge_index = cut.edge_index[:, (cut.edge_index[0] - cut.edge_index[1]).abs() == 1]
        return cut

    train, val = [tree(graph) for graph in bench.train], [tree(graph) for graph in bench.val]
    two, three = (NodeClassifier(**QUICK, order=order).fit(train, val) for order in (2, 3))
    for graph in val[:5]:
        assert torch.equal(two.predict(graph), three.predict(graph))
        assert torch.equal(two.predict_proba(graph), three.predict_proba(graph))


def test_refinement_trains_the_triangle_network_too(bench):
    recipe = replace(recipe_of(bench), refinement=RefinementOptions(learning_rate=0.02, max_epochs=6))
    short = QUICK | {"max_epochs": 6}
    plain, refined = (
        NodeClassifier(**short, recipe=replace(recipe, refinement=refinement)).fit(bench.train, bench.val)
        for refinement in (None, recipe.refinement)
    )
    before, after = plain.model_.tensors(), refined.model_.tensors()
    assert any(not torch.equal(after[name], before[name]) for name in before if name.startswith("triangle/"))
    assert refined.score(bench.val) > plain.score(bench.val)


def test_several_tasks_and_members_are_trained_side_by_side(bench):
    def doubled(graph):
        twice = graph.clone()
        twice.y = torch.stack([graph.y, (graph.y + 1) % 3], 1)
        return twice

    train, val = [doubled(graph) for graph in bench.train], [doubled(graph) for graph in bench.val]
    recipe = recipe_of(bench)
    both = NodeClassifier(**QUICK, order=3, ensemble=2, recipe=recipe).fit(train, val)
    assert both.predict(val[0]).shape == val[0].y.shape
    assert len(both.choice_["triangle_weight"]) == 2


def test_the_winner_of_several_candidates_gets_triangles(bench):
    chosen = NodeClassifier(max_epochs=2, order=3).fit(bench.train[:20], bench.val[:10])
    assert isinstance(chosen.model_, TriangleModel) and len(chosen.candidates_) > 2
    assert chosen.recipe_.triangles is not None


def test_a_search_keeps_the_order(bench):
    found = NodeClassifier(max_epochs=2, order=3, search=2, encoder="linear").fit(bench.train[:20], bench.val[:10])
    assert isinstance(found.model_, TriangleModel) and found.search_results_


def test_recipes_convert_to_json_and_back(bench):
    recipe = recipe_of(bench)
    assert recipe_from_config(recipe_to_config(recipe)) == recipe
    assert "triangles" not in recipe_to_config(replace(recipe, triangles=None))


@pytest.mark.parametrize(
    ("parameters", "words"),
    [
        ({"order": 4}, "order is 4"),
        ({"order": True}, "order is True"),
        ({"order": 3, "method": "gnn"}, "no order 3"),
        ({"order": 3, "refit": True}, "refit"),
    ],
)
def test_what_cannot_be_is_refused(bench, parameters, words):
    with pytest.raises(OptionError, match=words):
        NodeClassifier(**parameters).resolve_recipe()
    with pytest.raises(OptionError, match=words):
        NodeClassifier(**parameters).fit(bench.train, bench.val)


def test_a_graph_without_nodes_has_no_labels(model, bench):
    graph = bench.test[0]
    empty = Data(x=graph.x[:0], edge_index=graph.edge_index[:, :0])
    assert model.predict(empty).shape == (0,)
