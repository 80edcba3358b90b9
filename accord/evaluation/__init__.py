"""How good labels and probabilities are."""

from accord.evaluation._metrics import (
    METRICS,
    Metric,
    edge_accuracy,
    expected_calibration_error,
    graph_accuracy,
    metric_for,
    micro_f1,
    node_accuracy,
    unseen_nodes,
)

__all__ = [
    "METRICS",
    "Metric",
    "edge_accuracy",
    "expected_calibration_error",
    "graph_accuracy",
    "metric_for",
    "micro_f1",
    "node_accuracy",
    "unseen_nodes",
]
