"""The DATA argument of commands: a benchmark, the made digits, or a folder of graphs."""

from pathlib import Path

from accord.datasets import (
    Benchmark,
    FolderBenchmark,
    list_benchmarks,
    load_benchmark,
    make_digits,
    read_folder,
    resolve_benchmark,
)
from accord.errors import DataNotFoundError, OptionError

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


def benchmark_name(data: Benchmark) -> str | None:
    """The name under which presets may have values for these graphs; None if they are no listed benchmark.

    A folder is never one, even if it has the name of one.
    """
    listed = any(row.name == data.name for row in list_benchmarks())
    return data.name if listed and not isinstance(data, FolderBenchmark) else None
