"""Forests: log-partition, its gradient, and the best labels, by compiled passes between leaves and roots."""

from accord.inference.trees._native import best_labels
from accord.inference.trees._pairs import Pairs
from accord.inference.trees._partition import log_partition

__all__ = ["Pairs", "best_labels", "log_partition"]
