"""Validation data where none is given: some training graphs, or some nodes of a single one."""

import math
from collections.abc import Sequence

import torch
from torch_geometric.data import Data

from accord.errors import GraphError

SHARE = 0.2


def hold_out(graphs: Sequence[Data], seed: int) -> tuple[list[Data], list[Data]]:
    """Split into training and validation: a fifth of the graphs, or of a single graph's labelled nodes."""
    generator = torch.Generator().manual_seed(seed)
    if len(graphs) > 1:
        order = torch.randperm(len(graphs), generator=generator).tolist()
        count = max(1, math.floor(SHARE * len(graphs)))
        return [graphs[i] for i in sorted(order[count:])], [graphs[i] for i in sorted(order[:count])]
    graph = graphs[0]
    if graph.y is None:
        raise GraphError("hold_out: the training graph has no labels `y`.")
    rows = graph.y if graph.y.dim() == 2 else graph.y[:, None]
    known = (rows >= 0).any(1).nonzero().flatten()
    if known.numel() < 2:
        raise GraphError("hold_out: a single training graph needs at least two labelled nodes. Give validation graphs.")
    order = known[torch.randperm(known.numel(), generator=generator)]
    held = torch.zeros(rows.shape[0], dtype=torch.bool)
    held[order[: max(1, math.floor(SHARE * known.numel()))]] = True
    train, validation = graph.clone(), graph.clone()
    # The same graph twice, each with the other's labels hidden.
    train.y = graph.y.masked_fill(held if graph.y.dim() == 1 else held[:, None], -1)
    validation.y = graph.y.masked_fill(~held if graph.y.dim() == 1 else ~held[:, None], -1)
    return [train], [validation]
