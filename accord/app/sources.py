"""The DATA argument of commands: a benchmark, the made digits, or a folder of graphs; and what is fitted beside it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from torch_geometric.data import Data

from accord._files import file_checksum
from accord.app.runs import MODEL_FILE
from accord.datasets import (
    Benchmark,
    FolderBenchmark,
    TableMapping,
    change_mapping,
    find_mapping,
    list_benchmarks,
    load_benchmark,
    make_digits,
    read_folder,
    read_graphs,
    read_mapping,
    resolve_benchmark,
    stream_folder,
)
from accord.errors import DataNotFoundError, OptionError
from accord.estimator import NodeClassifier
from accord.graphs import fingerprint_graphs

DIGITS = "digits"


def find_tables(path: Path, mapping: Path | None, columns: Sequence[str] | None) -> TableMapping | None:
    """Which tables and columns hold what: the mapping file, with the entries of `--map`; None if there is neither.

    Args:
        path: the data; without `mapping`, a mapping file near it counts.
        mapping: the mapping file.
        columns: entries as `nodes.label=page_type`.
    """
    found = read_mapping(mapping) if mapping is not None else find_mapping(path)
    return change_mapping(found, columns) if columns else found


def read_for(model: NodeClassifier, path: Path, mapping: TableMapping | None, with_labels: bool) -> list[Data]:
    """Graphs at a path with their columns read as in training; labels, if they are wanted, by the model's names."""
    names = model.label_names_ if with_labels else None
    return read_graphs(path, names, with_labels, mapping, model.columns_)


def load_data(
    name: str,
    seed: int = 0,
    mapping: TableMapping | None = None,
    stream: bool = False,
    scratch: Path | None = None,
) -> Benchmark:
    """Load the graphs that a name stands for, with raw features.

    Args:
        name: a benchmark ("cora*" or "cora"), "digits", a folder that contains train/, or a graph by itself.
        seed: of made data; benchmarks and folders do not depend on it.
        mapping: which tables and columns of a folder hold what; None looks for a mapping file.
        stream: read the training graphs of a folder from disk, batch by batch.
        scratch: folder for the temporary file of a stream; None takes the user's cache folder.
    """
    if Path(name).exists():
        return stream_folder(name, mapping, scratch) if stream else read_folder(name, mapping)
    try:
        found = resolve_benchmark(name, also=(DIGITS,))
    except OptionError as error:
        known = ", ".join([*(row.name for row in list_benchmarks()), DIGITS])
        raise DataNotFoundError(
            f"{name}: is neither a folder nor a benchmark, nor a graph. Give a folder that contains train/, or one of "
            f"{known}."
        ) from error
    if stream:
        raise OptionError(f"--stream: the benchmark {found} is held in memory. Leave it out, or give a data folder.")
    return make_digits(seed=seed) if found == DIGITS else load_benchmark(found, features="raw")


@dataclass(frozen=True, eq=False)
class Beside:
    """What a model is fitted with besides labelled graphs; `marks` are codes of it for config.json."""

    unlabelled: list[Data] | None = None
    start: NodeClassifier | None = None
    marks: Mapping[str, str] = field(default_factory=dict)


def load_beside(unlabelled: str | None, start: str | None) -> Beside:
    """Load what settings name besides the data.

    Args:
        unlabelled: a graph or a folder of graphs, or None.
        start: a run or the folder of a saved model, or None.
    """
    marks: dict[str, str] = {}
    model = None if start is None else NodeClassifier.load(start)
    if start is not None:
        marks["start"] = file_checksum(Path(start) / MODEL_FILE)
    graphs = None if unlabelled is None else read_graphs(unlabelled, with_labels=False)
    if graphs is not None:
        marks["unlabelled"] = fingerprint_graphs(graphs)
    return Beside(graphs, model, marks)


def benchmark_name(data: Benchmark) -> str | None:
    """The name under which presets may have values for these graphs; None if they are no listed benchmark.

    A folder is never one, even if it has the name of one.
    """
    listed = any(row.name == data.name for row in list_benchmarks())
    return data.name if listed and not isinstance(data, FolderBenchmark) else None
