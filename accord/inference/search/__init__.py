"""The labelling with the highest score, and an upper bound that says how good it is."""

from accord.inference.search._allowed import search_allowed
from accord.inference.search._decode import decode_factors
from accord.inference.search._maximise import Maximum, maximise
from accord.inference.search._undecided import search_undecided

__all__ = ["Maximum", "decode_factors", "maximise", "search_allowed", "search_undecided"]
