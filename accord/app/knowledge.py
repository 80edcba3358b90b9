"""What is known about a graph, as the command line takes it: a file of labels, and pairs of labels as text."""

import csv
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from torch_geometric.data import Data

from accord.errors import DataNotFoundError, GraphError, OptionError
from accord.estimator import NodeClassifier

OWN_LABELS = "labels"  # --known: the labels in the graph's own file
NODE_COLUMNS, LABEL_COLUMN = ("node", "id"), "label"
GRAPH_COLUMN, TASK_COLUMN = "graph", "task"


@dataclass(frozen=True)
class KnownRow:
    """One row of a file of known labels."""

    line: int
    node: str
    label: str
    graph: str | None
    task: str | None


@dataclass(frozen=True)
class GivenOptions:
    """Options of a command, as they were written."""

    known: str | None = None
    forbid: Sequence[str] | None = None
    forbid_directed: Sequence[str] | None = None
    require: Sequence[str] | None = None
    prefer: Sequence[str] | None = None

    @property
    def reads_labels(self) -> bool:
        """Whether labels in the graph's own file are needed."""
        return self.known == OWN_LABELS

    def rows(self) -> list[KnownRow]:
        """The rows of the file of known labels."""
        return [] if self.known is None or self.reads_labels else read_known(Path(self.known))

    def arguments(
        self, model: NodeClassifier, graph: Data, rows: Sequence[KnownRow], name: str | None = None
    ) -> dict[str, Any]:
        """Arguments of `predict`, `answers` and `explain` for one graph.

        Args:
            model: knows labels and tasks.
            graph: the graph.
            rows: of the file of known labels, for all graphs.
            name: of the graph's file, where there are several graphs.
        """
        words = _Words(model, graph)
        found: dict[str, Any] = {}
        if self.reads_labels:
            found["known"] = OWN_LABELS
        elif self.known is not None:
            own = [row for row in rows if name is None or row.graph is None or row.graph == name]
            found["known"] = words.known(own, self.known)
        for option in ("forbid", "forbid_directed", "require"):
            texts = getattr(self, option)
            if texts:
                found[option] = words.pairs(texts, f"--{option.replace('_', '-')}")
        if self.prefer:
            found["prefer"] = words.preferences(self.prefer)
        return found


def read_known(path: Path) -> list[KnownRow]:
    """Read known labels from a csv file; an empty label says nothing."""
    if not path.is_file():
        raise DataNotFoundError(
            f"--known {path}: there is no such file. Give a .csv file with columns node and label, or the word "
            f"{OWN_LABELS} for those in the graph's own file."
        )
    try:
        with path.open(newline="", encoding="utf-8-sig") as file:
            reader = csv.reader(file, strict=True)
            lines = [([cell.strip() for cell in row], reader.line_num) for row in reader if row]
    except (UnicodeDecodeError, csv.Error) as error:
        raise GraphError(f"{path}: cannot be read as csv in UTF-8 ({error}). Save it again.") from error
    header = lines[0][0] if lines else []
    node = next((header.index(name) for name in NODE_COLUMNS if name in header), None)
    if node is None or LABEL_COLUMN not in header:
        raise GraphError(
            f"{path}, line 1: known labels need the columns node (or id) and label, but there are "
            f"{', '.join(header) or 'none'}. Add or rename a column."
        )
    place = {name: header.index(name) for name in (LABEL_COLUMN, GRAPH_COLUMN, TASK_COLUMN) if name in header}
    rows = []
    for cells, line in lines[1:]:
        if len(cells) != len(header):
            raise GraphError(
                f"{path}, line {line}: has {len(cells)} cells, but the header names {len(header)} columns."
            )
        more = (cells[place[name]] if name in place else None for name in (GRAPH_COLUMN, TASK_COLUMN))
        if cells[place[LABEL_COLUMN]]:
            rows.append(KnownRow(line, cells[node], cells[place[LABEL_COLUMN]], *more))
    return rows


