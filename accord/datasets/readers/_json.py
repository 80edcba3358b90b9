"""Reader of graphs in .json files: an object of nested lists."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from accord.datasets._sources import check_text_file
from accord.datasets.readers._arrays import GRAPH_ARRAYS, assemble
from accord.datasets.readers._raw import SHOWN_CHARACTERS, RawGraph, check_label_text, first_repeated
from accord.errors import GraphError


def read_json(path: Path) -> RawGraph:
    """Read a graph from a .json file."""
    content = load_object(path, '{"x": [[..]], "edge_index": ..}')
    held = {name: value for name, value in content.items() if value is not None}
    arrays = {name: _array(path, name, held[name]) for name in GRAPH_ARRAYS if name in held}
    return assemble(path, arrays, list(content), held)


def load_object(path: Path, example: str) -> dict[str, Any]:
    """The object that a .json file holds; its keys differ.

    Args:
        path: the file.
        example: of such an object, for messages.
    """
    check_text_file(path)
    try:
        content = json.loads(path.read_text(encoding="utf-8-sig"), object_pairs_hook=lambda pairs: _once(path, pairs))
    except json.JSONDecodeError as error:
        raise GraphError(f"{path}, line {error.lineno}: is not valid json ({error.msg}). Correct it there.") from error
    except UnicodeDecodeError as error:
        raise GraphError(f"{path}: is not text in UTF-8 ({error}). Save it again in UTF-8.") from error
    except RecursionError as error:
        raise GraphError(f"{path}: lists are nested too deeply. x is a list of rows; no list is deeper.") from error
    except GraphError:
        raise
    except ValueError as error:  # Python converts no number of more than 4,300 digits
        raise GraphError(f"{path}: holds a number that cannot be read ({error}). Correct it.") from error
    if not isinstance(content, dict):
        raise GraphError(f"{path}: holds a {type(content).__name__}. Write an object: {example}.")
    return content


def _once(path: Path, pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """An object whose keys differ; Python would keep the last of two equal ones."""
    found = dict(pairs)
    if len(found) < len(pairs):
        twice = first_repeated([name for name, _ in pairs])
        raise GraphError(f"{path}: holds {_shown(twice)} twice. Write each array once.")
    return found


def _array(path: Path, name: str, value: Any) -> np.ndarray:
    """A nested list as an array; labels may contain null and text."""
    if name == "y":
        return _label_array(path, value)
    for cell in _odd_cells(value):
        needed = "numbers [nodes, features]" if name == "x" else "numbers"
        raise GraphError(f"{path}: {name} holds {_shown(cell)}, but {needed} are needed. Correct or remove it.")
    try:
        array = np.array(value)
    except ValueError as error:
        raise GraphError(f"{path}: {name} has rows of different lengths ({error}). Make them equal.") from error
    except OverflowError as error:
        raise GraphError(f"{path}: {name} holds a number that is too large ({error}). Correct it.") from error
    if name == "edge_index" and array.size == 0:
        return np.empty((2, 0), dtype=np.int64)
    return array


def _odd_cells(value: Any) -> Iterator[Any]:
    """Cells of nested lists that are not numbers. numpy would make text of all the others."""
    parts = [value if isinstance(value, list) else [value]]
    while parts:
        part = parts.pop()
        kinds = set(map(type, part))
        if kinds - {int, float, bool, list}:
            yield next(cell for cell in part if not isinstance(cell, (int, float, list)))
        if list in kinds:
            parts.extend(cell for cell in part if isinstance(cell, list))


def _label_array(path: Path, value: Any) -> np.ndarray:
    try:
        cells = np.array(value, dtype=object)
    except ValueError as error:
        raise GraphError(f"{path}: y has rows of different lengths ({error}). Make them equal.") from error
    width = max(1, cells[:1].size) if cells.ndim else 1
    flat = cells.ravel().tolist()
    for place, cell in enumerate(flat):
        if isinstance(cell, bool) or not isinstance(cell, (int, float, str, type(None))):
            raise GraphError(
                f"{path}, node {place // width}: the label {_shown(cell)} is neither a number nor a name nor null. "
                "Correct it."
            )
        if isinstance(cell, str):
            check_label_text(cell, f"{path}, node {place // width}")
    if any(isinstance(cell, str) for cell in flat):
        return np.array(["" if cell is None else str(cell) for cell in flat], dtype=np.str_).reshape(cells.shape)
    return np.array([-1 if cell is None else cell for cell in flat]).reshape(cells.shape)


def _shown(value: Any) -> str:
    """A value in a message; lists and objects by name only, for they may be deep."""
    if isinstance(value, (list, dict)):
        return "a list" if isinstance(value, list) else "an object"
    text = "null" if value is None else repr(value)
    return text if len(text) <= SHOWN_CHARACTERS else f"{text[:SHOWN_CHARACTERS]}..."
