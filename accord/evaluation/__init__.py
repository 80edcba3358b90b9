"""How good labels and probabilities are: functions of labels, probabilities and beliefs, not of models."""

from accord.evaluation._answers import EDGE, NODE, Answers
from accord.evaluation._calibration import CALIBRATION_BINS, Reliability, expected_calibration_error, reliability
from accord.evaluation._cases import Case, choose_cases
from accord.evaluation._metrics import (
    METRICS,
    Metric,
    check_level,
    edge_accuracy,
    graph_accuracy,
    metric_for,
    micro_f1,
    node_accuracy,
    unseen_nodes,
)
from accord.evaluation._scores import Scores, score_answers

__all__ = [
    "CALIBRATION_BINS",
    "EDGE",
    "METRICS",
    "NODE",
    "Answers",
    "Case",
    "Metric",
    "Reliability",
    "Scores",
    "check_level",
    "choose_cases",
    "edge_accuracy",
    "expected_calibration_error",
    "graph_accuracy",
    "metric_for",
    "micro_f1",
    "node_accuracy",
    "reliability",
    "score_answers",
    "unseen_nodes",
]