class _Words:
    """Labels, nodes and tasks of one graph, by the text that users write."""

    def __init__(self, model: NodeClassifier, graph: Data) -> None:
        self.num_states, self.num_tasks = model.shape_.num_states, model.shape_.num_tasks
        self.labels = {str(name): place for place, name in enumerate(model.label_names_ or range(self.num_states))}
        self.tasks = {str(name): place for place, name in enumerate(model.task_names or range(self.num_tasks))}
        names = graph.node_names if "node_names" in graph else range(len(graph.x))
        self.nodes = {str(name): place for place, name in enumerate(names)}

    def known(self, rows: Sequence[KnownRow], path: str) -> dict[int, Any]:
        """Known labels by node: a state, or for several tasks a list."""
        found: dict[int, list[int]] = {}
        for row in rows:
            where = f"{path}, line {row.line}"
            node = _look_up(row.node, self.nodes, where, "node")
            state = _look_up(row.label, self.labels, where, "label")
            if self.num_tasks > 1 and row.task is None:
                raise GraphError(f"{where}: the model has {self.num_tasks} tasks, but there is no column task. Add it.")
            task = 0 if self.num_tasks == 1 else _look_up(str(row.task), self.tasks, where, "task")
            states = found.setdefault(node, [-1] * self.num_tasks)
            if states[task] not in (-1, state):
                raise GraphError(f"{where}: node {row.node!r} has another label in an earlier line. Keep one of them.")
            states[task] = state
        return dict(found)

    def pairs(self, texts: Sequence[str], option: str) -> dict[tuple[int, int] | None, list[tuple[int, int]]]:
        """Pairs of states by edge; None stands for every edge."""
        found: dict[tuple[int, int] | None, list[tuple[int, int]]] = {}
        for text in texts:
            pair = self._pair(text)
            if pair is not None:
                found.setdefault(None, []).append(pair)
                continue
            pair, edge = self._pair(text.rpartition("@")[0]), self._edge(text.rpartition("@")[2])
            if pair is None:
                raise self._unknown(option, text, "two labels, A:B, or for a single edge A:B@U:V")
            if edge is None:
                raise OptionError(f"{option} {text!r}: no edge is named after the @. Give two nodes, A:B@U:V.")
            found.setdefault(edge, []).append(pair)
        return found

    def preferences(self, texts: Sequence[str]) -> dict[Any, Any]:
        """Nats by label and pair, or by node and edge where single ones are named."""
        found: dict[Any, Any] = {}
        for text in texts:
            entry = self._preference(text, text) or self._preference(text.rpartition("@")[0], text)
            if entry is None:
                raise self._unknown("--prefer", text, "A:NATS or A:B:NATS, such as spam:0.5 or spam:ham:-1")
            key, nats, whole = entry
            if whole:
                found[key] = nats
                continue
            place = text.rpartition("@")[2]
            owner = self._edge(place) if isinstance(key, tuple) else self.nodes.get(place)
            if owner is None:
                raise OptionError(
                    f"--prefer {text!r}: {place!r} names no {'edge (U:V)' if isinstance(key, tuple) else 'node'} of "
                    "the graph. Correct it."
                )
            found.setdefault(("single", owner), {})[key] = nats
        return {key[1] if _is_single(key) else key: value for key, value in found.items()}

    def _preference(self, text: str, whole: str) -> tuple[Any, float, bool] | None:
        """A label or pair, its nats, and whether nothing else was written; None where the text says neither."""
        labels, _, number = text.rpartition(":")
        try:
            nats = float(number)
        except ValueError:
            return None
        key = self.labels.get(labels, self._pair(labels))
        return None if key is None else (key, nats, text == whole)

    def _pair(self, text: str) -> tuple[int, int] | None:
        return _split(text, self.labels)

    def _edge(self, text: str) -> tuple[int, int] | None:
        return _split(text, self.nodes)

    def _unknown(self, option: str, text: str, wanted: str) -> OptionError:
        return OptionError(f"{option} {text!r} is not understood. Give {wanted}. Labels: {_listed(self.labels)}.")


def _is_single(key: Any) -> bool:
    return isinstance(key, tuple) and key[0] == "single"


def _split(text: str, known: dict[str, int]) -> tuple[int, int] | None:
    """Two names joined by a colon, which names may contain as well; None where there is no way to read it."""
    parts = text.split(":")
    for count in range(1, len(parts)):
        first, second = ":".join(parts[:count]), ":".join(parts[count:])
        if first in known and second in known:
            return known[first], known[second]
    return None


def _look_up(text: str, known: dict[str, int], where: str, what: str) -> int:
    if text not in known:
        raise GraphError(f"{where}: the {what} {text[:80]!r} is unknown. Known: {_listed(known)}. Correct it.")
    return known[text]


def _listed(names: dict[str, int]) -> str:
    return ", ".join(list(names)[:8]) + (", .." if len(names) > 8 else "")
