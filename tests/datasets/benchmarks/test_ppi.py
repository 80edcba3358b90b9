import json

import numpy as np
import pytest
import torch
from torch_geometric.data import Data

from accord.datasets import load_benchmark
from accord.datasets.benchmarks._ppi import split_union
from accord.errors import GraphError

TASKS = 121
FILE = pytest.mark.data("ppi_recon.npz")


def made_graphs(count: int = 24) -> list[Data]:
    """Rings in the form of PyG's PPI: float features, float labels of 0 and 1, both directions of each edge."""
    generator = torch.Generator().manual_seed(0)
    graphs = []
    for number in range(count):
        size = 4 + number % 3
        once = torch.stack([torch.arange(size), (torch.arange(size) + 1) % size])
        edge_index = torch.cat([once, once.flip(0)], 1)
        order = (edge_index[0] * size + edge_index[1]).argsort()
        x = torch.randint(2, (size, 3), generator=generator).float()
        y = torch.randint(2, (size, TASKS), generator=generator).float()
        graphs.append(Data(x=x, y=y, edge_index=edge_index[:, order]))
    return graphs


def write_npz(path, graphs: list[Data], num_train: int = 20) -> None:
    sizes = torch.tensor([graph.num_nodes for graph in graphs])
    start = sizes.cumsum(0) - sizes
    number = torch.arange(len(graphs)).repeat_interleave(sizes)
    np.savez(
        path,
        x=torch.cat([graph.x for graph in graphs]).numpy(),
        y=torch.cat([graph.y for graph in graphs]).to(torch.uint8).numpy(),
        edge_index=torch.cat([g.edge_index + s for g, s in zip(graphs, start, strict=True)], 1).int().numpy(),
        graph_id=number.to(torch.uint8).numpy(),
        split=((number >= num_train).int() + (number >= num_train + 2).int()).to(torch.uint8).numpy(),
        gene=np.arange(int(sizes.sum())),
    )


def write_raw(folder, graphs: list[Data]) -> None:
    """The raw files of PyG's PPI, as its download would leave them."""
    folder.mkdir(parents=True)
    for split, part, first in (("train", graphs[:20], 1), ("valid", graphs[20:22], 21), ("test", graphs[22:], 23)):
        sizes = [graph.num_nodes for graph in part]
        start = np.cumsum([0, *sizes])
        pairs = [graph.edge_index.t().numpy() + s for graph, s in zip(part, start, strict=False)]
        links = [{"source": int(s), "target": int(t)} for s, t in np.concatenate(pairs)]
        nodes = [{"id": node} for node in range(int(start[-1]))]
        form = {"directed": True, "multigraph": False, "graph": {}, "nodes": nodes, "links": links}
        (folder / f"{split}_graph.json").write_text(json.dumps(form))
        np.save(folder / f"{split}_feats.npy", np.concatenate([graph.x.numpy() for graph in part]))
        np.save(folder / f"{split}_labels.npy", np.concatenate([graph.y.numpy() for graph in part]))
        np.save(folder / f"{split}_graph_id.npy", np.repeat(np.arange(len(part)) + first, sizes))


def assert_same_graphs(left: list[Data], right: list[Data]) -> None:
    assert len(left) == len(right)
    for one, other in zip(left, right, strict=True):
        assert torch.equal(one.x, other.x) and torch.equal(one.y, other.y)
        arcs = [set(map(tuple, graph.edge_index.t().tolist())) for graph in (one, other)]
        assert arcs[0] == arcs[1] and one.edge_index.shape == other.edge_index.shape


def test_pyg_and_a_file_give_the_same_graphs(no_files, monkeypatch):
    graphs = made_graphs()
    parts = {"train": graphs[:20], "val": graphs[20:22], "test": graphs[22:]}
    calls = []

    def dataset(root, split):
        calls.append((root, split))
        return parts[split]

    monkeypatch.setattr("torch_geometric.datasets.PPI", dataset)
    fetched = load_benchmark("ppi-2")
    assert calls == [(str(no_files / "pyg" / "ppi"), split) for split in parts]
    assert "own labels" in fetched.source

    write_npz(no_files / "ppi_recon.npz", graphs)
    read = load_benchmark("ppi-2")
    assert "rebuilt" in read.source and len(calls) == 3
    for split in parts:
        assert_same_graphs(getattr(fetched, split), getattr(read, split))


