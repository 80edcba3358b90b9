import time

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor
from torch_geometric.data import Batch, Data, HeteroData

from accord.errors import GraphError, InputTypeError
from accord.graphs import ego_network, ego_networks


@st.composite
def messy_graphs(draw) -> Data:
    """Graphs as users bring them: one direction or both, repeats, self-loops, isolated nodes."""
    num_nodes = draw(st.integers(1, 9))
    node = st.integers(0, num_nodes - 1)
    columns = draw(st.lists(st.tuples(node, node), max_size=20))
    edge_index = torch.tensor(columns, dtype=torch.long).reshape(-1, 2).t()
    return Data(
        x=torch.arange(2.0 * num_nodes).reshape(num_nodes, 2),
        y=torch.arange(num_nodes) % 3,
        edge_index=edge_index,
        edge_attr=torch.arange(len(columns), dtype=torch.float),
    )


def brute_force_arcs(data: Data, node: int) -> tuple[list[int], dict[tuple[int, int], float]]:
    """Members and arcs by the definition: a pair is linked if either direction of it was given."""
    linked: dict[tuple[int, int], float] = {}
    columns = [
        (*pair, value) for pair, value in zip(data.edge_index.t().tolist(), data.edge_attr.tolist(), strict=True)
    ]
    for source, target, value in columns:
        if source != target:
            linked.setdefault((source, target), value)
    for source, target, value in columns:
        if source != target:
            linked.setdefault((target, source), value)
    neighbours = sorted(other for other in range(data.num_nodes) if (node, other) in linked)
    members = [node, *neighbours]
    return members, {pair: value for pair, value in linked.items() if set(pair) <= set(members)}


@given(messy_graphs(), st.data())
def test_ego_network_equals_its_definition(data, draws):
    node = draws.draw(st.integers(0, data.num_nodes - 1))
    ego = ego_network(data, node)
    members, linked = brute_force_arcs(data, node)

    assert ego.node_id.tolist() == members
    assert ego.centre == 0 and int(ego.node_id[ego.centre]) == node
    assert ego.num_nodes == len(members)
    original = [tuple(pair) for pair in ego.node_id[ego.edge_index].t().tolist()]
    assert len(original) == len(set(original))  # no repeats
    assert dict(zip(original, ego.edge_attr.tolist(), strict=True)) == linked
    assert torch.equal(ego.x, data.x[ego.node_id])
    assert torch.equal(ego.y, data.y[ego.node_id])


@given(messy_graphs())
def test_arcs_come_in_pairs_sorted_by_source(data):
    for ego in ego_networks(data, range(data.num_nodes)):
        arcs = [tuple(pair) for pair in ego.edge_index.t().tolist()]
        assert arcs == sorted(arcs)
        assert {(target, source) for source, target in arcs} == set(arcs)


@given(messy_graphs())
def test_many_egos_equal_one_by_one(data):
    nodes = torch.arange(data.num_nodes).flip(0)
    for node, ego in zip(nodes.tolist(), ego_networks(data, nodes), strict=True):
        alone = ego_network(data, node)
        assert alone.keys() == ego.keys()
        for key in ("x", "y", "edge_index", "edge_attr", "node_id"):
            assert torch.equal(alone[key], ego[key])


def test_an_isolated_node_is_a_graph_of_its_own():
    ego = ego_network(Data(x=torch.ones(3, 1), edge_index=torch.tensor([[0], [1]])), 2)
    assert ego.num_nodes == 1
    assert ego.edge_index.shape == (2, 0) and ego.edge_index.dtype == torch.long
    assert ego.x.shape == (1, 1)
    assert ego.y is None and ego.edge_attr is None


def test_a_graph_without_edges_or_features_can_be_cut():
    ego = ego_network(Data(num_nodes=2), 1)
    assert ego.num_nodes == 1 and ego.edge_index.shape == (2, 0)


