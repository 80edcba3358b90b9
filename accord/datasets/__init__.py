"""Benchmark data sets, generated graphs with a known field, and readers of users' own files."""

from accord.datasets._digits import DigitsBenchmark, DigitsOptions, DigitsTruth, make_digits
from accord.datasets.benchmarks import (
    Benchmark,
    BenchmarkEntry,
    SplitStatistics,
    benchmark_features,
    find_file,
    list_benchmarks,
    load_benchmark,
    resolve_benchmark,
)
from accord.datasets.readers import FolderBenchmark, graph_entries, read_folder, read_graph, read_graphs, write_graph

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
