"""The DATA argument of commands: a benchmark, the made digits, or a folder of graphs; and what is fitted beside it."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from torch_geometric.data import Data

from accord._files import file_checksum
from accord.app.runs import MODEL_FILE
from accord.datasets import (
    Benchmark,
    FolderBenchmark,
    list_benchmarks,
    load_benchmark,
    make_digits,
    read_folder,
    read_graphs,
    resolve_benchmark,
)
from accord.errors import DataNotFoundError, OptionError
from accord.estimator import NodeClassifier
from accord.graphs import fingerprint_graphs

DIGITS = "digits"


def load_data(name: str, seed: int = 0) -> Benchmark:
    """Load the graphs that a name stands for, with raw features.

    Args:
        name: a benchmark ("cora*" or "cora"), "digits", or a folder that contains train/.
        seed: of made data; benchmarks and folders do not depend on it.
    """
    if Path(name).is_dir():
        return read_folder(name)
    try:
        found = resolve_benchmark(name, also=(DIGITS,))
    except OptionError as error:
        known = ", ".join([*(row.name for row in list_benchmarks()), DIGITS])
        raise DataNotFoundError(
            f"{name}: is neither a folder nor a benchmark. Give a folder that contains train/, or one of {known}."
        ) from error
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
