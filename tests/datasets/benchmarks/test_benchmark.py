import torch
from torch_geometric.data import Data

from accord.datasets import Benchmark, SplitStatistics


def chain(num_nodes: int) -> Data:
    once = torch.stack([torch.arange(num_nodes - 1), torch.arange(1, num_nodes)])
    return Data(x=torch.ones(num_nodes, 4), edge_index=torch.cat([once, once.flip(0)], 1))


def made(counted) -> Benchmark:
    return Benchmark(
        name="made",
        train=[chain(2), chain(5)],
        val=[chain(3)],
        test=[],
        num_states=2,
        num_tasks=1,
        level="node",
        counted=counted,
        source="a test",
    )


def test_statistics_count_edges_or_arcs():
    assert made("edges").statistics() == {
        "train": SplitStatistics(2, 3.5, 2.5, "edges"),
        "val": SplitStatistics(1, 3.0, 2.0, "edges"),
        "test": SplitStatistics(0, 0.0, 0.0, "edges"),
    }
    assert made("arcs").statistics()["train"] == SplitStatistics(2, 3.5, 5.0, "arcs")


def test_it_knows_its_features_and_prints_short():
    benchmark = made("edges")
    assert benchmark.num_features == 4
    assert repr(benchmark) == "Benchmark('made', train=2, val=1, test=0, source='a test')"
