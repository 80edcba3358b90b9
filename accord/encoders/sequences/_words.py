"""Words as input of an encoder: a vector for each word, and a convolution over its characters."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

from accord.encoders._spec import Spec
from accord.encoders.replica import Noise, constant_weights
from accord.encoders.replica._initial import uniform_weights
from accord.errors import OptionError
from accord.graphs import GraphBatch

WORD_DROPOUT_LAYER = 900  # number of this dropout in the noise, above those of other dropout in encoders
WINDOW = 3  # characters that the convolution reads at once
CHARACTER_BOUND = 0.25  # of the initial weights of characters


@dataclass(frozen=True)
class Words(Spec):
    """Sizes of a vocabulary (`accord.graphs.sequences.Vocabulary`), and what each word and character becomes.

    Args:
        words: ids of words whose vectors are trained: 0, the unknown word, and the training words.
        fixed_words: ids that follow, of words whose vectors are not trained.
        channels: of the vector of a word.
        characters: ids of characters; 0 for none.
        width: characters of a word.
        character_channels: outputs of the convolution over characters.
        word_dropout: probability that a word counts as unknown in a training step.
        vectors: initial vectors [words + fixed_words, channels]; None draws them. They are not part of the
            configuration: a trained model has its own.
    """

    kind = "words"
    words: int = 1
    fixed_words: int = 0
    channels: int = 100
    characters: int = 0
    width: int = 0
    character_channels: int = 0
    word_dropout: float = 0.0
    vectors: Tensor | None = field(default=None, compare=False, repr=False)

    def __post_init__(self) -> None:
        super().__post_init__()
        least = {"words": 1, "channels": 1}
        for name in ("words", "fixed_words", "channels", "characters", "width", "character_channels"):
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, int) or value < least.get(name, 0):
                raise OptionError(f"Words: {name}={value!r}; a whole number from {least.get(name, 0)} up is needed.")
        if not 0.0 <= self.word_dropout < 1.0:
            raise OptionError(f"Words: word_dropout={self.word_dropout!r}; it must lie in [0, 1).")
        if self.vectors is not None and list(self.vectors.shape) != [self.words + self.fixed_words, self.channels]:
            raise OptionError(f"Words: vectors has shape {list(self.vectors.shape)}; one row for each word is needed.")

    def to_config(self) -> dict[str, Any]:
        """The kind and all sizes as plain JSON values."""
        return {name: value for name, value in super().to_config().items() if name != "vectors"}

    @property
    def columns(self) -> int:
        """Columns of ids among the features."""
        return 1 + self.width

    @property
    def out_channels(self) -> int:
        """Channels of a word and its characters together."""
        return self.channels + (self.character_channels if self.width else 0)


class WordInputs(nn.Module):
    """Vectors of words and characters for each replica; further features of a node follow them."""

    def __init__(self, spec: Words, seeds: Sequence[int]) -> None:
        super().__init__()
        self.spec = spec
        bound = (3.0 / spec.channels) ** 0.5  # variance 1 / channels
        self.word = uniform_weights(seeds, "words.word", (spec.words, spec.channels), bound)
        fixed = torch.zeros(len(seeds), spec.fixed_words, spec.channels)
        if spec.vectors is not None:
            with torch.no_grad():
                given = spec.vectors[: spec.words].to(self.word)
                has_vector = ~given.isnan().any(-1)
                self.word[:, has_vector] = given[has_vector]
                fixed = fixed + spec.vectors[spec.words :].to(fixed)
        self.register_buffer("fixed", fixed)
        if spec.width:
            shape = (WINDOW * spec.characters, spec.character_channels)
            # The product of a character's vector and the kernel is one row for each place in the window.
            self.character = uniform_weights(seeds, "words.character", shape, CHARACTER_BOUND)
            self.character_bias = constant_weights(seeds, (spec.character_channels,), 0.0)

    def forward(self, batch: GraphBatch, noise: Noise | None) -> Tensor:
        """[nodes, replicas, out_channels], then the features after the ids."""
        spec = self.spec
        word = batch.cached("words", lambda: batch.x[:, 0].long())
        keep = None
        if noise is not None and spec.word_dropout:
            keep = noise.keep(len(word), 1, spec.word_dropout, WORD_DROPOUT_LAYER)[0][..., 0].bool()
        parts = []
        for replica in range(len(self.word)):
            own = word if keep is None else word * keep[:, replica]
            table = self.word[replica]
            vectors = functional.embedding(own.clamp_max(spec.words - 1), table)
            if spec.fixed_words:
                fixed = self.get_buffer("fixed")[replica]
                other = functional.embedding((own - spec.words).clamp_min(0), fixed)
                vectors = torch.where((own >= spec.words)[:, None], other, vectors)
            parts.append(torch.cat([vectors, self._characters(batch, replica)], 1) if spec.width else vectors)
        h = torch.stack(parts, 1)
        rest = batch.x[:, spec.columns :]
        return torch.cat([h, rest[:, None].expand(-1, h.shape[1], -1).to(h.dtype)], -1) if rest.shape[1] else h

    def _characters(self, batch: GraphBatch, replica: int) -> Tensor:
        """The largest outputs of the convolution over the characters of each word [nodes, character_channels]."""
        spec = self.spec
        windows, empty, place = batch.cached(("windows", spec), lambda: _windows(batch.x, spec))
        rows = functional.embedding_bag(windows, self.character[replica], mode="sum") + self.character_bias[replica]
        rows = rows.view(-1, spec.width, spec.character_channels).masked_fill(empty, -torch.inf)
        return torch.relu(rows.amax(1)).index_select(0, place)


def _windows(x: Tensor, spec: Words) -> tuple[Tensor, Tensor, Tensor]:
    """Rows of the weights that each window reads [spellings x width, 3], and the windows behind the end of a word.

    Words that are spelt alike are read once; the last tensor is the spelling of each node.
    """
    spelt, place = x[:, 1 : spec.columns].long().unique(dim=0, return_inverse=True)
    beside = functional.pad(spelt, (1, 1))
    ids = torch.stack([beside[:, step : step + spec.width] for step in range(WINDOW)], -1)
    rows = ids + spec.characters * torch.arange(WINDOW, device=x.device)
    empty = spelt == 0
    empty[:, 0] = False  # an empty word has one empty window
    return rows.view(-1, WINDOW), empty[..., None], place
