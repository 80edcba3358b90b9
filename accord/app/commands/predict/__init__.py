"""`accord predict`: labels for new graphs, as one table, or as a folder of blocks that many workers write."""

from accord.app.commands.predict._job import predict_blocks
from accord.app.commands.predict._labels import Wanted, predict_graphs
from accord.app.commands.predict._tables import to_csv, write_columns

__all__ = ["Wanted", "predict_blocks", "predict_graphs", "to_csv", "write_columns"]
