"""Exact inference: enumeration of all labellings, and elimination on a tree of cliques."""

from accord.inference.exact._beliefs import ExactBeliefs
from accord.inference.exact._elimination import MAX_TABLE, MAX_TABLES, draw_labels, eliminate_beliefs
from accord.inference.exact._enumeration import enumerate_beliefs

__all__ = ["MAX_TABLE", "MAX_TABLES", "ExactBeliefs", "draw_labels", "eliminate_beliefs", "enumerate_beliefs"]
