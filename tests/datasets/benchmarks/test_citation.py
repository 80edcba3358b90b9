import pickle

import numpy as np
import pytest
import scipy.sparse
import torch
from torch_geometric.data import Data

from accord.datasets import load_benchmark
from accord.errors import GraphError

FILES = {name: f"planetoid_{name[:-1]}.npz" for name in ("cora*", "citeseer*", "pubmed*")}
ON_FILES = [pytest.param(name, marks=pytest.mark.data(file)) for name, file in FILES.items()]


def small_network(num_nodes: int = 12) -> Data:
    """A ring with chords, in the form of PyG's Planetoid: float features, long labels, three masks."""
    ring = torch.stack([torch.arange(num_nodes), (torch.arange(num_nodes) + 1) % num_nodes])
    chord = torch.tensor([[0, 3], [2, 7]])
    once = torch.cat([ring, chord], 1)
    generator = torch.Generator().manual_seed(0)
    masks = torch.arange(num_nodes) % 3
    return Data(
        x=torch.rand(num_nodes, 5, generator=generator).round(),
        y=torch.arange(num_nodes) % 7,
        edge_index=torch.cat([once, once.flip(0)], 1),
        train_mask=masks == 0,
        val_mask=masks == 1,
        test_mask=masks == 2,
    )


def write_npz(path, network: Data, with_values: bool = True) -> None:
    """The same network as a file."""
    sparse = scipy.sparse.csr_matrix(network.x.numpy())
    values = {"x_data": sparse.data} if with_values else {}
    np.savez(
        path,
        x_indptr=sparse.indptr,
        x_indices=sparse.indices.astype(np.int16),
        x_shape=np.array(network.x.shape),
        y=network.y.numpy(),
        edge_index=network.edge_index.int().numpy(),
        **{f"{split}_idx": network[f"{split}_mask"].nonzero().flatten().numpy() for split in ("train", "val", "test")},
        **values,
    )


def assert_same_graphs(left: list[Data], right: list[Data]) -> None:
    assert len(left) == len(right)
    for one, other in zip(left, right, strict=True):
        for key in ("x", "y", "edge_index", "node_id"):
            assert torch.equal(one[key], other[key])


def test_pyg_and_a_file_give_the_same_graphs(no_files, monkeypatch):
    network = small_network()
    roots = []

    class Planetoid:
        def __init__(self, root, name, split):
            roots.append(root)
            assert (name, split) == ("Cora", "public")

        def __getitem__(self, index):
            assert index == 0
            return network

    monkeypatch.setattr("torch_geometric.datasets.Planetoid", Planetoid)
    fetched = load_benchmark("cora*")
    assert roots == [str(no_files / "pyg" / "planetoid")]
    assert fetched.source == "torch_geometric.datasets.Planetoid('Cora')"

    write_npz(no_files / "planetoid_cora.npz", network)
    read = load_benchmark("cora*")
    assert read.source == "planetoid_cora.npz" and len(roots) == 1
    for split in ("train", "val", "test"):
        assert_same_graphs(getattr(fetched, split), getattr(read, split))


