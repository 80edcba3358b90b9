"""Features in a .json file beside the tables: a list of items, or of numbers, for each node."""

from pathlib import Path
from typing import Any

import numpy as np

from accord.datasets.readers._findings import Findings
from accord.datasets.readers._json import load_object
from accord.datasets.readers._raw import SHOWN_CHARACTERS
from accord.datasets.readers.tables._cells import MAX_FEATURE, Column
from accord.datasets.readers.tables._mapping import ItemFile
from accord.errors import DataNotFoundError, GraphError

EXAMPLE = '{"node": [3, 17], ..}'
LONGEST_ITEM = 200  # characters


def read_lists(path: Path, number: dict[str, int], findings: Findings) -> list[list[Any]]:
    """The list of each node; a node that the file does not name has an empty one."""
    if not path.exists():
        raise DataNotFoundError(f"{path}: there is no such file, but the mapping names it. Correct [features] file.")
    lists: list[list[Any]] = [[] for _ in number]
    for name, value in load_object(path, EXAMPLE).items():
        if name.strip() not in number:
            findings.problem(f"{path}: {name[:SHOWN_CHARACTERS]!r} is not the id of a node. Add the node or remove it.")
        elif not isinstance(value, list) or any(isinstance(item, (list, dict, bool)) or item is None for item in value):
            findings.problem(
                f"{path}: the entry of node {name[:SHOWN_CHARACTERS]!r} is not a flat list of numbers or text. Write "
                f"{EXAMPLE}."
            )
        else:
            lists[number[name.strip()]] = value
    return lists


def read_items(path: Path, number: dict[str, int], findings: Findings) -> list[dict[str, float]]:
    """Items of each node, with how often each occurs."""
    found: list[dict[str, float]] = []
    for values in read_lists(path, number, findings):
        counts: dict[str, float] = {}
        for value in values:
            item = str(value).strip()
            if not item or "\0" in item or len(item) > LONGEST_ITEM:
                findings.problem(f"{path}: the item {item[:SHOWN_CHARACTERS]!r} is empty, too long, or has a NUL.")
                continue
            counts[item] = counts.get(item, 0.0) + 1.0
        found.append(counts)
    return found


def read_vectors(path: Path, items: ItemFile, number: dict[str, int], findings: Findings) -> list[Column]:
    """Numbers of each node as columns; every list has the same length. A node without a list misses all of them."""
    lists = read_lists(path, number, findings)
    width = max(map(len, lists), default=0)
    missing = np.array([not values for values in lists])
    table = np.zeros((len(lists), width), np.float32)
    names = list(number)
    for row, values in enumerate(lists):
        if not values:
            continue
        if len(values) != width:
            findings.problem(
                f"{path}: node {names[row]!r} has {len(values)} numbers, others {width}. Give each node as many, or "
                'set form = "items".'
            )
            continue
        if not all(isinstance(value, (int, float)) and abs(value) <= MAX_FEATURE for value in values):
            findings.problem(f"{path}: node {names[row]!r} has an entry that is not a finite number. Correct it.")
            continue
        table[row] = values
    if not width:
        raise GraphError(f"{path}: has no numbers. Remove [features] from the mapping.")
    gaps = missing if missing.any() else None
    return [Column(f"{items.name} {place}", table[:, place].copy(), missing=gaps) for place in range(width)]
