"""The graphs that requests name or contain, read by the readers of files and kept for the next request."""

import copy
import json
import tempfile
import warnings
from collections import OrderedDict
from pathlib import Path
from typing import Any

from torch_geometric.data import Data

from accord.app.console import in_command_line_words
from accord.app.server.limits import Limits, Refused
from accord.app.server.requests import Graph
from accord.app.server.uploads import graph_path
from accord.app.sources import DIGITS, load_data
from accord.datasets import TableMapping, list_benchmarks, make_digits, read_folder, read_graph, read_graphs
from accord.errors import AccordError
from accord.graphs import GraphColumns

KEPT = 8  # graphs that stay in memory
LISTED = 500  # graphs of a data set that the page offers
DIGIT_WIDTH = 8  # pixels of a handwritten digit
EXAMPLE = "test-"  # beginning of the id of a listed graph


class Shelf:
    """Graphs by id.

    Args:
        uploads: the folder of uploads.
        limits: of the server.
        config: the run's config.json, which says which data the model was trained on; may be empty.
        data: a data folder, a benchmark or a graph to offer instead.
        columns: of the model, so that tables are read as in training.
    """

    def __init__(
        self,
        uploads: Path,
        limits: Limits,
        config: dict[str, Any],
        data: str | None = None,
        columns: GraphColumns | None = None,
    ) -> None:
        self.uploads, self.limits, self.config, self.data, self.columns = uploads, limits, config, data, columns
        self._kept: OrderedDict[str, Data] = OrderedDict()
        self._listed: list[tuple[str, Data]] | None = None

    def listed(self) -> list[tuple[str, Data]]:
        """Names and graphs that clients can pick: test graphs of the model's own data, or what `--data` names."""
        if self._listed is None:
            self._listed = load_listed(self.config, self.data, self.columns)[:LISTED]
        return self._listed

    def images(self, identity: str | None) -> int | None:
        """The width of the square images that the features of a listed graph are; None if they are none."""
        if identity is None or not identity.startswith(EXAMPLE) or self.data not in (None, DIGITS):
            return None
        return DIGIT_WIDTH if is_digits(self.config) or self.data == DIGITS else None

    def find(self, asked: Graph, where: str = "graph") -> Data:
        """The graph that a request means.

        Args:
            asked: an id, or the arrays of a graph.
            where: its place in the request, for messages.
        """
        content = asked.model_dump(exclude_unset=True)
        identity = content.pop("id", None)
        if identity is None:
            return self._read_arrays(content, where)
        if content:
            raise Refused(422, f"{where}: holds an id and arrays. Give one of the two.", "request")
        if identity not in self._kept:
            self._kept[identity] = self._by_id(identity, where)
            while len(self._kept) > KEPT:
                self._kept.popitem(last=False)
        self._kept.move_to_end(identity)
        return self._kept[identity]

    def _by_id(self, identity: str, where: str) -> Data:
        number = identity.removeprefix(EXAMPLE)
        if identity.startswith(EXAMPLE) and number.isdecimal() and int(number[:9]) < len(self.listed()):
            return self._checked(self.listed()[int(number)][1], where)
        path = graph_path(self.uploads, identity)
        if path is None:
            raise Refused(404, f"{where}: there is no graph {identity!r}. Upload it again.", "unknown_graph")
        return self._read(path, "the file")

    def _read_arrays(self, content: dict[str, Any], where: str) -> Data:
        """Arrays are read as a .json file is, so that both are checked alike."""
        with tempfile.NamedTemporaryFile("w", dir=self.uploads, suffix=".json", encoding="ascii") as file:
            try:
                json.dump(content, file)
            except (ValueError, RecursionError) as error:
                raise Refused(422, f"{where}: cannot be read ({error}). Correct it.", "graph") from error
            file.flush()
            return self._read(Path(file.name), where)

    def _read(self, path: Path, where: str) -> Data:
        try:
            return self._checked(read_graph(path, mapping=TableMapping(), columns=self.columns), where)
        except FileNotFoundError as error:
            raise Refused(404, f"{where}: the graph is no longer there. Upload it again.", "unknown_graph") from error
        except AccordError as error:
            raise type(error)(in_words(error, path, where)) from error

    def _checked(self, graph: Data, where: str) -> Data:
        for what, count, most in (
            ("nodes", len(graph.x), self.limits.nodes),
            ("edges", graph.edge_index.shape[1], self.limits.edges),
        ):
            if count > most:
                raise Refused(
                    413,
                    f"{where}: has {count:,} {what}; this server accepts {most:,}. Send a part of the graph, or start "
                    f"the server with --max-{what}.",
                    "too_large",
                )
        return graph


def load_listed(
    config: dict[str, Any], data: str | None, columns: GraphColumns | None = None
) -> list[tuple[str, Data]]:
    """Names and graphs of `--data`, or of the benchmark that a run was trained on, if its files are there."""
    if data is not None:
        path = Path(data)
        if path.exists() and not (path / "train").is_dir():
            return [(graph.graph_name, graph) for graph in read_graphs(path, columns=columns)]
        found = read_folder(path) if path.is_dir() else load_data(data)
        graphs = found.test or found.val or found.train
        for graph in graphs:
            if found.label_names is not None:
                graph.label_names = found.label_names
        return [(f"{found.name} {number}", graph) for number, graph in enumerate(graphs)]
    trained = config.get("data", {})
    name = trained.get("name")
    if is_digits(config):
        counts, seed = trained["graphs"], config["settings"]["seed"]
        graphs = make_digits(counts["train"], counts["val"], counts["test"], seed).test
    elif any(row.name == name and row.present for row in list_benchmarks()) and "files of" not in trained["source"]:
        graphs = load_data(name).test
    else:
        return []
    return [(f"{name} {number}", graph) for number, graph in enumerate(graphs)]


def is_digits(config: dict[str, Any]) -> bool:
    """Whether a run was trained on the made digits."""
    trained = config.get("data", {})
    return trained.get("name") == DIGITS and str(trained.get("source", "")).startswith("make_digits")


def without_labels(graph: Data) -> Data:
    """The same graph without its labels, so that a prediction cannot depend on them."""
    bare = copy.copy(graph)
    for name in ("y", "label_names", "task_names"):
        if name in bare:
            del bare[name]
    return bare


def node_names(graph: Data) -> list[str]:
    """Names of the nodes, or their numbers."""
    return [str(name) for name in graph.node_names] if "node_names" in graph else list(map(str, range(len(graph.x))))


def in_words(error: AccordError, path: Path, where: str) -> str:
    """The message of an error, with the client's word for a file in place of our path."""
    return in_command_line_words(error).replace(str(path), where).replace(path.name, where)


def said(caught: list[warnings.WarningMessage]) -> list[str]:
    """Warnings as sentences."""
    return [in_command_line_words(AccordError(str(one.message))) for one in caught]