def test_no_nodes_give_no_graphs():
    data = Data(x=torch.ones(2, 1), edge_index=torch.tensor([[0], [1]]))
    assert ego_networks(data, []) == []


def test_egos_batch_without_losing_their_node_ids():
    data = Data(x=torch.ones(4, 1), edge_index=torch.tensor([[0, 1, 2], [1, 2, 3]]))
    batch = Batch.from_data_list(ego_networks(data, [3, 0]))
    assert batch.node_id.tolist() == [3, 2, 0, 1]
    assert batch.edge_index.tolist() == [[0, 1, 2, 3], [1, 0, 3, 2]]


def test_labels_of_several_tasks_are_sliced_by_node():
    y = torch.tensor([[0, 1], [1, 1], [0, 0]])
    ego = ego_network(Data(edge_index=torch.tensor([[2], [0]]), y=y, num_nodes=3), 2)
    assert ego.y.tolist() == [[0, 0], [0, 1]]


def test_cost_follows_the_egos_not_the_graph():
    # 2,000 egos of a graph with 400,000 arcs: a scan of all arcs per ego would take 50 times as long.
    num_nodes = 100_000
    generator = torch.Generator().manual_seed(0)
    edge_index = torch.randint(num_nodes, (2, 200_000), generator=generator)
    data = Data(edge_index=edge_index, num_nodes=num_nodes)
    started = time.perf_counter()
    egos = ego_networks(data, torch.arange(2_000))
    assert time.perf_counter() - started < 5.0
    assert len(egos) == 2_000


GRAPH = Data(x=torch.ones(3, 1), edge_index=torch.tensor([[0], [1]]))


@pytest.mark.parametrize(
    ("nodes", "error", "says"),
    [
        ([0, 3], GraphError, "no node 3"),
        ([-1], GraphError, "no node -1"),
        (torch.tensor([[0]]), GraphError, "shape"),
        (torch.tensor([True, False, True]), InputTypeError, r"mask\.nonzero"),
        ([0.5], InputTypeError, "dtype"),
        (["a"], InputTypeError, "whole numbers"),
        (7, InputTypeError, "list of ints"),
    ],
)
def test_unusable_nodes_are_named(nodes, error, says):
    with pytest.raises(error, match=says):
        ego_networks(GRAPH, nodes)


@pytest.mark.parametrize("node", [True, 1.0, "1", torch.tensor([1])])
def test_one_ego_needs_one_whole_number(node):
    with pytest.raises(InputTypeError, match="ego_network: node is a"):
        ego_network(GRAPH, node)


@pytest.mark.parametrize(
    ("data", "error", "says"),
    [
        (HeteroData(), InputTypeError, "HeteroData"),
        (Data(), GraphError, "num_nodes"),
        (Data(x=torch.ones(2, 1), edge_index=torch.tensor([[0], [2]])), GraphError, "names node 2"),
        (
            Data(x=torch.ones(2, 1), edge_index=torch.tensor([[0], [1]]), y=torch.tensor([1])),
            GraphError,
            "y is",
        ),
        (Data(x=torch.ones(2, 1), y=[0, 1]), GraphError, "y is list"),
        (
            Data(x=torch.ones(2, 1), edge_index=torch.tensor([[0], [1]]), edge_attr=torch.ones(2)),
            GraphError,
            "columns of the edge_index",
        ),
    ],
)
@pytest.mark.filterwarnings("ignore:Unable to accurately infer 'num_nodes'")  # PyG warns about an empty Data
def test_graphs_that_do_not_fit_together_are_named(data, error, says):
    with pytest.raises(error, match=says):
        ego_network(data, 0)


def test_the_input_is_left_alone():
    data = Data(x=torch.ones(3, 1), edge_index=torch.tensor([[0, 1], [1, 1]]))
    before: Tensor = data.edge_index.clone()
    ego_networks(data, [0, 1])
    assert torch.equal(data.edge_index, before) and set(data.keys()) == {"x", "edge_index"}
