"""`NodeClassifier(training=...)`: options of training by name, which leave all else to be decided by the data."""

import pytest
from sklearn.base import clone
from support.made_graphs import made_trees

from accord import NodeClassifier
from accord.errors import InputTypeError, OptionError
from accord.tuning._schedule import PATIENCE

TRAIN, VALIDATION = made_trees(12, seed=0), made_trees(8, seed=1)
QUICK = {"max_epochs": 2, "accelerator": "cpu"}


def test_candidates_are_tried_as_without_them():
    plain = NodeClassifier(**QUICK).fit(TRAIN, VALIDATION)
    model = NodeClassifier(training={"clusters": 4, "batch_clusters": 2}, **QUICK).fit(TRAIN, VALIDATION)
    assert len(model.candidates_) > 4
    assert [row["kind"] for row in model.candidates_[:6]] == [row["kind"] for row in plain.candidates_[:6]]
    assert model.candidates(TRAIN) == plain.candidates(TRAIN)
    training = model.recipe_.training
    assert (training.clusters, training.batch_clusters, training.max_epochs) == (4, 2, 2)
    assert clone(model).training == {"clusters": 4, "batch_clusters": 2}


def test_patience_follows_the_updates_of_clusters():
    """Sixteen clusters, two at a time: eight updates an epoch."""
    recipe = NodeClassifier(training={"clusters": 16, "batch_clusters": 2}).resolve_recipe(TRAIN)
    training = recipe.training
    assert training.patience * training.evaluate_every * 8 == pytest.approx(PATIENCE, rel=0.1)
    assert training.batch_graphs is None


def test_what_is_given_wins_over_the_schedule_and_a_recipe():
    own = {"patience": 7, "evaluate_every": 3, "max_epochs": 11}
    for parameters in ({}, {"benchmark": "cora*"}, {"recipe": NodeClassifier().resolve_recipe()}):
        training = NodeClassifier(training=own, **parameters).resolve_recipe(TRAIN).training
        assert {name: getattr(training, name) for name in own} == own


@pytest.mark.parametrize(
    ("given", "error", "words"),
    [
        ([("clusters", 2)], InputTypeError, "by name"),
        ({"cluster": 2}, OptionError, "no option 'cluster'. Known options: .*clusters"),
        ({"clusters": 0}, OptionError, "clusters is 0"),
    ],
)
def test_other_options_are_refused(given, error, words):
    with pytest.raises(error, match=words):
        NodeClassifier(training=given).fit(TRAIN, VALIDATION)
