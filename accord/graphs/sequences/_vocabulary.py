"""The vocabulary of a model: words and characters as whole numbers, in the first columns of the features.

Ids are stored as floats, like all features. They are exact: there are far fewer than 2^24 words.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import torch
from torch import Tensor
from torch_geometric.data import Data

from accord.errors import GraphError, InputError
from accord.graphs._masks import TRAIN_MASK
from accord.graphs.sequences._paths import TOKENS, check_tokens
from accord.graphs.sequences._vectors import WordOptions

UNKNOWN_WORD = 0  # id
NO_CHARACTER, UNKNOWN_CHARACTER, FIRST_CHARACTER = 0, 1, 2
MOST_CHARACTERS = 20  # of a word; of longer words the first and the last ones count


@dataclass(frozen=True)
class Vocabulary:
    """Words with ids from 1 up: first those whose vectors are trained, then those whose given vectors stay."""

    words: tuple[str, ...]
    more_words: tuple[str, ...] = ()
    characters: str = ""
    width: int = 0  # characters of a word that count; 0 leaves characters out
    lower: bool = True

    @property
    def columns(self) -> int:
        """Columns that ids take: the word, and its characters."""
        return 1 + self.width

    @cached_property
    def _word_ids(self) -> dict[str, int]:
        return {word: number for number, word in enumerate((*self.words, *self.more_words), 1)}

    @cached_property
    def _character_ids(self) -> dict[str, int]:
        return {character: number for number, character in enumerate(self.characters, FIRST_CHARACTER)}

    def known(self, token: str) -> bool:
        """Whether a word has an id of its own."""
        return _form(token, self.lower) in self._word_ids

    def encode(self, tokens: Sequence[str]) -> Tensor:
        """Ids [tokens, columns], as floats."""
        words = [[self._word_ids.get(_form(token, self.lower), UNKNOWN_WORD)] for token in tokens]
        spelt = [self._spell(token) for token in tokens]
        rows = [word + characters for word, characters in zip(words, spelt, strict=True)]
        return torch.tensor(rows, dtype=torch.float32).reshape(len(rows), self.columns)

    def _spell(self, token: str) -> list[int]:
        ids = [self._character_ids.get(character, UNKNOWN_CHARACTER) for character in token]
        if len(ids) > self.width:
            first = (self.width + 1) // 2
            ids = ids[:first] + ids[len(ids) - (self.width - first) :]
        return ids + [NO_CHARACTER] * (self.width - len(ids))

    def apply(self, graph: Data) -> Tensor:
        """Ids of a graph's tokens, followed by its features."""
        if graph.get(TOKENS) is None:
            raise GraphError(
                "features 'words': the graph has no tokens. Set data.tokens to a list of strings, one for each node."
            )
        tokens = check_tokens(graph[TOKENS], "features 'words'")
        if len(tokens) != len(graph.x):
            raise GraphError(f"features 'words': there are {len(tokens)} tokens for {len(graph.x)} nodes.")
        return torch.cat([self.encode(tokens).to(graph.x), graph.x], 1)

    def to_config(self) -> dict[str, Any]:
        """Plain values for JSON."""
        words, more = "\n".join(self.words), "\n".join(self.more_words)
        kept = {"characters": self.characters, "width": self.width, "lower": self.lower}
        return {"words": words, "more_words": more, **kept}

    @classmethod
    def from_config(cls, config: Mapping[str, Any]) -> "Vocabulary":
        """Read what `to_config` wrote."""
        words, more = (tuple(config[name].split("\n")) if config[name] else () for name in ("words", "more_words"))
        width, characters = config["width"], config["characters"]
        if not isinstance(width, int) or not 0 <= width <= MOST_CHARACTERS or not isinstance(characters, str):
            raise InputError(f"The saved vocabulary has width {width!r}; 0 to {MOST_CHARACTERS} is possible.")
        return cls(words, more, characters, width, bool(config["lower"]))


def fit_vocabulary(train: Sequence[Data], options: WordOptions, known: Sequence[str] = ()) -> Vocabulary:
    """The words and characters of training graphs, and words that have vectors.

    Args:
        train: graphs with tokens; of a graph with a `train_mask`, the tokens in it count.
        options: how words are read.
        known: words that have vectors.
    """
    tokens = Counter(token for number, graph in enumerate(train) for token in _training_tokens(graph, number))
    counts: Counter[str] = Counter()
    for token, count in tokens.items():
        counts[_form(token, options.lower)] += count
    have = {word for word in known if "\n" not in word}
    trained = counts.keys() if options.tune else counts.keys() - have  # the other vectors stay as they are
    words = sorted(word for word in trained if counts[word] >= options.min_count or word in have)
    more = sorted(have - trained)
    spelt = bool(options.character_channels)
    characters = "".join(sorted(set().union(*tokens))) if spelt and tokens else ""
    width = min(max(map(len, tokens), default=1), MOST_CHARACTERS) if spelt else 0
    return Vocabulary(tuple(words), tuple(more), characters, width, options.lower)


def _training_tokens(graph: Data, number: int) -> list[str]:
    if graph.get(TOKENS) is None:
        raise GraphError(
            f"features 'words': training graph {number} has no tokens. Set data.tokens to a list of strings, one for "
            "each node."
        )
    tokens, mask = list(graph[TOKENS]), graph.get(TRAIN_MASK)
    return tokens if mask is None else [token for token, counts in zip(tokens, mask.tolist(), strict=True) if counts]


def _form(token: str, lower: bool) -> str:
    """How a word is looked up; newlines separate words in files."""
    word = token.replace("\n", " ")
    return word.lower() if lower else word
