"""Reader of a data folder: train/, and optionally val/ and test/, each a folder of graphs; or one graph by itself."""

import warnings
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from torch_geometric.data import Data

from accord.datasets.benchmarks import Benchmark
from accord.datasets.readers._findings import Findings
from accord.datasets.readers._graphs import FORMS, Reading, Source, encode_sources, graph_entries, read_sources
from accord.datasets.readers._raw import RawGraph, find_label_names
from accord.datasets.readers._sequences import SUFFIXES
from accord.datasets.readers.tables import TableGraphs, TableMapping, is_table_folder
from accord.errors import DataNotFoundError, GraphError
from accord.graphs import EDGES, MASKS, NODES, Columns, align, column_difference, columns_of, common_columns
from accord.graphs.features._columns import Place

SPLITS = ("train", "val", "test")


@dataclass(frozen=True, kw_only=True, repr=False)
class FolderBenchmark(Benchmark):
    """Graphs of a user's data folder; `val` and `test` may be empty."""

    feature_names: list[str] | None  # None if no graph names its features
    findings: Findings  # how columns of tables were read


@dataclass(frozen=True, eq=False)
class FolderCheck:
    """What was understood of a data folder, and all that is wrong with it."""

    findings: Findings
    splits: dict[str, list[Data]]  # graphs that could be read
    label_names: list[str] | None
    warnings: list[str]


@dataclass(frozen=True, eq=False)
class _Content:
    """Graphs of each split, before and after their conversion."""

    raws: dict[str, list[RawGraph]]
    graphs: dict[str, list[Data]]
    label_names: list[str] | None

    def pairs(self) -> list[tuple[RawGraph, Data]]:
        return [pair for name in SPLITS for pair in zip(self.raws[name], self.graphs[name], strict=True)]


def read_folder(path: str | Path, mapping: TableMapping | str | Path | None = None) -> FolderBenchmark:
    """Read `train/`, and `val/` and `test/` if they exist, each a folder of graphs as `read_graph` reads them.

    A graph by itself (a file, or a folder with its tables) is read too. If its nodes name their split, or its masks
    do, these count; a table with several graphs may name the split of each. Otherwise everything is for training.

    If labels are names, the states are the names in the training graphs, sorted. Graphs that name their features
    must have the same columns of numbers in the same order; graphs without names are matched by position. Categories
    are those of the training graphs; others are reported by a warning.

    Args:
        path: the folder.
        mapping: which columns of tables hold what, or the path of a mapping file; None looks for accord.toml.
    """
    folder = Path(path)
    way = Reading.of(folder, mapping)
    content = _read_content(folder, way)
    train = content.graphs["train"]
    _check_labelled(content.raws["train"], train)
    first = train[0]
    return FolderBenchmark(
        name=folder.resolve().name,
        train=train,
        val=content.graphs["val"],
        test=content.graphs["test"],
        num_states=count_states(content.label_names, [*train, *content.graphs["val"]]),
        num_tasks=max(1 if graph.y is None or graph.y.dim() == 1 else graph.y.shape[1] for graph in train),
        level="node",
        counted="edges",
        source=f"files of {folder.resolve().name}",
        feature_names=next((graph.feature_names for graph in train if "feature_names" in graph), None),
        label_names=content.label_names,
        task_names=first.task_names if "task_names" in first else None,
        findings=way.findings,
    )


def check_folder(path: str | Path, mapping: TableMapping | str | Path | None = None) -> FolderCheck:
    """Read a data folder, or a graph by itself, and collect every problem instead of raising the first."""
    folder = Path(path)
    way = Reading.of(folder, mapping, collect=True)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        content = _Content({name: [] for name in SPLITS}, {name: [] for name in SPLITS}, None)
        with way.reporting():
            content = _read_content(folder, way)
            with way.reporting():
                if content.raws["train"]:
                    _check_labelled(content.raws["train"], content.graphs["train"])
    return FolderCheck(way.findings, content.graphs, content.label_names, [str(note.message) for note in caught])


def _read_content(folder: Path, way: Reading) -> _Content:
    sources = {name: _read_split(paths, way) for name, paths in find_splits(folder, way.mapping).items()}
    everything = [source for name in SPLITS for source in sources.get(name, [])]
    encoded = encode_sources(everything, len(sources["train"]), way)
    raws: dict[str, list[RawGraph]] = {name: [] for name in SPLITS}
    owners = [name for name in SPLITS for _ in sources.get(name, [])]
    for name, found in zip(owners, encoded, strict=True):
        raws[name] += found
    if len(sources) == 1:
        raws = _by_split(raws["train"])
    names = find_label_names(raws["train"])
    content = _Content({name: [] for name in SPLITS}, {name: [] for name in SPLITS}, names)
    for name in SPLITS:
        for raw in raws[name]:
            with way.reporting():
                content.graphs[name].append(_to_data(raw, names, way.findings))
                content.raws[name].append(raw)
    if not content.graphs["train"]:
        return content  # problems have been reported
    for place in (NODES, EDGES):
        columns = _common_columns(content, place, way)
        for name in SPLITS:
            kept: list[tuple[RawGraph, Data]] = []
            for raw, graph in zip(content.raws[name], content.graphs[name], strict=True):
                with way.reporting():
                    kept.append((raw, align(graph, columns, place, str(raw.path))))
            content.raws[name][:], content.graphs[name][:] = ([pair[side] for pair in kept] for side in (0, 1))
    with way.reporting():
        _check_alike(content.pairs())
    return content


