"""Graphs on their way into a model: columns in the order of training, and portions that fit into memory."""

from collections.abc import Iterator, Sequence

from torch_geometric.data import Data

from accord.errors import GraphError

PORTION_NUMBERS = 2**25  # entries of edge tables solved at once; the sweeps hold a few times as much
SHOWN_NAMES = 8


def in_order(graph: Data, names: Sequence[str] | None) -> Data:
    """The graph with its feature columns in the order of `names`; by position where either has no names.

    Columns that the model does not know are left out.
    """
    own = graph.get("feature_names")
    if own is None or names is None or list(own) == list(names):
        return graph
    missing = [name for name in names if name not in own]
    if missing:
        raise GraphError(
            f"NodeClassifier: the graph has no feature {_listed(missing)}, on which the model was trained. "
            f"It has {_listed(own)}."
        )
    column = {name: place for place, name in enumerate(own)}
    ordered = graph.clone()
    ordered.x = graph.x[:, [column[name] for name in names]]
    ordered.feature_names = list(names)
    return ordered


def portions(graphs: Sequence[Data], numbers_per_edge: int) -> Iterator[list[Data]]:
    """Lists of graphs whose edge tables together hold a bounded count of numbers; a larger graph stands alone."""
    portion: list[Data] = []
    size = 0
    for graph in graphs:
        columns = 0 if graph.edge_index is None else int(graph.edge_index.shape[1])
        numbers = numbers_per_edge * max(columns, 1)
        if portion and size + numbers > PORTION_NUMBERS:
            yield portion
            portion, size = [], 0
        portion.append(graph)
        size += numbers
    yield portion


def _listed(names: Sequence[str]) -> str:
    more = ", .." if len(names) > SHOWN_NAMES else ""
    return ", ".join(repr(name) for name in names[:SHOWN_NAMES]) + more
