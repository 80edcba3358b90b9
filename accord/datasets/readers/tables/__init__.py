"""Graphs as tables of nodes and edges: csv and Parquet, with columns that a mapping names or that are guessed."""

from accord.datasets.readers.tables._encoding import ColumnSet, decide_text, encode
from accord.datasets.readers.tables._graphs import TableGraphs, is_table_folder, read_graphs_of, read_table_folder
from accord.datasets.readers.tables._mapping import (
    MAPPING_FILE,
    EdgeTable,
    ItemFile,
    NodeTable,
    TableMapping,
    change_mapping,
    find_mapping,
    mapping_from,
    read_mapping,
)
from accord.datasets.readers.tables._roles import LABEL_PREFIX, is_feature_column, settle
from accord.datasets.readers.tables._table import Table

__all__ = [
    "LABEL_PREFIX",
    "MAPPING_FILE",
    "ColumnSet",
    "EdgeTable",
    "ItemFile",
    "NodeTable",
    "Table",
    "TableGraphs",
    "TableMapping",
    "change_mapping",
    "decide_text",
    "encode",
    "find_mapping",
    "is_feature_column",
    "is_table_folder",
    "mapping_from",
    "read_graphs_of",
    "read_mapping",
    "read_table_folder",
    "settle",
]
