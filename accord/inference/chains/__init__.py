"""Chains: exact forward-backward, Viterbi, the k best labellings, and samples."""

from accord.inference.chains._beliefs import ChainBeliefs, solve_chains

__all__ = ["ChainBeliefs", "solve_chains"]
