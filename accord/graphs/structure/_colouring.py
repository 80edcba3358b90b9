"""Node colourings: nodes of one colour share no edge, so they can be updated at the same time."""

import numpy as np
import torch
from torch import Tensor


def colour_nodes(edge_index: Tensor, num_nodes: int) -> list[Tensor]:
    """Split the nodes into classes without inner edges (greedy, by random priorities; Jones and Plassmann 1993).

    Returns one index tensor per colour, on the device of `edge_index`. Deterministic.
    """
    source, target = edge_index.cpu().numpy()
    priority = np.random.default_rng(0).permutation(num_nodes)
    colour = np.full(num_nodes, -1)
    waiting = np.arange(num_nodes)
    round_ = 0
    while waiting.size:
        # A node whose priority is higher than that of every uncoloured neighbour takes this round's colour.
        open_ = (colour[source] < 0) & (colour[target] < 0)
        source, target = source[open_], target[open_]
        highest = np.full(num_nodes, -1)
        np.maximum.at(highest, source, priority[target])
        np.maximum.at(highest, target, priority[source])
        ready = waiting[priority[waiting] > highest[waiting]]
        colour[ready] = round_
        waiting = waiting[colour[waiting] < 0]
        round_ += 1
    device = edge_index.device
    return [torch.from_numpy(np.flatnonzero(colour == c)).to(device) for c in range(round_)]
