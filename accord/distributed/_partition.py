"""Which process owns which node."""

import torch
from torch import Tensor

from accord.errors import OptionError

PARTITIONERS = ("metis", "hash", "blocks")


def partition(edge_index: Tensor, num_nodes: int, parts: int, method: str = "metis") -> Tensor:
    """Divide the nodes of a graph into parts.

    Args:
        edge_index: [2, edges].
        num_nodes: how many nodes there are.
        parts: how many parts to make.
        method: "metis" (few edges between parts; needs pymetis and the whole graph in memory), "hash" (needs the
            number of a node only) or "blocks" (equal runs of consecutive numbers, for graphs whose numbers are local).

    Returns:
        The part of each node [nodes].
    """
    if parts < 1:
        raise OptionError(f"partition: {parts} parts were asked for. Give at least 1.")
    if method == "metis":
        return _metis(edge_index, num_nodes, parts)
    numbers = torch.arange(num_nodes)
    if method == "hash":
        return hash_part(numbers, parts)
    if method == "blocks":
        return numbers * parts // max(num_nodes, 1)
    raise OptionError(f"partition: method {method!r} is unknown. Give one of {', '.join(PARTITIONERS)}.")


def hash_part(numbers: Tensor, parts: int) -> Tensor:
    """The part of nodes by their numbers alone: the same in every process, without the graph.

    Each run of `parts` consecutive nodes is dealt out to all parts, in an order that depends on the run. So parts
    differ by one node at most, and regular graphs are not cut regularly.
    """
    run = numbers // parts
    mixed = (run * 2654435761) & 0xFFFFFFFF
    return (numbers + (mixed ^ (mixed >> 16))) % parts


def _metis(edge_index: Tensor, num_nodes: int, parts: int) -> Tensor:
    try:
        import pymetis
    except ImportError as error:
        raise OptionError(
            "partition: method 'metis' needs the package pymetis. Install accord[distributed], or use method='hash'."
        ) from error
    if parts == 1 or num_nodes == 0:
        return torch.zeros(num_nodes, dtype=torch.long)
    both = torch.cat([edge_index, edge_index.flip(0)], 1)
    both = torch.unique(both[:, both[0] != both[1]], dim=1)  # sorted by source, without loops and duplicates
    starts = torch.searchsorted(both[0].contiguous(), torch.arange(num_nodes + 1))
    _, found = pymetis.part_graph(parts, pymetis.CSRAdjacency(starts.numpy(), both[1].contiguous().numpy()))
    return torch.as_tensor(found, dtype=torch.long)
