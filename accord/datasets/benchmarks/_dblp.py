"""DBLP: papers of eight conferences in three domains, built from the public citation dump as the paper describes.

The paper's own files are not published. `build_dblp` reads the dump `dblp.v12.json` of AMiner (one paper a line, with
`id`, `title`, `year`, `venue.raw`, `references` and the inverted index of its abstract) and vectors in GloVe's text
format, each once and line by line: only papers of the eight conferences, and vectors of their words, are kept.
"""

import gzip
import json
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TextIO

import numpy as np
import torch
from torch_geometric.data import Data

from accord._files import replacing
from accord.datasets.benchmarks._benchmark import Splits
from accord.datasets.benchmarks._files import find_file, read_arrays, search_folders
from accord.errors import DataNotFoundError, GraphError

DBLP_FILE = "dblp.npz"
DOMAINS = ("machine learning", "computer vision", "language")
# Names of the dump and usual abbreviations, without case; each must be the whole name, which leaves workshops out.
VENUES: dict[str, int] = {
    "international conference on machine learning": 0,
    "icml": 0,
    "neural information processing systems": 0,
    "nips": 0,
    "neurips": 0,
    "international conference on computer vision": 1,
    "iccv": 1,
    "computer vision and pattern recognition": 1,
    "cvpr": 1,
    "european conference on computer vision": 1,
    "eccv": 1,
    "meeting of the association for computational linguistics": 2,
    "acl": 2,
    "empirical methods in natural language processing": 2,
    "emnlp": 2,
    "north american chapter of the association for computational linguistics": 2,
    "naacl": 2,
}
LAST_YEARS = {"train": 1999, "val": 2009}  # later ones are test
SPLITS = ("train", "val", "test")
WORD = re.compile(r"[a-z0-9]+")


@dataclass(frozen=True)
class Paper:
    """What is kept of a paper."""

    number: int
    domain: int
    split: str
    references: tuple[int, ...]
    words: Counter[str]  # of title and abstract


def build_dblp(dump: Path, vectors: Path, out: Path) -> Path:
    """Build the data set and write it to a file that `load_benchmark("dblp")` finds in the search folders.

    Args:
        dump: dblp.v12.json, also gzipped.
        vectors: a word and its numbers in each line (glove.6B.100d.txt), also gzipped.
        out: the .npz file to write.
    """
    papers = list(read_papers(dump))
    if {paper.split for paper in papers} != set(SPLITS):
        raise GraphError(
            f"{dump}: has {len(papers)} papers of the eight conferences, and none for some of {', '.join(SPLITS)}. "
            "Give the whole file dblp.v12.json, one paper a line."
        )
    arrays = make_arrays(papers, read_vectors(vectors, {word for paper in papers for word in paper.words}))
    with replacing(out) as beside, beside.open("wb") as file:
        np.savez_compressed(file, **arrays)  # type: ignore[arg-type]
    return out


def read_papers(dump: Path) -> Iterator[Paper]:
    """The papers of the eight conferences, one after another."""
    with _open_text(dump) as file:
        for number, line in enumerate(file, 1):
            text = line.strip().strip(",")  # the lines are items of one large list
            if text in ("", "[", "]"):
                continue
            try:
                entry = json.loads(text)
                paper = _paper(entry)
            except (ValueError, TypeError, LookupError, AttributeError) as error:
                raise GraphError(f"{dump}, line {number}: is not a paper ({error}). Give dblp.v12.json.") from error
            if paper is not None:
                yield paper


def _paper(entry: Mapping[str, Any]) -> Paper | None:
    venue = " ".join(str((entry.get("venue") or {}).get("raw") or "").lower().split())
    year = entry.get("year")
    if venue not in VENUES or not isinstance(year, int):
        return None
    split = next((name for name, last in LAST_YEARS.items() if year <= last), SPLITS[-1])
    words = Counter(WORD.findall(str(entry.get("title") or "").lower()))
    index = (entry.get("indexed_abstract") or {}).get("InvertedIndex") or {}
    for word, places in index.items():
        for piece in WORD.findall(str(word).lower()):
            words[piece] += len(places)
    references = tuple(int(other) for other in entry.get("references") or ())
    return Paper(int(entry["id"]), VENUES[venue], split, references, words)


def read_vectors(path: Path, wanted: set[str]) -> dict[str, np.ndarray]:
    """The vectors of some words; the other lines are skipped."""
    found: dict[str, np.ndarray] = {}
    with _open_text(path) as file:
        for number, line in enumerate(file, 1):
            word, _, rest = line.partition(" ")
            if word not in wanted:
                continue
            try:
                found[word] = np.array(rest.split(), dtype=np.float32)
            except ValueError as error:
                raise GraphError(f"{path}, line {number}: is not a word and its numbers ({error}).") from error
    if not found or len({len(vector) for vector in found.values()}) != 1:
        raise GraphError(f"{path}: has no vectors of one length for the words of the papers. Give glove.6B.100d.txt.")
    return found


def make_arrays(papers: Iterable[Paper], vectors: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Features, labels and arcs of the three graphs; a citation across splits is no edge."""
    size = len(next(iter(vectors.values())))
    arrays: dict[str, np.ndarray] = {}
    listed = {paper.number: paper for paper in papers}  # a paper that is listed twice counts once
    for split in SPLITS:
        own = [paper for paper in listed.values() if paper.split == split]
        place = {paper.number: number for number, paper in enumerate(own)}
        x = np.zeros((len(own), size), np.float32)
        for number, paper in enumerate(own):
            known = {word: count for word, count in paper.words.items() if word in vectors}
            if known:  # otherwise zeros: nothing is known of such a paper
                weights = np.array(list(known.values()), np.float32)
                x[number] = weights @ np.stack([vectors[word] for word in known]) / weights.sum()
        pairs = {
            (min(a, b), max(a, b))
            for paper in own
            for a, b in [(place[paper.number], place.get(other, -1)) for other in paper.references]
            if b >= 0 and a != b
        }
        edges = np.array(sorted(pairs), np.int64).reshape(-1, 2).T
        arrays |= {
            f"{split}_x": x,
            f"{split}_y": np.array([paper.domain for paper in own], np.int64),
            f"{split}_edge_index": np.concatenate([edges, edges[::-1]], 1),
        }
    return arrays


def load_dblp() -> Splits:
    """Read the file that `build_dblp` wrote."""
    path = find_file(DBLP_FILE)
    if path is None:
        folders = ", ".join(str(folder) for folder in search_folders())
        raise DataNotFoundError(
            f"{DBLP_FILE} was not found in {folders}. Build it from AMiner's dblp.v12.json and glove.6B.100d.txt: "
            f"accord data dblp DUMP VECTORS --out FOLDER/{DBLP_FILE}."
        )
    arrays = read_arrays(path, [f"{split}_{name}" for split in SPLITS for name in ("x", "y", "edge_index")])
    graphs = [
        Data(
            x=torch.from_numpy(arrays[f"{split}_x"]).float(),
            y=torch.from_numpy(arrays[f"{split}_y"]).long(),
            edge_index=torch.from_numpy(arrays[f"{split}_edge_index"]).long(),
        )
        for split in SPLITS
    ]
    return Splits([graphs[0]], [graphs[1]], [graphs[2]], source=path.name)


def _open_text(path: Path) -> TextIO:
    if path.suffix == ".gz":
        return gzip.open(path, "rt", encoding="utf-8")
    return path.open(encoding="utf-8")
