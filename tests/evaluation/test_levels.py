"""Levels: what a model is judged by."""

import math

import pytest
import torch
from sklearn.metrics import f1_score, log_loss, roc_auc_score

from accord.errors import OptionError
from accord.evaluation import LEVELS, check_level, level_score, needs_probabilities, pooled_score
from accord.evaluation._levels import LEAST_LOG, macro_auc, mean_log_likelihood
from accord.graphs import topology

GENERATOR = torch.Generator().manual_seed(0)
NODES, STATES = 60, 4
GRAPHS = topology(torch.empty(2, 0, dtype=torch.long), NODES, torch.arange(NODES) // 3)
TRUTH = torch.randint(0, STATES, (NODES,), generator=GENERATOR)
LABELS = torch.where(torch.rand(2, NODES, generator=GENERATOR) < 0.7, TRUTH, (TRUTH + 1) % STATES)
# Rounded, so that some probabilities are equal.
LOGS = (torch.randn(2, NODES, STATES, generator=GENERATOR) + 2 * torch.nn.functional.one_hot(TRUTH)).round()
LOGS = LOGS.log_softmax(-1)


def test_scores_equal_those_of_scikit_learn():
    for replica in range(2):
        probabilities = LOGS[replica].double().softmax(-1).numpy()
        expected = {
            "f1": f1_score(TRUTH, LABELS[replica], average="macro"),
            "likelihood": -log_loss(TRUTH, probabilities),
            "auc": sum(roc_auc_score(TRUTH == state, LOGS[replica, :, state]) for state in range(STATES)) / STATES,
        }
        for level, value in expected.items():
            assert float(level_score(level, LABELS, TRUTH, GRAPHS, LOGS)[replica]) == pytest.approx(value, abs=1e-6)


@pytest.mark.parametrize("level", LEVELS)
def test_missing_labels_do_not_count(level):
    missing = torch.cat([TRUTH, torch.full((3,), -1)])
    more = topology(torch.empty(2, 0, dtype=torch.long), NODES + 3, torch.arange(NODES + 3) // 3)
    labels = torch.cat([LABELS, torch.zeros(2, 3, dtype=torch.long)], 1)
    logs = torch.cat([LOGS, torch.zeros(2, 3, STATES)], 1)
    torch.testing.assert_close(
        level_score(level, labels, missing, more, logs), level_score(level, LABELS, TRUTH, GRAPHS, LOGS)
    )
    assert level_score(level, labels, torch.full_like(missing, -1), more, logs).isnan().all()


def test_an_impossible_label_is_bounded_and_a_state_without_nodes_is_left_out():
    logs = torch.tensor([[[0.0, -math.inf], [math.log(0.5), math.log(0.5)]]])
    assert float(mean_log_likelihood(logs, torch.tensor([1, 0]))) == pytest.approx((LEAST_LOG + math.log(0.5)) / 2)
    assert float(macro_auc(torch.tensor([[[0.9, 0.1, 0.0], [0.2, 0.8, 0.0]]]), torch.tensor([0, 1]))) == 1.0


def test_f1_of_several_binary_tasks_is_pooled():
    truth, labels = (torch.randint(0, 2, (3, NODES), generator=GENERATOR) for _ in range(2))
    expected = f1_score(truth.t(), labels.t(), average="micro")
    assert pooled_score("f1", labels, truth, GRAPHS) == pytest.approx(expected)
    assert pooled_score("f1", LABELS, TRUTH.expand(2, -1), GRAPHS) == pytest.approx(
        float(level_score("f1", LABELS, TRUTH, GRAPHS).mean())
    )


def test_levels_are_checked_by_name():
    assert [level for level in LEVELS if needs_probabilities(level)] == ["likelihood", "auc"]
    for wrong in ("edge", None, ["node"]):
        with pytest.raises(OptionError, match="is unknown. Choose one of: 'node'"):
            check_level(wrong)
