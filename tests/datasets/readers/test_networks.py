"""NetworkX graphs and GraphML files."""

import networkx
import pytest
import torch

from accord.datasets import NodeTable, TableMapping, from_networkx, read_graph
from accord.errors import GraphError


def network(kind=networkx.Graph):
    graph = kind()
    graph.add_node("u", label="cat", age=1.5, colour="red", flag=True)
    graph.add_node("v", label="dog", colour="blue", flag=False)
    graph.add_edge("v", "u", weight=2, kind="road")
    return graph


def check(read):
    assert read.node_names == ["u", "v"] and read.label_names == ["cat", "dog"]
    columns = dict(zip(read.feature_names, read.x.t().tolist(), strict=True))
    assert columns["age"] == [1.5, 0] and columns["age is missing"] == [0, 1]
    assert columns["colour=red"] == [1, 0] and columns["flag"] == [1, 0]
    assert read.y.tolist() == [0, 1]
    assert dict(zip(read.edge_names, read.edge_attr[0].tolist(), strict=True)) == {"weight": 2, "kind=road": 1}


@pytest.mark.parametrize("kind", [networkx.Graph, networkx.DiGraph, networkx.MultiDiGraph])
def test_a_networkx_graph(kind):
    read = from_networkx(network(kind))
    check(read)
    assert sorted(read.edge_index.flatten().tolist()) == [0, 1]
    if kind is not networkx.Graph:
        assert read.edge_index.tolist() == [[1], [0]], "the direction stays"


def test_graphml_equals_networkx(tmp_path):
    graph = network()
    for _, values in graph.nodes(data=True):
        values["flag"] = int(values["flag"])
    networkx.write_graphml(graph, tmp_path / "g.graphml")
    read = read_graph(tmp_path / "g.graphml")
    check(read)
    assert read.graph_name == "g.graphml"


def test_lists_of_numbers_and_other_names(tmp_path):
    graph = networkx.path_graph(3)
    for node, values in graph.nodes(data=True):
        values |= {"x": [node, 2 * node], "topic": "ab"[node % 2]}
    read = from_networkx(graph, TableMapping(nodes=NodeTable(label=("topic",))))
    assert read.feature_names == ["x 0", "x 1"] and read.x.tolist() == [[0, 0], [1, 2], [2, 4]]
    assert read.label_names == ["a", "b"] and read.node_names == ["0", "1", "2"]
    assert torch.equal(from_networkx(graph, TableMapping(nodes=NodeTable(label=("topic",))), ["b", "a"]).y, 1 - read.y)


def test_what_is_no_networkx_graph_is_refused():
    with pytest.raises(GraphError, match="from_networkx: got a list"):
        from_networkx([])
    graph = networkx.path_graph(2)
    with pytest.raises(GraphError, match="from_networkx: .*no feature columns"):
        from_networkx(graph)
