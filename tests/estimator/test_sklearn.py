"""A `NodeClassifier` works with scikit-learn's tools on lists of graphs."""

import pytest
import torch
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV, KFold, cross_val_score
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import FunctionTransformer
from support.made_graphs import made_trees
from torch_geometric.data import Data

from accord import NodeClassifier
from accord.encoders import MLP
from accord.errors import InputTypeError

TRAIN, TEST = made_trees(24, 0), made_trees(6, 1)


def model(**changes):
    return NodeClassifier(
        **{"method": "gnn", "encoder": MLP(hidden=8), "max_epochs": 10, "accelerator": "cpu"} | changes
    )


def shifted(graphs):
    """A transformer of graphs: the same graphs with other features."""
    return [Data(x=3 * graph.x + 1, edge_index=graph.edge_index, y=graph.y) for graph in graphs]


def test_cross_validation_scores_held_out_graphs():
    folds = KFold(3)
    found = cross_val_score(model(), TRAIN, cv=folds, error_score="raise")
    for score, (inside, outside) in zip(found, folds.split(TRAIN), strict=True):
        by_hand = model().fit([TRAIN[i] for i in inside]).score([TRAIN[i] for i in outside])
        assert score == by_hand


def test_a_grid_search_over_a_pipeline():
    steps = Pipeline([("shift", FunctionTransformer(shifted)), ("label", model())])
    search = GridSearchCV(steps, {"label__seed": [0, 1]}, cv=2, error_score="raise").fit(TRAIN)
    assert set(search.best_params_) == {"label__seed"} and 0 <= search.best_score_ <= 1
    assert [len(labels) for labels in search.predict(TEST)] == [graph.num_nodes for graph in TEST]


def test_a_pipeline_gives_what_its_steps_give():
    pipeline = make_pipeline(FunctionTransformer(shifted), model()).fit(TRAIN)
    alone = model().fit(shifted(TRAIN), None)  # scikit-learn gives y=None as the second argument
    assert pipeline.score(TEST) == alone.score(shifted(TEST))
    for found, expected in zip(pipeline.predict_proba(TEST), alone.predict_proba(shifted(TEST)), strict=True):
        assert torch.equal(found, expected)


def test_labels_apart_from_graphs_are_refused():
    with pytest.raises(InputTypeError, match="validation"):
        model().fit(TRAIN, [graph.y for graph in TRAIN])


def test_a_clone_has_the_same_parameters_and_is_not_fitted():
    fitted = model(class_weight={0: 2.0}, label_names=["a", "b"]).fit(TRAIN)
    copy = clone(fitted)
    assert copy.get_params() == fitted.get_params() and not hasattr(copy, "model_")
    assert torch.equal(copy.fit(TRAIN).predict(TEST[0]), fitted.predict(TEST[0]))


def test_the_repr_is_short(tmp_path):
    assert repr(NodeClassifier()) == "NodeClassifier()"
    assert repr(NodeClassifier(seed=3, level="graph")) == "NodeClassifier(level='graph', seed=3)"
    model(label_names=["a", "b"]).fit(TRAIN).save(tmp_path)
    text = repr(NodeClassifier.load(tmp_path))
    assert "recipe=GNNRecipe(...)" in text and "method='gnn'" in text and len(text) < 300
