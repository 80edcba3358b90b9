"""Splits of one large graph: parts without common nodes or edges, with all names."""

import numpy as np
import pytest
import torch
from torch_geometric.data import Data
from torch_geometric.utils import to_undirected

from accord.datasets import describe_graphs, split_graph
from accord.errors import GraphError, OptionError


def communities(sizes=(40, 40, 40), seed=0):
    """Three communities with many edges inside and a few between."""
    rng = np.random.default_rng(seed)
    community = np.repeat(np.arange(len(sizes)), sizes)
    edges = [
        (a, b)
        for a in range(len(community))
        for b in range(a)
        if rng.random() < (0.2 if community[a] == community[b] else 0.005)
    ]
    x = torch.cat([torch.randn(len(community), 1), torch.nn.functional.one_hot(torch.from_numpy(community))], 1).float()
    return Data(
        x=x,
        y=torch.from_numpy(community),
        edge_index=to_undirected(torch.tensor(edges).t()),
        node_names=[f"n{node}" for node in range(len(community))],
        feature_names=["size", "c=0", "c=1", "c=2"],
        feature_kinds=["number", "category", "category", "category"],
        train_mask=torch.ones(len(community), dtype=torch.bool),
    )


@pytest.mark.parametrize("way", ["clusters", "random"])
def test_parts_share_no_node_and_no_edge(way):
    whole = communities()
    split = split_graph(whole, (0.5, 0.25, 0.25), seed=1, way=way)
    parts = [split.train[0], split.val[0], split.test[0]]
    names = [name for part in parts for name in part.node_names]
    assert sorted(names) == sorted(whole.node_names)
    assert abs(len(parts[0].x) - 60) <= 12
    kept = sum(describe_graphs([part]).edges for part in parts)
    assert kept + split.cut_edges == split.num_edges == describe_graphs([whole]).edges
    ends = {tuple(pair) for pair in whole.edge_index.t().tolist()}
    for part in parts:
        assert "train_mask" not in part
        assert torch.equal(part.y, whole.y[part.node_id])
        assert torch.equal(part.x[:, 0], whole.x[part.node_id, 0])
        assert {tuple(pair) for pair in part.node_id[part.edge_index].t().tolist()} <= ends


def test_clusters_cut_fewer_edges_than_chance():
    cut = {way: split_graph(communities(), way=way).cut_edges for way in ("clusters", "random")}
    assert cut["clusters"] < 0.7 * cut["random"], cut


def test_a_split_depends_on_its_seed_only():
    first, same, other = (split_graph(communities(), seed=seed).train[0].node_names for seed in (3, 3, 4))
    assert first == same != other


def test_categories_that_a_part_does_not_have_are_dropped():
    whole = communities()
    whole.x[:, 3] = 0
    whole.x[5, 3] = 1
    split = split_graph(whole, way="random")
    holders = [part for part in (split.train[0], split.val[0], split.test[0]) if "c=2" in part.feature_names]
    assert [part.x[:, part.feature_names.index("c=2")].sum().item() for part in holders] == [1.0]


def test_ego_networks_stay_inside_their_part():
    whole = communities()
    split = split_graph(whole, (0.5, 0.25, 0.25), egos=10)
    assert [len(part) for part in (split.train, split.val, split.test)] == [10, 5, 5]
    nodes = [{name for ego in part for name in ego.node_names} for part in (split.train, split.val, split.test)]
    assert not nodes[0] & nodes[1] and not nodes[0] & nodes[2] and not nodes[1] & nodes[2]
    for ego in split.test:
        assert [f"n{node}" for node in ego.node_id.tolist()] == ego.node_names


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"shares": (0.5, 0.5)}, "Give three positive numbers"),
        ({"shares": (0.8, 0.2, 0.0)}, "Give three positive numbers"),
        ({"way": "alphabet"}, "way 'alphabet' is unknown"),
        ({"egos": 1000}, "1000 ego networks are wanted"),
    ],
)
def test_splits_that_cannot_be_made(options, message):
    with pytest.raises(OptionError, match=f"split_graph: .*{message}"):
        split_graph(communities(), **options)
    with pytest.raises(GraphError, match="At least 3"):
        split_graph(Data(x=torch.ones(2, 1), edge_index=torch.empty(2, 0).long()))


def test_statistics_of_a_known_graph():
    index = torch.tensor([[0, 1, 1, 2, 0], [1, 0, 2, 3, 0]])  # a path of four, one edge twice, a self-loop
    graph = Data(x=torch.ones(5, 2), edge_index=index, y=torch.tensor([0, 0, 1, -1, 1]))
    found = describe_graphs([graph], 3)
    assert (found.graphs, found.nodes, found.edges, found.isolated, found.largest_degree) == (1, 5, 3, 1, 2)
    assert found.labelled == 4 and found.shares == ((0.5, 0.5, 0.0),)
    assert found.agreement == (0.5,)  # edges 0-1 and 1-2 have labels
    assert found.chance == (pytest.approx((3 / 4) ** 2 + (1 / 4) ** 2),)
    assert describe_graphs([Data(x=torch.ones(1, 1), edge_index=torch.empty(2, 0).long())]).agreement == ()
