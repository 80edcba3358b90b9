"""Graphs of triangles whose labels follow a known field of order 3: generated data on which pairs tell nothing.

As in the card game Set: of three linked nodes, either all labels are equal or all differ. Each two labels of a triangle
are independent of each other, but they determine the third. Features are noisy, so neighbours help to recognise a
label, though only three at a time. The field that generated the labels is known, and so is the best possible result.
"""

import math
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor
from torch_geometric.data import Data

from accord.datasets.benchmarks import Benchmark
from accord.errors import OptionError
from accord.field import PairwiseField
from accord.field.triangles import TriangleField
from accord.graphs import graph_topology, topology_triangles

NUM_STATES = 3


@dataclass(frozen=True)
class TriplesTruth:
    """The field that generated the labels, and the distribution of features given a label."""

    triangle: Tensor  # [states, states, states], log-potential of every triangle
    noise: float  # standard deviation of the features around the unit vector of the label

    def field(self, data: Data, evidence: bool = True) -> TriangleField:
        """The true field on a graph (or PyG batch): the posterior of its labels, or without evidence the prior."""
        topology = graph_topology(data)
        node = torch.zeros(topology.num_nodes, NUM_STATES, dtype=torch.float64)
        if evidence:
            gap = data.x.double()[:, None] - torch.eye(NUM_STATES, dtype=torch.float64)
            node = -gap.square().sum(-1) / (2 * self.noise**2)
        flat = torch.zeros(topology.num_edges, NUM_STATES, NUM_STATES, dtype=torch.float64)
        pairs = PairwiseField(topology.edge_index, node, flat, topology.graph, topology.num_graphs)
        triangles = topology_triangles(topology)
        return TriangleField(pairs, triangles, self.triangle.double().expand(len(triangles), -1, -1, -1))


@dataclass(frozen=True, kw_only=True, repr=False)
class TriplesBenchmark(Benchmark):
    """A benchmark with the field that generated its labels."""

    truth: TriplesTruth


@dataclass(frozen=True, kw_only=True)
class TriplesOptions:
    """How graphs, labels and features are generated."""

    min_triangles: int = 10
    max_triangles: int = 20
    shared: float = 0.5  # of the triangles that share an edge with an earlier one; the others share a node
    faithful: float = 0.97  # probability that the third label follows the rule
    noise: float = 0.8  # standard deviation of the features

    def __post_init__(self) -> None:
        rules = {
            "1 <= min_triangles <= max_triangles": 1 <= self.min_triangles <= self.max_triangles,
            "0 <= shared <= 1": 0 <= self.shared <= 1,
            "1/3 <= faithful < 1": 1 / 3 <= self.faithful < 1,
            "noise > 0": self.noise > 0,
        }
        wrong = next((rule for rule, holds in rules.items() if not holds), None)
        if wrong is not None:
            raise OptionError(f"make_triples: {self} does not satisfy {wrong}. Change one of these settings.")


def make_triples(
    num_train: int = 400,
    num_val: int = 200,
    num_test: int = 300,
    seed: int = 0,
    options: TriplesOptions | None = None,
) -> TriplesBenchmark:
    """Generate graphs of triangles, their labels from a known field, and noisy features.

    The triangles form a tree: each new one shares an edge or a node with an earlier one. So exact inference is easy.

    Args:
        num_train: number of training graphs.
        num_val: number of validation graphs.
        num_test: number of test graphs.
        seed: the same seed gives the same data; each split has its own random stream.
        options: how graphs, labels and features are generated; None for the defaults.
    """
    for name, count in (("num_train", num_train), ("num_val", num_val), ("num_test", num_test)):
        if count < 1:
            raise OptionError(f"make_triples: {name} is {count}, but each split needs at least one graph.")
    options = options or TriplesOptions()
    train, val, test = (
        [_draw_graph(options, stream) for _ in range(count)]
        for count, stream in zip((num_train, num_val, num_test), np.random.default_rng(seed).spawn(3), strict=True)
    )
    return TriplesBenchmark(
        name="triples",
        train=train,
        val=val,
        test=test,
        num_states=NUM_STATES,
        num_tasks=1,
        level="node",
        counted="edges",
        source=f"make_triples(seed={seed}): trees of triangles",
        label_names=["red", "green", "blue"],
        truth=TriplesTruth(rule_potential(options.faithful), options.noise),
    )


def rule_potential(faithful: float) -> Tensor:
    """Log-potential [states, states, states] under which the third label follows the rule with this probability."""
    sums = torch.arange(NUM_STATES)
    total = sums[:, None, None] + sums[None, :, None] + sums[None, None, :]
    # Of three states that are all equal or all different, and of no others, the numbers sum to a multiple of three.
    return torch.where(total % NUM_STATES == 0, math.log(2 * faithful / (1 - faithful)), 0.0)


def _draw_graph(options: TriplesOptions, random: np.random.Generator) -> Data:
    """A tree of triangles, with the label of each new node drawn given those of the triangle that it closes."""
    count = int(random.integers(options.min_triangles, options.max_triangles + 1))
    labels = [int(random.integers(NUM_STATES))]
    edges: list[tuple[int, int]] = []
    for number in range(count):
        if number and random.random() < options.shared:
            first, second = edges[int(random.integers(len(edges)))]
        else:
            first, second = int(random.integers(len(labels))), len(labels)
            labels.append(int(random.integers(NUM_STATES)))
            edges.append((first, second))
        third = len(labels)
        missing = -(labels[first] + labels[second]) % NUM_STATES
        strays = random.random() >= options.faithful
        labels.append((missing + int(random.integers(1, NUM_STATES))) % NUM_STATES if strays else missing)
        edges += [(first, third), (second, third)]
    once = torch.tensor(edges).t()
    y = torch.tensor(labels)
    noise = torch.from_numpy(random.normal(0, options.noise, (len(labels), NUM_STATES)))
    x = (torch.eye(NUM_STATES)[y] + noise).float()
    return Data(x=x, y=y, edge_index=torch.cat([once, once.flip(0)], 1))
