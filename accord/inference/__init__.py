"""Solving fields: belief propagation, exact inference, decoding and sampling."""

from accord.inference._appearance import spanning_tree_probabilities
from accord.inference._beliefs import Beliefs
from accord.inference._options import Schedule, Semiring
from accord.inference._prepared import Propagation
from accord.inference._propagate import propagate
from accord.inference._trace import trace
from accord.inference.chains import ChainBeliefs, k_best
from accord.inference.decoding._feasibility import find_labels, possible_states
from accord.inference.exact import ExactBeliefs, eliminate_beliefs, enumerate_beliefs
from accord.inference.sampling._sampling import sample_exact, sample_gibbs
from accord.inference.search import Maximum, maximise

__all__ = [
    "Beliefs",
    "ChainBeliefs",
    "ExactBeliefs",
    "Maximum",
    "Propagation",
    "Schedule",
    "Semiring",
    "eliminate_beliefs",
    "enumerate_beliefs",
    "find_labels",
    "k_best",
    "maximise",
    "possible_states",
    "propagate",
    "sample_exact",
    "sample_gibbs",
    "spanning_tree_probabilities",
    "trace",
]
