"""Named columns of node features and edge attributes: numbers, categories, and marks of missing values.

A category is a column of 0 and 1 called `colour=red`. A mark of missing values is a column of 0 and 1 called
`age is missing`; where it is 1, the value of `age` is not known. Graphs of one data set may have different categories:
a graph has a column for each category that occurs in it.
"""

import math
import warnings
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor
from torch_geometric.data import Data

from accord.errors import GraphError, MissingValuesWarning, UnseenCategoriesWarning
from accord.graphs._masks import TRAIN_MASK

NUMBER, CATEGORY, MISSING = KINDS = ("number", "category", "missing")
MARK = " is missing"  # end of the name of a column that marks missing values
SHOWN = 8  # names that a message lists


@dataclass(frozen=True)
class Place:
    """Where a graph keeps columns: the tensor, and lists with their names and kinds."""

    values: str
    names: str
    kinds: str
    what: str  # one column, in messages
    rows: str  # in messages


NODES = Place("x", "feature_names", "feature_kinds", "feature", "nodes")
EDGES = Place("edge_attr", "edge_names", "edge_kinds", "edge attribute", "edges")


@dataclass(frozen=True)
class Columns:
    """Names and kinds of columns; of a fitted model also what stands in for missing numbers."""

    names: tuple[str, ...]
    kinds: tuple[str, ...]
    fill: tuple[float, ...] | None = None  # for each column; of numbers the mean over the training graphs
    spread: tuple[float, ...] | None = None  # standard deviation of numbers, where `align` scales them; else 1

    def __post_init__(self) -> None:
        fitted = [values for values in (self.fill, self.spread) if values is not None]
        if not set(self.kinds) <= set(KINDS) or {len(self.names)} != {len(self.kinds), *map(len, fitted)}:
            raise GraphError(f"Columns: kinds ({', '.join(KINDS)}), fill and spread need one entry for each column.")
        if not all(math.isfinite(value) for values in fitted for value in values) or 0.0 in (self.spread or ()):
            raise GraphError("Columns: fill and spread must be finite, and spread not 0.")

    def of_kind(self, kind: str) -> list[str]:
        """Names of the columns of one kind."""
        return [name for name, own in zip(self.names, self.kinds, strict=True) if own == kind]

    def categorical(self) -> set[str]:
        """Columns of text that these columns were made of, such as `colour`."""
        return {category_column(name) for name in self.of_kind(CATEGORY)}


@dataclass(frozen=True)
class GraphColumns:
    """Columns of node features and of edge attributes; None where they go by position."""

    nodes: Columns | None = None
    edges: Columns | None = None


def category_column(name: str) -> str:
    """The column of text that a category belongs to: `colour` of `colour=red`."""
    return name.partition("=")[0]


def columns_of(graph: Data, place: Place, where: str) -> Columns | None:
    """The columns of a graph that has names for them; None for a graph without names.

    Lists that do not fit the tensor are refused. Without kinds, every column is a number.
    """
    names, kinds, values = (graph.get(key) for key in (place.names, place.kinds, place.values))
    if names is None or not isinstance(values, Tensor) or values.dim() != 2:
        return None
    count = values.shape[1]
    for key, listed in ((place.names, names), (place.kinds, kinds)):
        if listed is None:
            continue
        if isinstance(listed, str) or not isinstance(listed, Sequence) or not all(isinstance(n, str) for n in listed):
            raise GraphError(
                f"{where}: {key} is {str(listed)[:80]}. Give a list of strings, one for each {place.what} column."
            )
        if len(listed) != count or (key == place.names and len(set(listed)) != count):
            raise GraphError(
                f"{where}: there are {len(listed)} {key} ({len(set(listed))} different) for {count} {place.what} "
                "columns. Name each column once."
            )
    if kinds is not None and not set(kinds) <= set(KINDS):
        unknown = next(kind for kind in kinds if kind not in KINDS)
        raise GraphError(f"{where}: {place.kinds} holds {unknown!r}. Choose among {', '.join(KINDS)}.")
    return Columns(tuple(names), tuple(kinds) if kinds is not None else (NUMBER,) * count)


