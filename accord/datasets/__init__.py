"""Benchmark sets, read from files or fetched by PyG, made sets drawn from known fields, and users' own files."""

from accord.datasets._digits import DigitsBenchmark, DigitsOptions, DigitsTruth, make_digits
from accord.datasets.benchmarks._benchmark import Benchmark, SplitStatistics
from accord.datasets.benchmarks._files import find_file
from accord.datasets.benchmarks._registry import (
    BenchmarkEntry,
    benchmark_features,
    list_benchmarks,
    load_benchmark,
    resolve_benchmark,
)
from accord.datasets.readers._folder import FolderBenchmark, read_folder
from accord.datasets.readers._graphs import graph_entries, read_graph, read_graphs
from accord.datasets.readers._writers import write_graph

__all__ = [
    "Benchmark",
    "BenchmarkEntry",
    "DigitsBenchmark",
    "DigitsOptions",
    "DigitsTruth",
    "FolderBenchmark",
    "SplitStatistics",
    "benchmark_features",
    "find_file",
    "graph_entries",
    "list_benchmarks",
    "load_benchmark",
    "make_digits",
    "read_folder",
    "read_graph",
    "read_graphs",
    "resolve_benchmark",
    "write_graph",
]
