"""Benchmark sets, read from files or fetched by PyG, and made sets drawn from known fields."""

from accord.datasets._benchmark import Benchmark, SplitStatistics
from accord.datasets._files import find_file
from accord.datasets._registry import BenchmarkEntry, list_benchmarks, load_benchmark

__all__ = [
    "Benchmark",
    "BenchmarkEntry",
    "SplitStatistics",
    "find_file",
    "list_benchmarks",
    "load_benchmark",
]
