"""Encoders of sequences: path graphs in node order, with features or words at the nodes."""

from accord.encoders.sequences._convolution import Convolution
from accord.encoders.sequences._encoder import SequenceSpec
from accord.encoders.sequences._recurrent import BiGRU, BiLSTM
from accord.encoders.sequences._transformer import Transformer
from accord.encoders.sequences._words import WordInputs, Words

__all__ = [
    "BiGRU",
    "BiLSTM",
    "Convolution",
    "SequenceSpec",
    "Transformer",
    "WordInputs",
    "Words",
]
