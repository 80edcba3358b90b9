"""Graphs in blocks: ranges of a folder's files or of Parquet rows that can be read one by one, on any machine."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from torch_geometric.data import Data

from accord.datasets.readers._graphs import FORMS, Reading, Source, graph_entries, read_sources, to_data
from accord.datasets.readers._parquet import count_graphs, is_graph_file, read_parquet_graphs
from accord.datasets.readers.tables import TableMapping, find_mapping
from accord.errors import DataNotFoundError, OptionError
from accord.graphs import GraphColumns

DIGITS = 9  # of the numbers in a block's name, so that names sort like numbers


@dataclass(frozen=True)
class Piece:
    """A file or folder with one entry; of a Parquet file, the rows from `first` up to, but not including, `last`."""

    path: Path
    first: int = 0
    last: int | None = None

    def read(self, way: Reading) -> list[Source]:
        """Its graphs, with text and labels as the file has them."""
        if self.last is None:
            return read_sources(self.path, way)
        return list(read_parquet_graphs(self.path, self.first, self.last))

    def places(self, count: int) -> list[str]:
        """Where each of its graphs is, for messages."""
        if self.last is None:
            return [f"{self.path}, graph {number + 1}" if count > 1 else str(self.path) for number in range(count)]
        return [f"{self.path}, row {row + 1}" for row in range(self.first, self.last)]


@dataclass(frozen=True)
class GraphBlock:
    """Consecutive entries of a source: a Parquet row is an entry, and so is any other file or folder of tables.

    Attributes:
        first: number of its first entry in the source.
        last: number of the entry after its last.
        pieces: where the entries are.
    """

    first: int
    last: int
    pieces: tuple[Piece, ...]

    @property
    def name(self) -> str:
        """Its range as text, unique in the source."""
        return f"{self.first:0{DIGITS}d}-{self.last:0{DIGITS}d}"


def graph_blocks(path: str | Path, size: int, mapping: TableMapping | None = None) -> list[GraphBlock]:
    """Divide the graphs at a path into blocks of so many entries; the last may be smaller. No graph is read.

    Args:
        path: a graph, a Parquet file of many graphs, or a folder of either.
        size: entries of a block.
        mapping: which tables hold what; None looks for a mapping file.
    """
    if size < 1:
        raise OptionError(f"blocks: the size is {size}; a positive number of graphs is needed.")
    path = Path(path).resolve()  # a worker may have another working directory
    if not path.exists():
        raise DataNotFoundError(f"{path}: there is no such file or folder. Give {FORMS}.")
    found: list[GraphBlock] = []
    pieces: list[Piece] = []
    first = filled = 0

    def close() -> None:
        nonlocal first, filled
        if filled:
            found.append(GraphBlock(first, first + filled, tuple(pieces)))
            first, filled = first + filled, 0
            pieces.clear()

    for entry in graph_entries(path, mapping or find_mapping(path)):
        if not is_graph_file(entry):
            pieces.append(Piece(entry))
            filled += 1
        else:
            row, rows = 0, count_graphs(entry)
            while row < rows:
                taken = min(size - filled, rows - row)
                pieces.append(Piece(entry, row, row + taken))
                row, filled = row + taken, filled + taken
                if filled == size:
                    close()
        if filled == size:
            close()
    close()
    return found


def read_block(
    block: GraphBlock,
    label_names: Sequence[str] | None = None,
    with_labels: bool = True,
    mapping: TableMapping | None = None,
    columns: GraphColumns | None = None,
) -> list[Data]:
    """Read the graphs of a block; the arguments are those of `read_graph`.

    Without the `columns` of a fitted model, columns of text are encoded by what this block contains.
    """
    sources: list[Source] = []
    way = replace(Reading.of(block.pieces[0].path, mapping, columns), labels=with_labels)
    for piece in block.pieces:
        sources += piece.read(way)
    return to_data(sources, label_names, with_labels, way)
