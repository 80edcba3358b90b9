"""Sequences of words: path graphs with tokens, the vocabulary that turns them into ids, and vectors of words."""

from accord.graphs.words._paths import as_sequence, has_tokens, path_edges
from accord.graphs.words._vectors import WordOptions, WordVectors, read_word_vectors
from accord.graphs.words._vocabulary import Vocabulary, fit_vocabulary

__all__ = [
    "Vocabulary",
    "WordOptions",
    "WordVectors",
    "as_sequence",
    "fit_vocabulary",
    "has_tokens",
    "path_edges",
    "read_word_vectors",
]
