import pytest
import torch

from accord.errors import GraphError
from accord.evaluation import Answers, score_answers
from accord.graphs import topology

GRAPHS = topology(torch.tensor([[0, 2], [1, 3]]), 5, torch.tensor([0, 0, 1, 1, 1]))


def answers(probabilities, truth):
    values = torch.tensor(probabilities)
    return Answers(GRAPHS, torch.tensor(truth), {"gnn": values.argmax(-1)}, {"gnn": values})


SURE, SPLIT = [0.95, 0.05], [0.37, 0.63]


def test_scores_by_hand():
    parts = answers([[SURE, SPLIT, SURE, SURE, SPLIT]], [[0, 1, 0, 1, -1]])
    scores = score_answers(parts, torch.tensor([True, False, False, True, False]))["gnn"]
    assert scores["node_accuracy"] == 3 / 4
    assert scores["graph_accuracy"] == 1 / 2
    assert scores["unseen_accuracy"] == 1 / 2
    assert scores["ece"] == pytest.approx(0.75 * abs(2 / 3 - 0.95) + 0.25 * 0.37)
    assert "micro_f1" not in scores


def test_binary_tasks_have_a_micro_f1():
    scores = score_answers(answers([[SURE] * 5, [SPLIT] * 5], [[0, 0, 0, 0, 1], [1, 1, 0, 0, 0]]))["gnn"]
    assert scores["micro_f1"] == pytest.approx(2 * 2 / (5 + 3))
    assert scores["node_accuracy"] == pytest.approx((4 / 5 + 2 / 5) / 2)


@pytest.mark.parametrize("unseen", [torch.zeros(5, dtype=torch.bool), torch.ones(5, dtype=torch.bool), None])
def test_unseen_nodes_have_a_score_only_beside_seen_ones(unseen):
    assert "unseen_accuracy" not in score_answers(answers([[SURE] * 5], [[0] * 5]), unseen)["gnn"]


def test_graphs_without_labels_are_refused():
    with pytest.raises(GraphError, match="score_answers: the graphs have no labels to compare with"):
        score_answers(answers([[SURE] * 5], [[-1] * 5]))
