"""Sequences: path graphs in node order, where their nodes stand, their words as ids, and vectors of words."""

from typing import TYPE_CHECKING

from accord._lazy import lazy_names

if TYPE_CHECKING:
    from accord.graphs.sequences._layout import SequenceLayout, path_layout, sequence_layout
    from accord.graphs.sequences._paths import as_sequence, has_tokens, path_edges
    from accord.graphs.sequences._vectors import WordOptions, WordVectors, read_word_vectors
    from accord.graphs.sequences._vocabulary import Vocabulary, fit_vocabulary

__all__ = [
    "SequenceLayout",
    "Vocabulary",
    "WordOptions",
    "WordVectors",
    "as_sequence",
    "fit_vocabulary",
    "has_tokens",
    "path_edges",
    "path_layout",
    "read_word_vectors",
    "sequence_layout",
]

# Fields need the layout, and are solved without loading PyG.
__getattr__, __dir__ = lazy_names(
    __name__,
    {
        "_layout": ["SequenceLayout", "path_layout", "sequence_layout"],
        "_paths": ["as_sequence", "has_tokens", "path_edges"],
        "_vectors": ["WordOptions", "WordVectors", "read_word_vectors"],
        "_vocabulary": ["Vocabulary", "fit_vocabulary"],
    },
)
