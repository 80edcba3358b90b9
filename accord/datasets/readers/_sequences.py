"""Files of tagged sentences: a word and its label on each line, an empty line after each sentence.

`.conll` has columns separated by tabs or spaces, `.tsv` by tabs; the first column is the word, the last one the label.
A single column has no labels. `.conllu` is Universal Dependencies: word and UPOS. All may be compressed (`.gz`).
"""

import gzip
import io
import zlib
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np

from accord._files import replacing, write_text
from accord.datasets._sources import check_text_file
from accord.datasets.readers._raw import RawGraph
from accord.errors import GraphError, InputTypeError
from accord.field import bio_transitions
from accord.field._transitions import is_bio
from accord.graphs.sequences import path_edges

SUFFIXES = (".conll", ".conllu", ".tsv")
DOCUMENT = "-DOCSTART-"  # begins a document in CoNLL files; it is no word
UNIVERSAL = (1, 3)  # columns of word and UPOS in .conllu
MISSING = "_"  # a missing label
Row = tuple[int, list[str]]  # line in the file, cells


def sequence_suffix(path: Path) -> str | None:
    """The form of a file of sentences, by its name; None for other files."""
    suffix = Path(path.name.removesuffix(".gz")).suffix
    return suffix if suffix in SUFFIXES else None


def raw_sentences(path: Path, label_column: int | None = None, checked: bool = True) -> list[RawGraph]:
    """Read a file of sentences, each as a path graph with tokens.

    Args:
        path: the file.
        label_column: number of the column with the labels, from 0; None takes the last one (UPOS in .conllu).
        checked: refuse labels of the BIO scheme that break its rule.
    """
    check_text_file(path)
    form = sequence_suffix(path)
    if label_column is not None and (isinstance(label_column, bool) or not isinstance(label_column, int)):
        raise InputTypeError(f"read_sentences: label_column is {label_column!r}; a whole number is needed.")
    word, label = UNIVERSAL if form == ".conllu" else (0, -1)
    label = label if label_column is None else label_column
    sentences = [_sentence(path, number, rows, word, label) for number, rows in enumerate(_blocks(path, form), 1)]
    if not sentences:
        raise GraphError(f"{path}: holds no words. Write a word and its label on each line.")
    if checked:
        _check_scheme(sentences)
    return sentences


def _blocks(path: Path, form: str | None) -> Iterator[list[Row]]:
    """Rows of each sentence."""
    rows: list[Row] = []
    remarks: list[Row] = []  # lines before a sentence that start with "# "
    for number, line in enumerate(_lines(path), 1):
        if not line.strip():
            if rows:
                yield rows
            rows, remarks = [], []
            continue
        if line.startswith("#") and form == ".conllu":
            continue
        if line.startswith("# ") and "\t" not in line and not rows:
            remarks.append((number, line.split()))
            continue
        cells = line.split("\t") if form != ".conll" or "\t" in line else line.split()
        if cells[0] == DOCUMENT or (form == ".conllu" and not cells[0].isdecimal()):
            continue
        if rows and len(cells) != len(rows[0][1]):
            raise GraphError(
                f"{path}, line {number}: has {len(cells)} columns, the line before {len(rows[-1][1])}. Give all words "
                "of a sentence the same columns, and put an empty line after each sentence."
            )
        doubtful = next((one for one, remark in remarks if not rows and len(remark) == len(cells)), None)
        if doubtful is not None:
            raise GraphError(
                f"{path}, line {doubtful}: may be a remark, or the word '#' and its label. Remove the remark, or "
                "separate columns by tabs."
            )
        rows.append((number, cells))
    if rows:
        yield rows


def _lines(path: Path) -> Iterator[str]:
    try:
        content = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
        text = content.decode("utf-8-sig")
    except (OSError, EOFError, zlib.error, UnicodeDecodeError) as error:
        raise GraphError(f"{path}: cannot be read as text in utf-8 ({error}). Restore or convert it.") from error
    return (line.rstrip("\r\n") for line in io.StringIO(text))


def _sentence(path: Path, number: int, rows: list[Row], word: int, label: int) -> RawGraph:
    width = len(rows[0][1])
    if word >= width or not -width <= label < width:
        raise GraphError(
            f"{path}, line {rows[0][0]}: has {width} columns, so there is no column {max(word, label)} (from 0). "
            "Correct the file, or give another label_column."
        )
    tokens = [cells[word] for _, cells in rows]
    empty = next((line for (line, _), token in zip(rows, tokens, strict=True) if not token.strip()), None)
    if empty is not None:
        raise GraphError(f"{path}, line {empty}: the word is empty. Write one, or leave out the line.")
    labels = None
    if width > 1:
        labels = np.array(["" if cells[label] == MISSING else cells[label] for _, cells in rows])
    return RawGraph(
        path,
        np.zeros((len(rows), 0), np.float32),
        path_edges(len(rows)).numpy(),
        labels,
        lines=[line for line, _ in rows],
        name=f"{path.name}:{number}",
        tokens=tokens,
    )


def _check_scheme(sentences: Sequence[RawGraph]) -> None:
    """Refuse labels of the BIO scheme that break its rule."""
    names = sorted({str(label) for one in sentences if one.labels is not None for label in one.labels if label})
    if not is_bio(names):
        return
    rule, state = bio_transitions(names), {name: number for number, name in enumerate(names)}
    for one in sentences:
        labels = [] if one.labels is None else one.labels.tolist()
        place = rule.violation([state.get(label, -1) for label in labels])
        if place is not None:
            before = "at the start of a sentence" if place == 0 else f"after {labels[place - 1]}"
            kind = labels[place][2:]
            raise GraphError(
                f"{one.place(place)}: {labels[place]} stands {before}. In the BIO scheme an entity begins with "
                f"B-{kind}. Write that, or convert the file from IOB1."
            )


def write_sentences(sentences: Sequence[tuple[Sequence[str], Sequence[str]]], path: str | Path) -> None:
    """Write sentences as `.conll` or `.tsv`: a word, a tab and its label on each line.

    Args:
        sentences: words and labels of each.
        path: the file; `.gz` compresses it.
    """
    path = Path(path)
    if sequence_suffix(path) not in (".conll", ".tsv"):
        raise GraphError(f"write_sentences: {path}: choose a name that ends in .conll or .tsv, or these with .gz.")
    for tokens, _ in sentences:
        wrong = next((token for token in tokens if not token.strip() or set(token) & set("\t\r\n")), None)
        if wrong is not None:
            raise GraphError(f"write_sentences: {path}: the word {wrong!r} is empty or holds a tab or a line break.")
    blocks = [
        "".join(f"{token}\t{label or MISSING}\n" for token, label in zip(tokens, labels, strict=True))
        for tokens, labels in sentences
    ]
    text = "\n".join(blocks)
    if path.suffix == ".gz":
        with replacing(path) as beside:
            beside.write_bytes(gzip.compress(text.encode("utf-8"), mtime=0))
    else:
        write_text(path, text)
