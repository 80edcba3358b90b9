"""Graphs in folders of Parquet files, which several processes read together."""

from accord.distributed.tables._reading import read_parts
from accord.distributed.tables._writing import write_parts

__all__ = ["read_parts", "write_parts"]
