"""Metrics, calibration and example graphs: functions of labels and probabilities, not of models."""

from accord.evaluation._answers import EDGE, NODE, Answers
from accord.evaluation._calibration import CALIBRATION_BINS, Reliability, expected_calibration_error, reliability
from accord.evaluation._cases import Case, choose_cases
from accord.evaluation._metrics import (
    Metric,
    check_level,
    edge_accuracy,
    graph_accuracy,
    metric_for,
    micro_f1,
    node_accuracy,
    node_ids,
    unseen_nodes,
)
from accord.evaluation._scores import Scores, score_answers

__all__ = [
    "CALIBRATION_BINS",
    "EDGE",
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
    "node_ids",
    "reliability",
    "score_answers",
    "unseen_nodes",
]
