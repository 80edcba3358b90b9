"""`benchmarks/paper/network_agreement.py`: its figures by hand, and what it says about the weights in Eq. 5."""

import importlib.util
from pathlib import Path

import pytest
import torch

from accord.experiments.reproduction import Results, Store
from accord.experiments.reproduction._ablation import consistent, make_field
from accord.field import Pseudomarginals
from accord.graphs import topology
from accord.inference import enumerate_beliefs

SCRIPT = Path(__file__).parents[2] / "benchmarks" / "paper" / "network_agreement.py"
EDGES = torch.tensor([[0, 0, 0, 3], [1, 2, 3, 4]])  # degrees 3, 1, 1, 2, 1
TREE = topology(EDGES, 5)


@pytest.fixture(scope="module")
def script():
    spec = importlib.util.spec_from_file_location("network_agreement", SCRIPT)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def scores(seed=0):
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(1, 5, 3, generator=generator), torch.randn(1, 4, 3, 3, generator=generator)


def test_eq5_gives_nodes_the_weight_one_less_degree():
    node, edge = scores()
    field = make_field(node, edge, TREE, "node", 2.0)
    marginals = Pseudomarginals.from_logits(node, edge, 2.0)
    labels = torch.tensor([[0, 2, 1, 1, 0]])
    weights = 1.0 - EDGES.flatten().bincount()
    plain = (weights * marginals.node[0, range(5), labels[0]]).sum()
    plain = plain + sum(marginals.edge[0, e, labels[0, s], labels[0, t]] for e, (s, t) in enumerate(EDGES.T.tolist()))
    torch.testing.assert_close(field.score(labels).flatten()[0], plain)


def test_with_flat_tables_eq5_follows_the_node_network_the_wrong_way():
    node, edge = scores(1)
    beliefs = enumerate_beliefs(make_field(node, edge, TREE, "node", 0.0)).node[0]
    logs = node[0].log_softmax(-1)
    torch.testing.assert_close(beliefs[0], (-2.0 * logs[0]).log_softmax(-1))
    torch.testing.assert_close(beliefs[1], torch.full((3,), 1 / 3).log())  # a node with one edge says nothing
    torch.testing.assert_close(beliefs[3], (-1.0 * logs[3]).log_softmax(-1))


def test_consistent_tables_repeat_the_node_network():
    node, edge = scores(2)
    marginals = consistent(Pseudomarginals.from_logits(node, edge), EDGES)
    field = make_field(marginals.node, marginals.edge, TREE, "node", 1.0)
    torch.testing.assert_close(enumerate_beliefs(field).node[0], node[0].log_softmax(-1), atol=1e-4, rtol=0)


def test_the_figures_by_hand(script):
    """Three nodes with edges and one without; the edge network wins over one error and spoils nothing."""
    y, edge_index = torch.tensor([0, 1, 1, 0]), torch.tensor([[0, 1], [1, 2]])
    node = torch.tensor([[2.0, 0.0], [1.0, 0.0], [0.0, 1.0], [0.0, 9.0]])  # node 1 is wrong, and 3, which has no edge
    edge = torch.tensor([[[0.0, 3.0], [0.0, 0.0]], [[0.0, 0.0], [3.0, 0.0]]])  # says 0-1, then 1-0
    graph = torch.tensor([0, 0, 0, 1])
    found = script.measure(node, edge, torch.tensor([0, 1, 0, 0]), y, edge_index, graph)
    assert (found["one wrong"], found["won"], found["lost"]) == (100.0, 50.0, 0.0)
    worse = script.measure(node, edge, torch.tensor([0, 1, 1, 1]), torch.tensor([0, 0, 1, 1]), edge_index, graph)
    assert (worse["won"], worse["lost"]) == (0.0, 50.0)
    third = pytest.approx(100 / 3)
    assert found["gnn"] == pytest.approx(200 / 3) and found["edge"] == pytest.approx(200 / 3)
    assert (found["rescued"], found["harmed"]) == (100.0, 50.0)
    assert (found["corrected"], found["spoiled"]) == (third, third)
    tables = edge.flatten(1).softmax(-1).view(2, 2, 2)
    sums = [tables[0].sum(1), tables[1].sum(1), tables[0].sum(0), tables[1].sum(0)]
    gaps = [(node[v].softmax(-1) - own).abs().sum() / 2 for v, own in zip((0, 1, 1, 2), sums, strict=True)]
    assert found["distance"] == pytest.approx(100 * float(sum(gaps)) / 4)


def test_what_pages_say_about_eq5_is_what_the_store_holds(script, monkeypatch):
    """Flat tables are the worst; sharp ones of GraphSAGE and U-Net are within a point of the GNN, or above it."""
    monkeypatch.chdir(SCRIPT.parents[2])
    rows = script.eq5_rows(Results(*Store(script.STORE).read()))
    assert len(rows) >= 12
    for _, encoder, gnn, *by_sharpness in rows:
        scores = [float(told.strip("*")) for told in by_sharpness]
        assert scores[0] == min(scores)
        if encoder in ("sage", "unet"):
            assert scores[-1] >= float(gnn) - 1.0
        if encoder == "gat":
            assert max(scores) < float(gnn) - 5.0


def test_the_committed_page_is_written_from_its_records_and_the_store(script, monkeypatch):
    monkeypatch.chdir(SCRIPT.parents[2])
    folder = SCRIPT.parents[2] / "results" / "agreement"
    fresh = script.page(script.stored(folder), Results(*Store(script.STORE).read()))
    assert (folder / "README.md").read_text().split("\n\n", 2)[2] == fresh.split("\n\n", 2)[2]
