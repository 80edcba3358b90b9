"""The labelling with the highest score, and an upper bound that says how good it is."""

from accord.inference.search._maximise import Maximum, maximise

__all__ = ["Maximum", "maximise"]
