"""A short code for the content of graphs, to tell whether two jobs use the same data."""

from collections.abc import Iterable, Iterator

import torch
from torch import Tensor
from torch_geometric.data import Data

from accord._files import fingerprint
from accord.graphs._masks import MASKS
from accord.graphs.sequences import has_tokens


def fingerprint_graphs(graphs: Iterable[Data]) -> str:
    """A code for features, edges, labels, edge attributes and masks of graphs; it changes if any number does."""
    return fingerprint(part for graph in graphs for part in _parts(graph))


def _parts(graph: Data) -> Iterator[bytes | str]:
    for key in ("x", "edge_index", "y", "edge_attr", *MASKS):
        value = graph.get(key)
        if isinstance(value, Tensor):
            yield f"{key} {list(value.shape)} {value.dtype}"
            # As bytes: NumPy has no bfloat16.
            yield value.detach().cpu().flatten().contiguous().view(torch.uint8).numpy().tobytes()
    if has_tokens(graph):
        yield "tokens"
        yield "\n".join(graph.tokens)