def test_pygs_own_class_reads_its_raw_files(no_files):
    """The real class on made raw files; only the network is left out."""
    graphs = made_graphs()
    write_raw(no_files / "pyg" / "ppi" / "raw", graphs)
    benchmark = load_benchmark("ppi", features="raw")
    assert all(graph.y.dtype == torch.long for graph in benchmark.train)
    for split, part in (("train", graphs[:20]), ("val", graphs[20:22]), ("test", graphs[22:])):
        expected = [Data(x=graph.x, y=graph.y.long(), edge_index=graph.edge_index) for graph in part]
        assert_same_graphs(getattr(benchmark, split), expected)


@pytest.mark.parametrize("count", [1, 2, 10, 20])
def test_the_first_graphs_are_kept_and_standardised_by_themselves(no_files, count):
    graphs = made_graphs()
    write_npz(no_files / "ppi_recon.npz", graphs)
    benchmark = load_benchmark(f"ppi-{count}")
    assert [len(part) for part in (benchmark.train, benchmark.val, benchmark.test)] == [count, 2, 2]
    rows = torch.cat([graph.x for graph in graphs[:count]])
    deviation = rows.std(0, correction=0)
    scale = torch.where(deviation == 0, 1.0, deviation)
    for graph, source in zip(
        (*benchmark.train, *benchmark.val, *benchmark.test), (*graphs[:count], *graphs[20:]), strict=True
    ):
        torch.testing.assert_close(graph.x, (source.x - rows.mean(0)) / scale)
        assert torch.equal(graph.y, source.y.long())


def test_ppi_is_all_of_it(no_files):
    write_npz(no_files / "ppi_recon.npz", made_graphs())
    assert load_benchmark("ppi").name == "ppi-20"


def test_too_few_training_graphs_are_named(no_files):
    write_npz(no_files / "ppi_recon.npz", made_graphs(9), num_train=5)
    with pytest.raises(GraphError, match="5 training graphs, but ppi-10 needs 10"):
        load_benchmark("ppi-10")


def test_graphs_are_taken_apart_even_if_their_nodes_are_mixed():
    graph_id = torch.tensor([1, 0, 1, 0])
    edge_index = torch.tensor([[0, 1, 2, 3], [2, 3, 0, 1]])
    first, second = split_union(torch.arange(4.0)[:, None], torch.arange(4), edge_index, graph_id)
    assert first.y.tolist() == [1, 3] and second.y.tolist() == [0, 2]
    assert first.edge_index.tolist() == second.edge_index.tolist() == [[0, 1], [1, 0]]


def test_an_edge_between_two_graphs_is_refused():
    with pytest.raises(GraphError, match="joins two graphs"):
        split_union(torch.ones(2, 1), torch.zeros(2), torch.tensor([[0], [1]]), torch.tensor([0, 1]))


@FILE
def test_real_graphs_are_as_promised():
    benchmark = load_benchmark("ppi-1")
    assert (benchmark.level, benchmark.num_states, benchmark.num_tasks) == ("node", 2, TASKS)
    assert benchmark.num_features == 50 and "labels rebuilt" in benchmark.source
    for graph in (*benchmark.train, *benchmark.val, *benchmark.test):
        assert set(graph.keys()) == {"x", "y", "edge_index", "feature_treatment"}  # no gene: it gives the labels away
        assert graph.y.dtype == torch.long and graph.y.shape == (graph.num_nodes, TASKS)
        assert set(graph.y.unique().tolist()) == {0, 1}
        assert graph.x.dtype == torch.float and bool(graph.x.isfinite().all())
        source, target = graph.edge_index
        assert 0 <= int(graph.edge_index.min()) and int(graph.edge_index.max()) < graph.num_nodes
        key, back = source * graph.num_nodes + target, target * graph.num_nodes + source
        assert torch.equal(key.sort().values, back.sort().values)  # both directions of everything


@FILE
def test_real_training_features_are_standardised_by_the_graphs_in_use():
    for name in ("ppi-1", "ppi-20"):
        x = torch.cat([graph.x for graph in load_benchmark(name).train]).double()
        deviation = x.std(0, correction=0)
        torch.testing.assert_close(x.mean(0), torch.zeros_like(deviation), atol=1e-4, rtol=0)
        assert bool(((deviation - 1).abs().lt(1e-4) | (deviation < 1e-6)).all())


@FILE
def test_raw_features_are_zeros_and_ones_and_larger_sets_contain_smaller_ones():
    small, large = load_benchmark("ppi-2", features="raw"), load_benchmark("ppi-10", features="raw")
    assert set(small.train[0].x.unique().tolist()) == {0.0, 1.0}
    assert_same_graphs(small.train, large.train[:2])
    assert_same_graphs(small.test, large.test)
