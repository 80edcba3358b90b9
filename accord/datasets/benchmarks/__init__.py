"""Benchmark data sets by name, read from local files or downloaded by PyG."""

from accord.datasets.benchmarks._benchmark import Benchmark, SplitStatistics
from accord.datasets.benchmarks._dblp import build_dblp
from accord.datasets.benchmarks._files import find_file
from accord.datasets.benchmarks._registry import (
    BenchmarkEntry,
    benchmark_features,
    list_benchmarks,
    load_benchmark,
    resolve_benchmark,
)

__all__ = [
    "Benchmark",
    "BenchmarkEntry",
    "SplitStatistics",
    "benchmark_features",
    "build_dblp",
    "find_file",
    "list_benchmarks",
    "load_benchmark",
    "resolve_benchmark",
]