def common_columns(graphs: Iterable[Data], place: Place, where: str) -> Columns | None:
    """The columns of several graphs together; None where no graph has names.

    All graphs with names have the same columns of numbers, in the same order. Categories and marks of missing values
    may be in some graphs only.
    """
    first: Columns | None = None
    kinds: dict[str, str] = {}
    for number, graph in enumerate(graphs):
        own = columns_of(graph, place, f"{where}: graph {number}")
        if own is None or (place is EDGES and not len(graph.edge_attr)):  # without edges, kinds are not known
            continue
        first = first or own
        problem = column_difference(first, own)
        if problem:
            raise GraphError(
                f"{where}: {place.names} of graph {number} differ from those of graphs before it: {problem}"
            )
        for name, kind in zip(own.names, own.kinds, strict=True):
            kinds.setdefault(name, kind)
    return None if first is None else Columns(tuple(kinds), tuple(kinds.values()))


def column_difference(first: Columns, own: Columns) -> str | None:
    """Why two graphs do not belong to one data set, by their columns; None if they do."""
    if own == first:
        return None
    known = dict(zip(first.names, first.kinds, strict=True))
    for name, kind in zip(own.names, own.kinds, strict=True):
        if known.get(name, kind) != kind:
            return f"column {name!r} is a {known[name]} there and a {kind} here. Rename it."
    numbers, found = first.of_kind(NUMBER), own.of_kind(NUMBER)
    mixed = sorted((set(numbers) & own.categorical()) | (set(found) & first.categorical()))
    if mixed:
        return (
            f"column {mixed[0]!r} holds numbers in one graph and text in another. Correct it, or list it under "
            "`categories` in the mapping file."
        )
    for column, (before, now) in enumerate(zip(numbers, found, strict=False)):
        if before != now:
            return f"column {column} is {now!r} here and {before!r} there. Give all graphs the same columns in order."
    if len(numbers) != len(found):
        return f"there are {len(found)} columns of numbers here and {len(numbers)} there. Give all graphs the same."
    return None


def fit_fill(columns: Columns, graphs: Iterable[Data], place: Place, scale: bool = False) -> Columns:
    """The columns with the mean of every number over training nodes (or edges) where it is known.

    Args:
        columns: that all graphs have, in this order.
        graphs: training graphs.
        place: node features or edge attributes.
        scale: also take the standard deviation, so that `align` scales numbers to mean 0 and deviation 1.
    """
    position = {name: number for number, name in enumerate(columns.names)}
    numbers = [position[name] for name in columns.of_kind(NUMBER)]
    marks = {position[_base(name)]: position[name] for name in _marks(columns) if _base(name) in position}
    total, squares, count = torch.zeros(3, len(columns.names), dtype=torch.float64)
    for graph in graphs:
        values = graph.get(place.values)
        if values is None:
            continue
        mask = graph.get(TRAIN_MASK) if place is NODES else None
        values = values.detach() if mask is None else values.detach()[mask]
        known = values[:, numbers].cpu().double()
        for column, mark in marks.items():
            if column in numbers:
                known[(values[:, mark] == 1).cpu(), numbers.index(column)] = torch.nan
        total[numbers] += known.nansum(0)
        squares[numbers] += (known**2).nansum(0)
        count[numbers] += (~known.isnan()).sum(0)
    fill = total / count.clamp(min=1)
    if not scale:
        return replace(columns, fill=tuple(fill.tolist()))
    spread = (squares / count.clamp(min=1) - fill**2).clamp(min=0).sqrt()
    flat = spread <= 1e-6 * fill.abs()  # a constant, up to rounding; also of categories and marks
    return replace(columns, fill=tuple(fill.tolist()), spread=tuple(spread.masked_fill(flat, 1.0).tolist()))