def test_pygs_own_class_reads_its_raw_files(no_files):
    """The real class on made raw files, as a download would leave them; only the network is left out."""
    random = np.random.default_rng(0)
    num_train, num_seen, num_test = 6, 510, 20  # the class takes the 500 nodes after the training ones to validate
    num_nodes = num_seen + num_test
    features = scipy.sparse.csr_matrix(random.integers(0, 2, (num_nodes, 8)).astype(np.float32))
    labels = np.eye(7, dtype=np.int32)[random.integers(0, 7, num_nodes)]
    linked = {node: [(node + 1) % num_nodes, (node - 1) % num_nodes] for node in range(num_nodes)}
    parts = {
        "x": features[:num_train],
        "y": labels[:num_train],
        "allx": features[:num_seen],
        "ally": labels[:num_seen],
        "tx": features[num_seen:],
        "ty": labels[num_seen:],
        "graph": linked,
    }
    raw = no_files / "pyg" / "planetoid" / "Cora" / "raw"
    raw.mkdir(parents=True)
    for name, part in parts.items():
        (raw / f"ind.cora.{name}").write_bytes(pickle.dumps(part))
    (raw / "ind.cora.test.index").write_text("".join(f"{node}\n" for node in range(num_seen, num_nodes)))

    benchmark = load_benchmark("cora*")
    assert [len(split) for split in (benchmark.train, benchmark.val, benchmark.test)] == [num_train, 500, num_test]
    first = benchmark.test[0]
    assert first.node_id.tolist() == [num_seen, num_seen - 1, num_seen + 1]
    assert torch.equal(first.x, torch.from_numpy(features.toarray()[first.node_id.numpy()]))
    assert first.y.tolist() == labels.argmax(1)[first.node_id.numpy()].tolist()


def test_files_without_values_hold_ones(no_files):
    network = small_network()
    write_npz(no_files / "planetoid_pubmed.npz", network, with_values=False)
    with pytest.raises(GraphError, match="pubmed\\* has 1, from 0 to 2"):  # seven topics are not Pubmed's
        load_benchmark("pubmed*")
    write_npz(no_files / "planetoid_cora.npz", network, with_values=False)
    ego = load_benchmark("cora*").train[0]
    assert torch.equal(ego.x, network.x[ego.node_id])


@pytest.mark.parametrize("name", ON_FILES)
def test_real_graphs_are_as_promised(name):
    benchmark = load_benchmark(name)
    states = set()
    for graph in (*benchmark.train, *benchmark.val, *benchmark.test):
        assert graph.y.dtype == torch.long and graph.y.shape == (graph.num_nodes,)
        assert graph.x.dtype == torch.float and graph.x.shape == (graph.num_nodes, benchmark.num_features)
        assert graph.node_id.shape == (graph.num_nodes,) and graph.centre == 0
        # A star at least: the ego node is linked to all others.
        assert int((graph.edge_index[0] == 0).sum()) == graph.num_nodes - 1
        states |= set(graph.y.tolist())
    assert states == set(range(benchmark.num_states))
    assert (benchmark.level, benchmark.num_tasks) == ("graph", 1)


@pytest.mark.parametrize("name", ON_FILES)
def test_a_node_looks_the_same_in_every_graph_it_is_in(name):
    benchmark = load_benchmark(name, features="standardised")
    seen: dict[int, tuple[torch.Tensor, int]] = {}
    for graph in (*benchmark.train, *benchmark.val, *benchmark.test):
        for node, x, y in zip(graph.node_id.tolist(), graph.x, graph.y.tolist(), strict=True):
            if node in seen:
                assert torch.equal(seen[node][0], x) and seen[node][1] == y
            seen[node] = (x, y)


@pytest.mark.parametrize("name", ON_FILES)
def test_standardising_counts_each_training_node_once(name):
    benchmark = load_benchmark(name, features="standardised")
    rows = {node: x for graph in benchmark.train for node, x in zip(graph.node_id.tolist(), graph.x, strict=True)}
    x = torch.stack(list(rows.values())).double()
    deviation = x.std(0, correction=0)
    torch.testing.assert_close(x.mean(0), torch.zeros_like(deviation), atol=1e-4, rtol=0)
    assert bool(((deviation - 1).abs().lt(1e-4) | (deviation < 1e-6)).all())
    assert all(bool(graph.x.isfinite().all()) for graph in benchmark.test)


@pytest.mark.data("planetoid_cora.npz")
def test_overlap_with_training_graphs_can_be_told_from_node_ids():
    benchmark = load_benchmark("cora*")
    seen = torch.cat([graph.node_id for graph in benchmark.train])
    nodes = torch.cat([graph.node_id for graph in benchmark.test])
    assert float(torch.isin(nodes, seen).float().mean()) == pytest.approx(0.31, abs=0.005)