def find_splits(folder: Path, mapping: TableMapping | None) -> dict[str, list[Path]]:
    """The graphs of each split; only "train" for a graph by itself."""
    if not folder.exists():
        raise DataNotFoundError(f"{folder}: there is no such folder. Give one with train/ in it, and val/ and test/.")
    if not folder.is_dir() or (not (folder / "train").is_dir() and is_table_folder(folder, mapping)):
        return {"train": [folder]}
    corpus = {name: path for name in SPLITS if (path := corpus_file(folder, name)) is not None}
    if "train" in corpus and not (folder / "train").is_dir():
        return {name: [corpus[name]] if name in corpus else [] for name in SPLITS}
    if not (folder / "train").is_dir():
        raise DataNotFoundError(
            f"{folder}: has no folder train/. Put the training graphs there ({FORMS}). Validation and test graphs go "
            "into val/ and test/. For one graph in tables with other names, write a mapping file (accord.toml)."
        )
    present = [name for name in SPLITS if (folder / name).is_dir()]
    found = {name: graph_entries(folder / name, mapping) for name in present}
    return found | {name: [] for name in SPLITS if name not in found}


def corpus_file(folder: Path, split: str) -> Path | None:
    """The file of sentences of a split, such as train.conll; dev.conll stands for val.conll."""
    stems = ("val", "dev") if split == "val" else (split,)
    found = [folder / f"{stem}{suffix}{more}" for stem in stems for suffix in SUFFIXES for more in ("", ".gz")]
    return next((path for path in found if path.is_file()), None)


def _read_split(paths: Sequence[Path], way: Reading) -> list[Source]:
    found: list[Source] = []
    for path in paths:
        with way.reporting():
            for source in read_sources(path, way):
                if isinstance(source, TableGraphs) and not any(isinstance(other, TableGraphs) for other in found):
                    way.settle(source)
                found.append(source)
    return found


def _by_split(raws: list[RawGraph]) -> dict[str, list[RawGraph]]:
    """Graphs of one file by the split that all nodes of each are in; if one has nodes of several, all stay together."""
    found: dict[str, list[RawGraph]] = {name: [] for name in SPLITS}
    for raw in raws:
        whole = [name for name in SPLITS if f"{name}_mask" in raw.masks and raw.masks[f"{name}_mask"].all()]
        if len(whole) != 1 or len(raws) == 1:
            return {"train": raws, "val": [], "test": []}
        plain = {key: mask for key, mask in raw.masks.items() if key not in MASKS}
        found[whole[0]].append(RawGraph(**(vars(raw) | {"masks": plain})))
    return found


def _to_data(raw: RawGraph, names: Sequence[str] | None, findings: Findings) -> Data:
    """The graph; where problems are collected, bad labels are reported one by one and left out."""
    if not findings.collect:
        return raw.to_data(names)
    without = raw.to_data(names, with_labels=False)
    problems = list(raw.bad_labels(names))
    for problem in problems:
        findings.problem(problem)
    return without if problems else raw.to_data(names)


def _common_columns(content: _Content, place: Place, way: Reading) -> Columns | None:
    """The columns of the training graphs; graphs that do not fit are refused by the name of their file."""
    first: tuple[RawGraph, Columns] | None = None
    for raw, graph in content.pairs():
        own = columns_of(graph, place, str(raw.path))
        if own is None:
            continue
        first = first or (raw, own)
        difference = column_difference(first[1], own)
        if difference:
            with way.reporting():
                raise GraphError(f"{raw.path}: {place.what} names differ from those of {first[0].path}: {difference}")
            return None
    return common_columns(content.graphs["train"], place, str(content.raws["train"][0].path))


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


def _tasks(graph: Data) -> int | None:
    return None if graph.y is None else 1 if graph.y.dim() == 1 else int(graph.y.shape[1])


def _check_labelled(raws: list[RawGraph], graphs: list[Data]) -> None:
    if not any(graph.y is not None and bool((graph.y >= 0).any()) for graph in graphs):
        raise GraphError(
            f"{raws[0].path}: neither this nor any other training graph has labels. Add a column `label` to nodes.csv, "
            "or `y` to .npz and .json files, or name the column in a mapping file (accord.toml)."
        )


def count_states(names: list[str] | None, graphs: Iterable[Data]) -> int:
    if names is not None:
        return len(names)
    return 1 + max(int(graph.y.max()) for graph in graphs if graph.y is not None and graph.y.numel())
