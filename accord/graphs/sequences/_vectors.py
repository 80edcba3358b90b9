"""Vectors of words from a file, and options that say how words are read."""

import zipfile
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from accord.errors import DataNotFoundError, InputError, InputTypeError, OptionError


@dataclass(frozen=True, kw_only=True)
class WordOptions:
    """How a model reads `Data.tokens`.

    Args:
        vectors: an `.npz` with `words` (utf-8 bytes, joined by newlines, or an array of strings) and `vectors`
            [words, channels]; None starts from random vectors.
        tune: train the vectors of training words further. Vectors of other words in the file stay as they are.
        channels: of the vector of a word; None takes 100, or those of the file.
        character_channels: what a convolution over the characters of a word gives; 0 leaves characters out.
        word_dropout: probability that a word counts as unknown in a training step, so that unknown words are learned.
        min_count: training words that occur less often, and have no vector, count as unknown.
        lower: words that differ in case only have one vector. Characters always keep their case.
    """

    vectors: str | Path | None = None
    tune: bool = True
    channels: int | None = None
    character_channels: int = 30
    word_dropout: float = 0.05
    min_count: int = 1
    lower: bool = True

    def __post_init__(self) -> None:
        if self.vectors is not None and not isinstance(self.vectors, (str, Path)):
            raise InputTypeError(
                f"WordOptions: vectors is a {type(self.vectors).__name__}, not the path of an .npz file."
            )
        for name in ("tune", "lower"):
            if not isinstance(getattr(self, name), bool):
                raise InputTypeError(f"WordOptions: {name} is {getattr(self, name)!r}; True or False is needed.")
        for name, least in (("channels", 1), ("character_channels", 0), ("min_count", 1)):
            value = getattr(self, name)
            if value is None and name == "channels":
                continue
            if isinstance(value, bool) or not isinstance(value, int) or value < least:
                raise OptionError(f"WordOptions: {name} is {value!r}; a whole number from {least} up is needed.")
        if not isinstance(self.word_dropout, (int, float)) or not 0 <= self.word_dropout < 1:
            raise OptionError(f"WordOptions: word_dropout is {self.word_dropout!r}; it must lie in [0, 1).")


@dataclass(frozen=True, eq=False)
class WordVectors:
    """Words and their vectors."""

    words: tuple[str, ...]
    vectors: Tensor  # [words, channels], float32


def read_word_vectors(path: str | Path) -> WordVectors:
    """Read an `.npz` with `words` and `vectors`; see `WordOptions`."""
    path = Path(path)
    if not path.is_file():
        raise DataNotFoundError(f"{path}: there is no such file. Give an .npz with the arrays words and vectors.")
    try:
        with path.open("rb") as file, np.load(file, allow_pickle=False) as archive:
            given, vectors = archive["words"], archive["vectors"]
    except (LookupError, ValueError, OSError, EOFError, zipfile.BadZipFile) as error:
        raise InputError(
            f"{path}: word vectors cannot be read ({error}). Give an .npz with the arrays words and vectors."
        ) from error
    if given.dtype.kind == "U":
        words = tuple(given.tolist())
    else:
        words = tuple(given.tobytes().decode("utf-8", errors="replace").split("\n"))
    if vectors.ndim != 2 or vectors.dtype.kind != "f" or len(vectors) != len(words) or not vectors.shape[1]:
        raise InputError(
            f"{path}: vectors is {vectors.dtype} {list(vectors.shape)} for {len(words)} words; floats [words, "
            "channels] are needed."
        )
    table = torch.from_numpy(vectors.astype(np.float32))
    if not bool(table.isfinite().all()):
        raise InputError(f"{path}: vectors holds a NaN or infinity. Remove these words.")
    return WordVectors(words, table)
