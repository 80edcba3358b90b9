"""Chains: exact forward-backward, Viterbi, the k best labellings, and samples."""

from accord.inference.chains._beliefs import ChainBeliefs, solve_chains
from accord.inference.chains._best import k_best
from accord.inference.chains._draws import sample_chains
from accord.inference.chains._paths import path_labels, path_likelihood

__all__ = ["ChainBeliefs", "k_best", "path_labels", "path_likelihood", "sample_chains", "solve_chains"]
