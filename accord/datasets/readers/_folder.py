"""Reader of a data folder: train/, and optionally val/ and test/, each a folder of graphs."""

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from torch_geometric.data import Data

from accord.datasets.benchmarks import Benchmark
from accord.datasets.readers._graphs import FORMS, graph_entries, read_raw
from accord.datasets.readers._raw import RawGraph, find_label_names
from accord.errors import DataNotFoundError, GraphError


@dataclass(frozen=True, kw_only=True, repr=False)
class FolderBenchmark(Benchmark):
    """Graphs of a user's data folder; `val` and `test` may be empty."""

    feature_names: list[str] | None  # None if no graph names its features


def read_folder(path: str | Path) -> FolderBenchmark:
    """Read `train/`, and `val/` and `test/` if they exist, each a folder of graphs as `read_graph` reads them.

    If labels are names, the states are the names in the training graphs, sorted. Graphs that name their features
    must have the same names in the same order; graphs without names are matched by position.
    """
    folder = Path(path)
    if not folder.is_dir():
        raise DataNotFoundError(f"{folder}: there is no such folder. Give one with train/ in it, and val/ and test/.")
    if not (folder / "train").is_dir():
        raise DataNotFoundError(
            f"{folder}: has no folder train/. Put the training graphs there ({FORMS}). Validation and test graphs go "
            "into val/ and test/."
        )
    raw = {name: _read_split(folder / name) for name in ("train", "val", "test")}
    names = find_label_names(raw["train"])
    splits = {name: [graph.to_data(names) for graph in graphs] for name, graphs in raw.items()}
    everything = [(part, graph) for name in raw for part, graph in zip(raw[name], splits[name], strict=True)]
    _check_alike(everything)
    _check_labelled(raw["train"], splits["train"])
    first = splits["train"][0]
    return FolderBenchmark(
        name=folder.resolve().name,
        train=splits["train"],
        val=splits["val"],
        test=splits["test"],
        num_states=_count_states(names, [*splits["train"], *splits["val"]]),
        num_tasks=max(1 if graph.y is None or graph.y.dim() == 1 else graph.y.shape[1] for graph in splits["train"]),
        level="node",
        counted="edges",
        source=f"files of {folder.resolve().name}",
        feature_names=_feature_names(everything),
        label_names=names,
        task_names=first.task_names if "task_names" in first else None,
    )


def _read_split(path: Path) -> list[RawGraph]:
    return [read_raw(entry) for entry in graph_entries(path)] if path.is_dir() else []


def _check_alike(graphs: Iterable[tuple[RawGraph, Data]]) -> None:
    """Raise an error unless all graphs have the same number of features and of label columns."""
    first: tuple[RawGraph, Data] | None = None
    for raw, graph in graphs:
        if first is None:
            first = (raw, graph)
        for what, own, other in (
            ("features a node", graph.x.shape[1], first[1].x.shape[1]),
            ("labels a node", _tasks(graph), _tasks(first[1])),
        ):
            if own is not None and other is not None and own != other:
                raise GraphError(
                    f"{raw.path}: has {own} {what}, but {first[0].path} has {other}. All graphs need the same columns."
                )


def _feature_names(graphs: Iterable[tuple[RawGraph, Data]]) -> list[str] | None:
    """The feature names that all graphs with names share; None if no graph has any."""
    first: tuple[RawGraph, list[str]] | None = None
    for raw, graph in graphs:
        if "feature_names" not in graph:
            continue
        first = first or (raw, graph.feature_names)
        for column, (own, other) in enumerate(zip(graph.feature_names, first[1], strict=True)):
            if own != other:
                raise GraphError(
                    f"{raw.path}: feature {column} is {own!r}, but {first[0].path} has {other!r} there. All graphs "
                    "need the same feature columns in the same order."
                )
    return None if first is None else first[1]


def _tasks(graph: Data) -> int | None:
    return None if graph.y is None else 1 if graph.y.dim() == 1 else int(graph.y.shape[1])


def _check_labelled(raws: list[RawGraph], graphs: list[Data]) -> None:
    if not any(graph.y is not None and bool((graph.y >= 0).any()) for graph in graphs):
        raise GraphError(
            f"{raws[0].path}: neither this nor any other training graph has labels. Add a column `label` to nodes.csv, "
            "or `y` to .npz and .json files."
        )


def _count_states(names: list[str] | None, graphs: Iterable[Data]) -> int:
    if names is not None:
        return len(names)
    return 1 + max(int(graph.y.max()) for graph in graphs if graph.y is not None and graph.y.numel())
