"""Tuning: networks trained apart and judged on validation data, and searches over their settings."""

from accord.tuning._direction import may_be_directed
from accord.tuning._parts import TrainedPart, combine_parts, train_edge_part, train_node_part
from accord.tuning._portfolio import METHODS_WITH_PORTFOLIO, Fitted, Portfolio, fit_portfolio
from accord.tuning._schedule import fit_schedule

__all__ = [
    "METHODS_WITH_PORTFOLIO",
    "Fitted",
    "Portfolio",
    "TrainedPart",
    "combine_parts",
    "fit_portfolio",
    "fit_schedule",
    "may_be_directed",
    "train_edge_part",
    "train_node_part",
]
