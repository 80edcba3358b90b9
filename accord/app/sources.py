"""What DATA on the command line means: a benchmark, the made digits, or a folder of graphs."""

from collections.abc import Sequence
from pathlib import Path

import torch
from torch_geometric.data import Data

from accord.datasets import Benchmark, list_benchmarks, load_benchmark, make_digits, read_folder, resolve_benchmark
from accord.errors import DataNotFoundError, OptionError

DIGITS = "digits"


def load_data(name: str, seed: int = 0) -> Benchmark:
    """The graphs that a name stands for, with raw features.

    Args:
        name: a benchmark ("cora*", or "cora"), "digits", or a folder with train/ in it.
        seed: of made data; benchmarks and folders are what they are.
    """
    if Path(name).is_dir():
        return read_folder(name)
    try:
        found = resolve_benchmark(name, also=(DIGITS,))
    except OptionError as error:
        known = ", ".join([*(row.name for row in list_benchmarks()), DIGITS])
        raise DataNotFoundError(
            f"{name}: is neither a folder nor a benchmark. Give a folder with train/ in it, or one of {known}."
        ) from error
    return make_digits(seed=seed) if found == DIGITS else load_benchmark(found, features="raw")


def benchmark_name(data: Benchmark) -> str | None:
    """The name under which presets may have values of their own; None for other data."""
    return data.name if any(row.name == data.name for row in list_benchmarks()) else None


def widest_scale(graphs: Sequence[Data]) -> float:
    """How many times larger the widest feature column spreads than the narrowest that spreads at all."""
    x = torch.cat([graph.x for graph in graphs]).double()
    spread = x.std(0, correction=0) if len(x) else torch.zeros(1)
    spread = spread[spread > 0]
    return float(spread.max() / spread.min()) if spread.numel() else 1.0
