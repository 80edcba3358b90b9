"""Graphs that are read when they are asked for, so that a training set may be larger than memory."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from typing import overload

from torch import Tensor
from torch_geometric.data import Data

from accord.graphs._batch import GraphBatch

PORTION_NUMBERS = (
    2**22
)  # features, or ends of edges, that a pass over graphs holds at once; a larger graph stands alone


class GraphStream(Sequence[Data], ABC):
    """A sequence of graphs of which none is held: each is read anew whenever it is asked for.

    Subclasses say how many graphs there are and how one of them is read. Reading a graph again must give the same
    content. Either all graphs have tokens, or none.
    """

    @abstractmethod
    def __len__(self) -> int:
        """How many graphs there are."""

    @abstractmethod
    def read(self, number: int) -> Data:
        """One of the graphs, from 0 up to their number."""

    @overload
    def __getitem__(self, place: int) -> Data: ...

    @overload
    def __getitem__(self, place: slice) -> list[Data]: ...

    def __getitem__(self, place: int | slice) -> Data | list[Data]:
        """A graph, or a list of the graphs of a slice."""
        numbers = range(len(self))[place]
        return self.read(numbers) if isinstance(numbers, int) else [self.read(number) for number in numbers]

    def __iter__(self) -> Iterator[Data]:
        """The graphs one after the other."""
        return (self.read(number) for number in range(len(self)))


class _Changed(GraphStream):
    """A stream whose graphs are changed after they have been read."""

    def __init__(self, source: GraphStream, change: Callable[[int, Data], Data]) -> None:
        self.source, self.change = source, change

    def __len__(self) -> int:
        return len(self.source)

    def read(self, number: int) -> Data:
        return self.change(number, self.source.read(number))


def each(graphs: Sequence[Data], change: Callable[[Data], Data]) -> Sequence[Data]:
    """Every graph changed: a list, or of a stream another stream, which changes graphs when they are read."""
    return each_numbered(graphs, lambda _, graph: change(graph))


def each_numbered(graphs: Sequence[Data], change: Callable[[int, Data], Data]) -> Sequence[Data]:
    """The same for a change that depends on the number of the graph."""
    if isinstance(graphs, GraphStream):
        return _Changed(graphs, change)
    return [change(number, graph) for number, graph in enumerate(graphs)]


def portions_of(graphs: Sequence[Data]) -> Iterator[list[Data]]:
    """Consecutive graphs in lists of bounded size, for passes over all of them."""
    portion: list[Data] = []
    features = ends = 0
    for graph in graphs:
        own = [value.numel() if isinstance(value, Tensor) else 0 for value in (graph.x, graph.edge_index)]
        features, ends = features + own[0], ends + own[1]
        if portion and max(features, ends) > PORTION_NUMBERS:
            yield portion
            portion, features, ends = [], *own
        portion.append(graph)
    if portion:
        yield portion


def batches_of(graphs: Sequence[Data]) -> Iterator[GraphBatch]:
    """The graphs in batches, for passes over all of them: one batch of a list, several of a stream."""
    portions = portions_of(graphs) if isinstance(graphs, GraphStream) else [graphs]
    return (GraphBatch.collate(portion) for portion in portions)
