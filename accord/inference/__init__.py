"""Solving fields: belief propagation, exact inference, decoding and sampling."""

from accord.inference._appearance import spanning_tree_probabilities
from accord.inference._beliefs import Beliefs, ExactBeliefs
from accord.inference._enumeration import enumerate_beliefs
from accord.inference._options import PropagationOptions
from accord.inference._propagate import propagate

__all__ = [
    "Beliefs",
    "ExactBeliefs",
    "PropagationOptions",
    "enumerate_beliefs",
    "propagate",
    "spanning_tree_probabilities",
]
