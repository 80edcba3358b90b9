"""What encoders of sequences share: words or features as input, a linear map at the end, scores of the ends."""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from accord.encoders._encoder import Encoder, EncoderSpec
from accord.encoders.replica import Noise, ReplicaLinear, constant_weights
from accord.encoders.sequences._words import WordInputs, Words
from accord.errors import GraphError, InputTypeError, OptionError
from accord.graphs import GraphBatch
from accord.graphs.sequences import SequenceLayout, sequence_layout


@dataclass(frozen=True)
class SequenceSpec(EncoderSpec, ABC):
    """Specification of an encoder of sequences; nodes are a path in node order.

    Args:
        hidden: channels of each layer.
        layers: number of layers.
        dropout: after each layer.
        input_dropout: on the features, or on the vectors of words.
        ends: add scores to the outputs of the first and of the last node: start and end scores of a chain.
        words: the first columns of the features are ids of words and characters; None for ordinary features. A
            `NodeClassifier` with features "words" sets it.
    """

    hidden: int = 100
    layers: int = 1
    dropout: float = 0.5
    input_dropout: float = 0.3
    ends: bool = False
    words: Words | None = None

    def __post_init__(self) -> None:
        if isinstance(self.words, Mapping):  # as JSON has it
            object.__setattr__(self, "words", Words.from_config(self.words))
        if self.words is not None and not isinstance(self.words, Words):
            raise InputTypeError(f"{type(self).__name__}: words is a {type(self.words).__name__}, not Words or None.")
        if not isinstance(self.ends, bool):
            raise OptionError(f"{type(self).__name__}: ends={self.ends!r}; True or False is needed.")
        super().__post_init__()

    def to_config(self) -> dict[str, Any]:
        """The kind and all options as plain JSON values."""
        config = super().to_config()
        return config | {"words": None if self.words is None else self.words.to_config()}

    @abstractmethod
    def body(self, in_channels: int, seeds: Sequence[int]) -> "SequenceBody":
        """The layers."""

    def build(self, in_channels: int, out_channels: int, seeds: Sequence[int]) -> "SequenceEncoder":
        """Build an encoder with one replica per seed."""
        return SequenceEncoder(self, in_channels, out_channels, seeds)


class SequenceBody(nn.Module, ABC):
    """Layers that read a sequence."""

    out_channels: int

    @abstractmethod
    def forward(self, h: Tensor, layout: SequenceLayout, noise: Noise | None) -> Tensor:
        """[nodes, replicas, channels] -> [nodes, replicas, out_channels].

        Args:
            h: the input.
            layout: where the nodes stand.
            noise: randomness of a training step; None for evaluation.
        """


class SequenceEncoder(Encoder):
    """Words or features -> dropout -> layers -> linear map (+ scores of the ends)."""

    def __init__(self, spec: SequenceSpec, in_channels: int, out_channels: int, seeds: Sequence[int]) -> None:
        super().__init__(in_channels, out_channels, len(seeds))
        self.spec = spec
        words, width = spec.words, in_channels
        if words is not None:
            if in_channels < words.columns:
                raise GraphError(
                    f"{type(spec).__name__}: the graphs have {in_channels} features a node, but words take "
                    f"{words.columns} columns of ids. Use features='words' and graphs with tokens."
                )
            width = in_channels - words.columns + words.out_channels
        self.inputs = None if words is None else WordInputs(words, seeds)
        self.body = spec.body(width, seeds)
        self.head = ReplicaLinear(self.body.out_channels, out_channels, seeds, "head")
        self.ends = constant_weights(seeds, (2, out_channels), 0.0) if spec.ends else None

    def encode(self, batch: GraphBatch, noise: Noise | None) -> Tensor:
        """Run the layers."""
        layout = sequence_layout(batch.topology, type(self.spec).__name__)
        if self.inputs is None:
            h = batch.x[:, None].expand(-1, self.num_replicas, -1)
        else:
            h = self.inputs(batch, noise)
        h = h if noise is None else noise.dropout(h, self.spec.input_dropout, 0)
        scores: Tensor = self.head(self.body(h, layout, noise))
        if self.ends is None:
            return scores
        start, end = (torch.zeros_like(scores[..., :1]) for _ in range(2))
        start[layout.first], end[layout.last] = 1.0, 1.0
        return scores + start * self.ends[:, 0] + end * self.ends[:, 1]