def align(graph: Data, columns: Columns | None, place: Place, where: str) -> Data:
    """The graph with these columns in this order; a graph without names, or no columns, goes by position.

    Categories and marks that the graph lacks are 0. Columns that are not wanted are left out; a category among them is
    reported. Missing numbers become the columns' `fill`, if they have one. Numbers are scaled if there is a `spread`.
    """
    own = None if columns is None else columns_of(graph, place, where)
    if columns is None or own is None:
        return graph
    if own.names == columns.names and columns.spread is None and not (columns.fill and _marks(own)):
        return graph
    position = {name: number for number, name in enumerate(own.names)}
    values = graph[place.values]
    if own.names == columns.names:
        chosen = values.clone()
    else:
        if len(values):
            _check_present(columns, own, place, where)
        _report_unseen(columns, own, values)
        absent = len(own.names)  # the column of zeros that is appended
        order = torch.tensor([position.get(name, absent) for name in columns.names], device=values.device)
        chosen = torch.cat([values, values.new_zeros(len(values), 1)], 1).index_select(1, order)
    if columns.fill is not None:
        _fill_missing(columns, columns.fill, own, values, chosen, place)
    if columns.fill is not None and columns.spread is not None:
        numbers = [number for number, kind in enumerate(columns.kinds) if kind == NUMBER]
        mean, spread = (
            torch.tensor([v[n] for n in numbers]).double().to(values.device) for v in (columns.fill, columns.spread)
        )
        chosen[:, numbers] = ((chosen[:, numbers].double() - mean) / spread).to(chosen.dtype)
    aligned = graph.clone()
    aligned[place.values] = chosen
    aligned[place.names] = list(columns.names)
    if set(columns.kinds) != {NUMBER} or graph.get(place.kinds) is not None:
        aligned[place.kinds] = list(columns.kinds)
    return aligned


def _check_present(columns: Columns, own: Columns, place: Place, where: str) -> None:
    """Refuse a graph that lacks a column; of categories, the column of text must be there."""
    known = set(own.names)
    texts = own.categorical() | {_base(name) for name in _marks(own)}
    missing = [
        name
        for name, kind in zip(columns.names, columns.kinds, strict=True)
        if name not in known and (kind == NUMBER or (kind == CATEGORY and category_column(name) not in texts))
    ]
    if missing:
        text = sorted({category_column(name) for name in missing} & known)
        hint = ""
        if text:
            hint = (
                f" Column {text[0]!r} holds text in training and numbers here. Read the file with the model's columns: "
                "read_graphs(path, columns=model.columns_)."
            )
        raise GraphError(
            f"{where}: the graph has no {place.what} {list_quoted(missing)}, on which the model was trained. "
            f"It has {list_quoted(own.names)}.{hint}"
        )


def _report_unseen(columns: Columns, own: Columns, values: Tensor) -> None:
    """Warn of categories that occur in the graph, but not in training."""
    known = set(columns.names)
    texts = columns.categorical()
    unseen: dict[str, dict[str, int]] = {}
    for number, (name, kind) in enumerate(zip(own.names, own.kinds, strict=True)):
        column = category_column(name)
        if kind == CATEGORY and name not in known and column in texts:
            count = int((values[:, number] != 0).sum())
            if count:
                unseen.setdefault(column, {})[name[len(column) + 1 :]] = count
    for column, counts in unseen.items():
        listed = ", ".join(f"{value!r} (at {count})" for value, count in list(counts.items())[:SHOWN])
        more = f" and {len(counts) - SHOWN} more" if len(counts) > SHOWN else ""
        warnings.warn(
            f"column {column!r} holds values that no training graph has: {listed}{more}. They are left out.",
            UnseenCategoriesWarning,
            stacklevel=4,
        )


def _fill_missing(
    columns: Columns, fill: Sequence[float], own: Columns, values: Tensor, chosen: Tensor, place: Place
) -> None:
    """Replace missing numbers, in place."""
    position = {name: number for number, name in enumerate(columns.names)}
    kinds: dict[str, Any] = dict(zip(columns.names, columns.kinds, strict=True))
    for number, name in enumerate(own.names):
        column = _base(name)
        if own.kinds[number] != MISSING or kinds.get(column) != NUMBER:
            continue
        missing = values[:, number] == 1
        chosen[missing, position[column]] = fill[position[column]]
        if name not in position and bool(missing.any()):
            warnings.warn(
                f"column {column!r} is missing at {int(missing.sum())} {place.rows}, but never in the training graphs. "
                f"The training mean {fill[position[column]]:.4g} is used there.",
                MissingValuesWarning,
                stacklevel=4,
            )


def _marks(columns: Columns) -> list[str]:
    return columns.of_kind(MISSING)


def _base(name: str) -> str:
    return name.removesuffix(MARK)


def list_quoted(names: Sequence[str]) -> str:
    """Names in one line; a long list is cut."""
    more = ", .." if len(names) > SHOWN else ""
    return ", ".join(repr(name) for name in names[:SHOWN]) + more
