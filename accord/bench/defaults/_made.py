"""Tasks made from a seed, without files: each has a trait of own data that the other tasks lack."""

from collections.abc import Callable

import numpy as np
import torch
from torch_geometric.data import Data

Rng = np.random.Generator
Splits = tuple[list[Data], list[Data], list[Data]]


def make_grids(seed: int) -> tuple[Splits, int]:
    """Direction decides: a label is that of the left neighbour plus one, or that of the upper one.

    Edges are stored once, to the right and downwards. Features show a label with much noise.
    """
    return _split(_grid, (60, 30, 60), seed), GRID_STATES


def make_signed_edges(seed: int) -> tuple[Splits, int]:
    """Edge attributes decide: the first one tells with noise whether labels are equal, the second tells nothing."""
    return _split(_signed_edges, (40, 20, 40), seed), 2


def make_fraud(seed: int) -> tuple[Splits, int]:
    """A rare label, 3 % of the nodes, told by the neighbours' features more than by a node's own."""
    return _split(_fraud, (30, 15, 30), seed), 2


def make_few_graphs(seed: int) -> tuple[Splits, int]:
    """Ten training graphs of eight nodes, four for validation; neighbours tend to have equal labels."""
    return _split(_communities, (10, 4, 60), seed), 2


MADE: dict[str, Callable[[int], tuple[Splits, int]]] = {
    "grids": make_grids,
    "signed-edges": make_signed_edges,
    "fraud": make_fraud,
    "few-graphs": make_few_graphs,
}
GRID_SIZE, GRID_STATES = 6, 4
SHARE_OF_FRAUD, MARKED = 0.03, 3  # MARKED: neighbours of a fraud whose second feature shows it


def _split(make: Callable[[Rng], Data], counts: tuple[int, int, int], seed: int) -> Splits:
    rng = np.random.default_rng(seed)
    train, val, test = ([make(rng) for _ in range(count)] for count in counts)
    return train, val, test


def _grid(rng: Rng) -> Data:
    y = np.zeros((GRID_SIZE, GRID_SIZE), dtype=np.int64)
    for row, column in np.ndindex(y.shape):
        rules = []
        if column:
            rules.append((y[row, column - 1] + 1) % GRID_STATES)
        if row:
            rules.append(y[row - 1, column])
        obeys = rules and rng.random() < 0.95
        y[row, column] = rng.choice(rules) if obeys else rng.integers(GRID_STATES)
    places = np.arange(y.size).reshape(y.shape)
    right, down = (places[:, :-1], places[:, 1:]), (places[:-1], places[1:])
    edges = np.concatenate([np.stack([a.ravel(), b.ravel()]) for a, b in (right, down)], axis=1)
    labels = y.ravel()
    return _data(np.eye(GRID_STATES)[labels] + rng.normal(size=(y.size, GRID_STATES)), labels, edges)


def _signed_edges(rng: Rng, nodes: int = 24) -> Data:
    y = rng.integers(0, 2, nodes)
    edges = _pairs(rng.random((nodes, nodes)) < 0.15)
    sign = np.where(y[edges[0]] == y[edges[1]], 1.0, -1.0) + 0.4 * rng.normal(size=edges.shape[1])
    attributes = np.stack([sign, rng.normal(size=len(sign))], axis=1)
    x = np.stack([y + rng.normal(size=nodes), rng.normal(size=nodes)], axis=1)
    data = _data(x, y, np.concatenate([edges, edges[::-1]], axis=1))
    data.edge_attr = torch.from_numpy(np.concatenate([attributes, attributes])).float()
    return data


def _fraud(rng: Rng, nodes: int = 100) -> Data:
    y = (rng.random(nodes) < SHARE_OF_FRAUD).astype(np.int64)
    linked = np.zeros((nodes, nodes), dtype=bool)
    linked[np.arange(nodes).repeat(2), rng.integers(0, nodes, 2 * nodes)] = True
    mark = np.zeros(nodes)
    for node in y.nonzero()[0]:
        near = rng.choice((y == 0).nonzero()[0], MARKED)
        linked[node, near], mark[near] = True, 1
    edges = _pairs(linked | linked.T)
    noise = rng.normal(size=(nodes, 3))
    x = noise * [1.0, 0.7, 1.0] + np.stack([0.7 * y, 1.5 * mark, np.zeros(nodes)], axis=1)
    return _data(x, y, np.concatenate([edges, edges[::-1]], axis=1))


def _communities(rng: Rng, nodes: int = 8) -> Data:
    y = rng.integers(0, 2, nodes)
    edges = _pairs(rng.random((nodes, nodes)) < np.where(y[:, None] == y, 0.6, 0.1))
    return _data(np.eye(2)[y] + rng.normal(size=(nodes, 2)), y, np.concatenate([edges, edges[::-1]], axis=1))


def _pairs(linked: np.ndarray) -> np.ndarray:
    """[2, edges], each pair of nodes once."""
    return np.stack(np.triu(linked, 1).nonzero())


def _data(x: np.ndarray, y: np.ndarray, edges: np.ndarray) -> Data:
    index = torch.from_numpy(np.ascontiguousarray(edges)).long()
    return Data(x=torch.from_numpy(x).float(), y=torch.from_numpy(y).long(), edge_index=index)
