"""Text files of numbers: read at once, and then taken piece by piece, with the line of each number for messages."""

import gzip
import io
import os
import re
import stat
import warnings
import zlib
from pathlib import Path

import numpy as np
import torch

from accord.errors import DataNotFoundError, FieldError, InputTypeError
from accord.graphs._checks import check_room

GZIP = b"\x1f\x8b"  # first bytes of a gzip file
BOM = b"\xef\xbb\xbf"  # some editors put it before UTF-8 text
CHUNK = 2**24  # bytes that are decompressed at a time
GROWTH = 8  # a number of two bytes of text takes 8 as float64, and two copies of the text are made
EXACT = 2.0**53  # float64 holds every whole number up to here
SHOWN = 40  # characters of the file in a message
BLANK = np.isin(np.arange(256), [*b" \t\n\v\f\r"])
COMMENT = re.compile(rb"#[^\n]*")
NUMBER = re.compile(rb"[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?|[+-]?(?:nan|inf|infinity)", re.IGNORECASE)


class Numbers:
    """The numbers of a file, in order.

    Args:
        path: the file, for messages.
        text: its content.
        headers: the words of which one begins the file; none where it begins with a number.
    """

    def __init__(self, path: Path, text: bytes, headers: tuple[str, ...] = ()) -> None:
        self.path = path
        self.text = COMMENT.sub(b"", text) if b"#" in text else text
        self.header = self._take_header(headers) if headers else ""
        self.values = self._parse()
        self.at = 0  # the next number

    def _take_header(self, headers: tuple[str, ...]) -> str:
        found = re.match(rb"\s*(\S*)", self.text)
        assert found is not None  # the pattern matches any text
        word = found[1].decode("ascii", "backslashreplace").upper()
        if word not in headers:
            begin = f"begins with {word[:SHOWN]!r}" if word else "is empty"
            raise FieldError(
                f"{self.path}: {begin}, but the first word must be {' or '.join(headers)}. Check that it is a file of "
                "this format."
            )
        lines = found[0].count(b"\n")
        self.text = b"\n" * lines + self.text[found.end() :]  # keeps the numbers of the lines
        return word

    def _parse(self) -> np.ndarray:
        codes = np.frombuffer(self.text, np.uint8)
        begins = ~BLANK[codes]
        begins[1:] &= BLANK[codes[:-1]]
        count = int(begins.sum())
        with warnings.catch_warnings():
            # numpy warns, or in later versions raises, where text is not a number. It also reads "1-2" as two numbers.
            warnings.simplefilter("ignore", DeprecationWarning)
            try:
                values = np.fromstring(self.text, dtype=np.float64, sep=" ") if count else np.empty(0)
            except ValueError:
                values = np.empty(0)
        if len(values) != count:
            raise self._no_number()
        bad = np.flatnonzero(~np.isfinite(values))
        if len(bad):
            raise self.error(
                int(bad[0]), f"holds {self._word(int(bad[0]))}, which is no finite number. Correct the table."
            )
        return values

    def _no_number(self) -> FieldError:
        for place, found in enumerate(re.finditer(rb"\S+", self.text)):
            if not NUMBER.fullmatch(found[0]):
                word = found[0].decode("ascii", "backslashreplace")
                return self.error(
                    place, f"holds {word[:SHOWN]!r} where a number is needed. Check that the file is not damaged."
                )
        return FieldError(f"{self.path}: holds text that is no number. Check that the file is not damaged.")

    def _word(self, place: int) -> str:
        """The text of a number."""
        return self.text.split(None, place + 1)[place].decode("ascii", "backslashreplace")[:SHOWN]

    def error(self, place: int, problem: str) -> FieldError:
        """What is wrong with a number, with its line."""
        found = next(match for at, match in enumerate(re.finditer(rb"\S+", self.text)) if at == place)
        line = 1 + self.text.count(b"\n", 0, found.start())
        return FieldError(f"{self.path}, line {line}: {problem}")

    def cut_off(self, what: str) -> FieldError:
        """The file ends before something that should follow."""
        return FieldError(
            f"{self.path}: ends after {len(self.values)} numbers, before {what}. The file is cut off or its counts are "
            "wrong: copy or write it again."
        )

    @property
    def left(self) -> int:
        """How many numbers were not taken yet."""
        return len(self.values) - self.at

    def count(self, what: str) -> int:
        """Take a whole number."""
        return int(self.counts(1, what)[0])

    def counts(self, size: int, what: str) -> np.ndarray:
        """Take whole numbers [size], from 0."""
        if size > self.left:
            raise self.cut_off(what)
        self.at += size
        return self.whole(self.at - size, self.at, what)

    def whole(self, begin: int, end: int, what: str) -> np.ndarray:
        """Numbers of a range as int64; refused if one is negative, not whole, or too large for a count."""
        values = self.values[begin:end]
        bad = np.flatnonzero((values < 0) | (values != np.floor(values)) | (values > EXACT))
        if len(bad):
            raise self.error(
                begin + int(bad[0]),
                f"holds {values[bad[0]]:.12g}, but a whole number from 0 is needed: {what}. Correct it.",
            )
        return values.astype(np.int64)

    def finish(self) -> None:
        """Refuse numbers after the last one that belongs to the format."""
        if self.left:
            raise self.error(
                self.at, f"{self.left} numbers follow the last one that was expected. Check the counts before them."
            )


def read_numbers(path: str | os.PathLike[str], headers: tuple[str, ...] = ()) -> Numbers:
    """Read a text file of numbers, compressed or not.

    Args:
        path: the file; one that ends in .gz must be compressed.
        headers: the words of which one begins the file.

    Raises:
        DataNotFoundError: there is no such file.
        FieldError: it cannot be read.
        TooLargeError: its numbers do not fit into memory.
    """
    place = as_path(path)
    try:
        status = place.stat()
    except FileNotFoundError:
        raise DataNotFoundError(f"{place}: no such file. Check the path.") from None
    if not stat.S_ISREG(status.st_mode):
        raise FieldError(f"{place}: is not a regular file. Give the path of a file.")
    _check_size(place, status.st_size)
    content = place.read_bytes()
    packed = content.startswith(GZIP)
    if place.suffix == ".gz" and not packed:
        raise FieldError(f"{place}: is not compressed with gzip. Remove .gz from its name, or compress it.")
    text = _decompressed(place, content) if packed else content
    _check_size(place, len(text))
    return Numbers(place, text.removeprefix(BOM), headers)


def as_path(path: object) -> Path:
    """A path given as text or as a path."""
    if not isinstance(path, (str, os.PathLike)):
        raise InputTypeError(f"path: is a {type(path).__name__}, not the name of a file. Give text or a Path.")
    text = os.fspath(path)
    if isinstance(text, bytes) or "\0" in text:
        raise InputTypeError("path: is bytes or holds a NUL character. Give it as text without one.")
    return Path(text)


def _decompressed(path: Path, content: bytes) -> bytes:
    pieces, size = [], 0
    try:
        with gzip.GzipFile(fileobj=io.BytesIO(content)) as file:
            while piece := file.read(CHUNK):
                size += len(piece)
                _check_size(path, size)
                pieces.append(piece)
    except (OSError, EOFError, zlib.error) as error:
        raise FieldError(f"{path}: cannot be decompressed ({error}). The file is damaged: copy it again.") from error
    return b"".join(pieces)


def _check_size(path: Path, size: int) -> None:
    check_room(str(path), "its numbers", GROWTH * size, torch.device("cpu"))
