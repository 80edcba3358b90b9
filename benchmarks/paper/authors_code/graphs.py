"""Graphs of a benchmark in one batch for each part, as the authors' published code has them."""

from dataclasses import dataclass

import torch
from torch import Tensor

from accord.datasets import load_benchmark
from accord.evaluation import graph_accuracy, node_accuracy
from accord.graphs import GraphBatch

MEASURES = ("graph", "node")
Scores = dict[str, float]


@dataclass(frozen=True)
class Part:
    """Graphs of a part of a set; arcs are all edges in one direction, then all in the other."""

    batch: GraphBatch
    x: Tensor
    y: Tensor
    arcs: Tensor

    def scores(self, labels: Tensor) -> Scores:
        """Graph and node accuracy of labels."""
        graph = graph_accuracy(labels[None], self.y[None], self.batch.topology)
        return {"graph": float(graph), "node": float(node_accuracy(labels[None], self.y[None]))}


def parts_of(benchmark: str, features: str = "row-normalised") -> tuple[list[Part], int]:
    """Training, validation and test graphs, and the number of states."""
    bench = load_benchmark(benchmark, features=features)
    found = []
    for graphs in (bench.train, bench.val, bench.test):
        batch = GraphBatch.collate(graphs)
        ends = batch.topology.edge_index
        assert batch.y is not None
        found.append(Part(batch, batch.x.float(), batch.y.long().reshape(-1), torch.cat([ends, ends.flip(0)], 1)))
    return found, bench.num_states
