"""Fields for the tests of `maximise`: small random ones with known optima, glasses and colourings."""

import numpy as np
import torch

from accord import PairwiseField


def small_fields(num_graphs, seed, forbidden=0.25, states=3, largest=6):
    """A batch of small loopy graphs. Half have forbidden states and pairs, and all have an allowed labelling."""
    rng = np.random.default_rng(seed)
    ends, node, edge, graph = [], [], [], []
    for name in range(num_graphs):
        size = rng.integers(2, largest + 1)
        pairs = [(a, b) for a in range(size) for b in range(a)]
        chosen = [pairs[i] for i in rng.permutation(len(pairs))[: rng.integers(1, len(pairs) + 1)]]
        planted = rng.integers(states, size=size)
        own = rng.normal(size=(size, states)) * rng.choice([0, 1, 3])
        tables = np.round(rng.normal(size=(len(chosen), states, states)) * rng.choice([0.5, 2]), rng.choice([0, 6]))
        tables += rng.choice([0.0, -50.0])
        if rng.random() < 0.5:
            barred = rng.random(own.shape) < forbidden
            barred[np.arange(size), planted] = False
            own[barred] = -np.inf
            barred = rng.random(tables.shape) < forbidden
            for position, (a, b) in enumerate(chosen):
                barred[position, planted[a], planted[b]] = False
            tables[barred] = -np.inf
        ends += [(a + len(graph), b + len(graph)) for a, b in chosen]
        node.append(own)
        edge.append(tables)
        graph += [name] * size
    return PairwiseField(
        torch.tensor(ends).t().contiguous(),
        torch.from_numpy(np.concatenate(node)),
        torch.from_numpy(np.concatenate(edge)),
        torch.tensor(graph),
    )


def grid_edges(height, width):
    """Edges of a grid, row by row."""
    places = torch.arange(height * width).reshape(height, width)
    across = torch.stack([places[:, :-1].flatten(), places[:, 1:].flatten()])
    return torch.cat([across, torch.stack([places[:-1].flatten(), places[1:].flatten()])], dim=1)


def glass(size, seed=0, signs=True):
    """An Ising glass on a square grid without evidence: every belief is uniform."""
    generator = torch.Generator().manual_seed(seed)
    edge_index = grid_edges(size, size)
    coupling = torch.randn(edge_index.shape[1], generator=generator, dtype=torch.float64)
    coupling = coupling.sign() if signs else coupling
    agree = torch.tensor([[1.0, -1.0], [-1.0, 1.0]], dtype=torch.float64)
    node = torch.zeros(size * size, 2, dtype=torch.float64)
    return PairwiseField(edge_index, node, coupling[:, None, None] * agree)


def colouring(num_nodes, degree, seed, colours=3):
    """A random graph with a colouring: neighbours must differ."""
    rng = np.random.default_rng(seed)
    planted = rng.integers(colours, size=num_nodes)
    edges = set()
    while len(edges) < degree * num_nodes / 2:
        a, b = rng.integers(num_nodes, size=2)
        if planted[a] != planted[b]:
            edges.add((min(a, b), max(a, b)))
    same = torch.where(torch.eye(colours, dtype=torch.bool), -torch.inf, 0.0)
    return PairwiseField(
        torch.tensor(sorted(edges)).t().contiguous(),
        torch.zeros(num_nodes, colours),
        same.expand(len(edges), colours, colours).clone(),
    )


def transmitters(num_nodes, count, channels, seed):
    """Near transmitters disturb each other on near channels, by 1 to 1000: large domains, and few costs in the best."""
    rng = np.random.default_rng(seed)
    place = rng.random((num_nodes, 2))
    every = np.array([(a, b) for a in range(num_nodes) for b in range(a + 1, num_nodes)])
    near = np.linalg.norm(place[every[:, 0]] - place[every[:, 1]], axis=1).argsort()[:count]
    channel = np.arange(channels)
    apart = np.abs(channel[:, None] - channel)
    gap, weight = rng.integers(1, 5, size=count), 10.0 ** rng.integers(4, size=count)
    return PairwiseField(
        torch.tensor(every[near].T.copy()),
        torch.zeros(num_nodes, channels, dtype=torch.float64),
        torch.tensor(-weight[:, None, None] * (apart < gap[:, None, None])),
    )
