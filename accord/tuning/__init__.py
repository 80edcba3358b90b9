"""Tuning: networks trained apart and judged on validation data, and searches over their settings."""

from accord.tuning._parts import TrainedPart, combine_parts, train_edge_part, train_node_part

__all__ = ["TrainedPart", "combine_parts", "train_edge_part", "train_node_part"]
