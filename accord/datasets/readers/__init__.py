"""Readers and writers of users' graphs: arrays, tables, GraphML, saved PyG data, and data folders made of them."""

from accord.datasets.readers._blocks import GraphBlock, graph_blocks, read_block
from accord.datasets.readers._findings import ColumnUse, Findings
from accord.datasets.readers._folder import FolderBenchmark, FolderCheck, check_folder, corpus_file, read_folder
from accord.datasets.readers._graphs import (
    from_hetero,
    from_networkx,
    graph_entries,
    read_graph,
    read_graphs,
    read_sentences,
)
from accord.datasets.readers._parquet import write_graphs
from accord.datasets.readers._sequences import sequence_suffix, write_sentences
from accord.datasets.readers._writers import write_graph
from accord.datasets.readers.streams import GraphFiles, stream_folder
from accord.datasets.readers.tables import (
    EdgeTable,
    ItemFile,
    NodeTable,
    TableMapping,
    change_mapping,
    find_mapping,
    mapping_from,
    read_mapping,
)

__all__ = [
    "ColumnUse",
    "EdgeTable",
    "Findings",
    "FolderBenchmark",
    "FolderCheck",
    "GraphBlock",
    "GraphFiles",
    "ItemFile",
    "NodeTable",
    "TableMapping",
    "change_mapping",
    "check_folder",
    "corpus_file",
    "find_mapping",
    "from_hetero",
    "from_networkx",
    "graph_blocks",
    "graph_entries",
    "mapping_from",
    "read_block",
    "read_folder",
    "read_graph",
    "read_graphs",
    "read_mapping",
    "read_sentences",
    "sequence_suffix",
    "stream_folder",
    "write_graph",
    "write_graphs",
    "write_sentences",
]
