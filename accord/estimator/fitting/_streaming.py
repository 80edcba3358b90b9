"""What `fit` cannot do with training graphs that are streamed from disk."""

from collections.abc import Sequence

from torch_geometric.data import Data

from accord.errors import GraphError, OptionError
from accord.graphs import GraphStream

REASONS = {
    "search": "trains many settings at the same time, each of which would read all graphs",
    "refit": "trains on training and validation graphs in one list",
    "unlabelled": "trains on training and labelled graphs in one list",
}


def check_streaming(graphs: object, validation: Sequence[Data] | None, **asked: object) -> None:
    """Refuse what needs all training graphs in memory, where they are streamed.

    Args:
        graphs: given to `fit`.
        validation: likewise.
        asked: what else is asked for, by the names in `REASONS`; None and False for not at all.
    """
    if not isinstance(graphs, GraphStream):
        return
    if validation is None:
        raise GraphError(
            "NodeClassifier.fit: training graphs are streamed from disk, so none of them are held out. Give validation "
            "graphs (on the command line: put them into val/)."
        )
    for name, value in asked.items():
        if value is not None and value is not False:
            raise OptionError(
                f"NodeClassifier.fit: {name} {REASONS[name]}, but training graphs are streamed from disk. Leave out "
                f"{name}, or give a list of graphs (on the command line: leave out --stream)."
            )
