"""Graphs in folders of Parquet files, which several processes read together."""

from accord.distributed.tables._files import open_table
from accord.distributed.tables._reading import EDGE_FOLDER, NODE_FOLDER, read_parts
from accord.distributed.tables._writing import write_parts

__all__ = ["EDGE_FOLDER", "NODE_FOLDER", "open_table", "read_parts", "write_parts"]
