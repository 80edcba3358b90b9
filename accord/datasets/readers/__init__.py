"""Readers and writers of users' graphs: .npz, .json, csv tables, and data folders made of them."""

from accord.datasets.readers._folder import FolderBenchmark, read_folder
from accord.datasets.readers._graphs import graph_entries, read_graph, read_graphs
from accord.datasets.readers._writers import write_graph

__all__ = ["FolderBenchmark", "graph_entries", "read_folder", "read_graph", "read_graphs", "write_graph"]
