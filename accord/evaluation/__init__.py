"""Metrics, calibration, diagnostics, explanations: functions of labels, probabilities and beliefs, not of models."""

from accord.evaluation._abstaining import Curve, precision_curve, threshold_for
from accord.evaluation._agreement import JointGain, joint_gain
from accord.evaluation._answers import EDGE, NODE, Answers
from accord.evaluation._calibrating import calibrate, fit_calibration
from accord.evaluation._calibration import CALIBRATION_BINS, Reliability, expected_calibration_error, reliability
from accord.evaluation._cases import Case, choose_cases
from accord.evaluation._departure import Usual, most_departures, usual_departure
from accord.evaluation._diagnostics import (
    Diagnosis,
    DiagnosisSummary,
    join_diagnoses,
    lift_of_labels,
    pair_probabilities,
)
from accord.evaluation._entities import EntityScores, entities, entity_scores
from accord.evaluation._explanation import (
    Contributions,
    EvidencePath,
    contributions,
    strongest_paths,
    without_edges,
)
from accord.evaluation._levels import (
    LEVELS,
    check_level,
    level_score,
    macro_auc,
    macro_f1,
    mean_log_likelihood,
    needs_probabilities,
    pooled_score,
)
from accord.evaluation._metrics import (
    edge_accuracy,
    graph_accuracy,
    graph_edge_accuracy,
    micro_f1,
    node_accuracy,
    node_ids,
    seen_nodes,
    unseen_nodes,
)
from accord.evaluation._paired import Judged, is_better, score_gain
from accord.evaluation._scores import Scores, score_answers

__all__ = [
    "CALIBRATION_BINS",
    "EDGE",
    "LEVELS",
    "NODE",
    "Answers",
    "Case",
    "Contributions",
    "Curve",
    "Diagnosis",
    "DiagnosisSummary",
    "EntityScores",
    "EvidencePath",
    "JointGain",
    "Judged",
    "Reliability",
    "Scores",
    "Usual",
    "calibrate",
    "check_level",
    "choose_cases",
    "contributions",
    "edge_accuracy",
    "entities",
    "entity_scores",
    "expected_calibration_error",
    "fit_calibration",
    "graph_accuracy",
    "graph_edge_accuracy",
    "is_better",
    "join_diagnoses",
    "joint_gain",
    "level_score",
    "lift_of_labels",
    "macro_auc",
    "macro_f1",
    "mean_log_likelihood",
    "micro_f1",
    "most_departures",
    "needs_probabilities",
    "node_accuracy",
    "node_ids",
    "pair_probabilities",
    "pooled_score",
    "precision_curve",
    "reliability",
    "score_answers",
    "score_gain",
    "seen_nodes",
    "strongest_paths",
    "threshold_for",
    "unseen_nodes",
    "usual_departure",
    "without_edges",
]
