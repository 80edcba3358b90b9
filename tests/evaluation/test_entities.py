"""Entities, against seqeval and by hand."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from seqeval.metrics import f1_score, precision_score, recall_score

from accord.evaluation import entities, entity_scores

TAGS = st.sampled_from(["O", "B-x", "I-x", "B-y", "I-y"])
PAIRS = st.lists(st.lists(st.tuples(TAGS, TAGS), min_size=1, max_size=8), min_size=1, max_size=4)


@pytest.mark.parametrize(
    "labels, expected",
    [
        ("O O", []),
        ("B-x I-x O", [("x", 0, 1)]),
        ("B-x B-x", [("x", 0, 0), ("x", 1, 1)]),
        ("B-x I-y", [("x", 0, 0), ("y", 1, 1)]),
        ("I-x I-x O I-x", [("x", 0, 1), ("x", 3, 3)]),
        ("O B-x I-x I-x", [("x", 1, 3)]),
        ("B-x O I-x", [("x", 0, 0), ("x", 2, 2)]),
        ("B-new-york I-new-york", [("new-york", 0, 1)]),
    ],
)
def test_entities_by_hand(labels, expected):
    assert entities(labels.split()) == expected


def test_scores_by_hand():
    truth = ["B-x I-x O B-y".split(), "O B-x".split(), "O O".split()]
    found = ["B-x I-x O B-x".split(), "O B-x".split(), "B-y O".split()]
    scores = entity_scores(found, truth)
    assert (scores.true, scores.found, scores.right) == (3, 4, 2)
    assert (scores.precision, scores.recall) == (0.5, 2 / 3)
    assert scores.f1 == pytest.approx(4 / 7)
    nothing = entity_scores([["O"]], [["O"]])
    assert (nothing.precision, nothing.recall, nothing.f1) == (0.0, 0.0, 0.0)


@settings(deadline=None)
@pytest.mark.filterwarnings("ignore")
@given(PAIRS)
def test_scores_equal_seqeval(pairs):
    found = [[one for one, _ in sentence] for sentence in pairs]
    truth = [[other for _, other in sentence] for sentence in pairs]
    scores = entity_scores(found, truth)
    assert scores.precision == pytest.approx(float(precision_score(truth, found)))
    assert scores.recall == pytest.approx(float(recall_score(truth, found)))
    assert scores.f1 == pytest.approx(float(f1_score(truth, found)))
