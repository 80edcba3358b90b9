"""Exact inference: enumeration of all labellings, and elimination on a tree of cliques."""

from accord.inference.exact._beliefs import ExactBeliefs
from accord.inference.exact._elimination import MAX_TABLE, clique_tree, eliminate_beliefs
from accord.inference.exact._enumeration import enumerate_beliefs
from accord.inference.exact._passes import backtrack

__all__ = ["MAX_TABLE", "ExactBeliefs", "backtrack", "clique_tree", "eliminate_beliefs", "enumerate_beliefs"]
