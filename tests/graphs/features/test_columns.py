"""Named columns: alignment by name, categories that training does not have, and missing numbers."""

import warnings

import pytest
import torch
from torch_geometric.data import Data

from accord.errors import GraphError, MissingValuesWarning, UnseenCategoriesWarning
from accord.graphs import EDGES, NODES, Columns, align, common_columns, fit_fill

KINDS = {"age": "number", "age is missing": "missing"}


def graph(**columns):
    """A graph with a column for each keyword; `colour_red` stands for `colour=red`."""
    names = [name.replace("__", " ").replace("_", "=") for name in columns]
    kinds = [KINDS.get(name, "category" if "=" in name else "number") for name in names]
    x = torch.tensor(list(columns.values()), dtype=torch.float32).t()
    return Data(x=x, edge_index=torch.empty(2, 0).long(), feature_names=names, feature_kinds=kinds)


def test_graphs_may_have_different_categories_but_the_same_numbers():
    first, second = graph(age=[1, 2], colour_red=[1, 0]), graph(age=[3], colour_blue=[1])
    found = common_columns([first, second], NODES, "test")
    assert found.names == ("age", "colour=red", "colour=blue")
    assert found.kinds == ("number", "category", "category")
    assert align(second, found, NODES, "test").x.tolist() == [[3, 0, 1]]
    assert align(first, found, NODES, "test").feature_kinds == ["number", "category", "category"]
    with pytest.raises(GraphError, match="test: feature_names of graph 1 differ .* column 0 is 'size' here and 'age'"):
        common_columns([first, graph(size=[1])], NODES, "test")
    with pytest.raises(GraphError, match="column 'colour' holds numbers in one graph and text in another"):
        common_columns([first, graph(age=[1], colour=[1])], NODES, "test")


def test_a_category_that_training_does_not_have_is_left_out_and_named():
    columns = Columns(("colour=red",), ("category",))
    with pytest.warns(UnseenCategoriesWarning, match=r"column 'colour' .*: 'blue' \(at 2\). They are left out"):
        aligned = align(graph(colour_red=[1, 0, 0], colour_blue=[0, 1, 1]), columns, NODES, "test")
    assert aligned.x.tolist() == [[1], [0], [0]]
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # it does not occur
        align(graph(colour_red=[1, 0], colour_blue=[0, 0]), columns, NODES, "test")


def test_a_missing_number_takes_the_training_mean():
    train = [graph(age=[10, 20, 0], age__is__missing=[0, 0, 1]), graph(age=[60], age__is__missing=[0])]
    columns = fit_fill(common_columns(train, NODES, "test"), train, NODES)
    assert columns.fill[0] == 30
    assert align(train[0], columns, NODES, "test").x.tolist() == [[10, 0], [20, 0], [30, 1]]
    assert train[0].x[2, 0] == 0, "the given graph stays as it is"
    assert align(graph(age=[5]), columns, NODES, "test").x.tolist() == [[5, 0]]


def test_only_training_nodes_count_for_the_mean():
    masked = graph(age=[10, 1000])
    masked.train_mask = torch.tensor([True, False])
    assert fit_fill(common_columns([masked], NODES, "test"), [masked], NODES).fill == (10.0,)


def test_a_number_that_was_never_missing_in_training_is_reported():
    columns = Columns(("age",), ("number",), fill=(7.0,))
    with pytest.warns(MissingValuesWarning, match="'age' is missing at 1 nodes, but never .* training mean 7 is used"):
        aligned = align(graph(age=[5, 0], age__is__missing=[0, 1]), columns, NODES, "test")
    assert aligned.x.tolist() == [[5], [7]]


def test_a_column_that_is_not_there_is_refused():
    columns = Columns(("age", "colour=red"), ("number", "category"))
    with pytest.raises(GraphError, match="test: the graph has no feature 'age'"):
        align(graph(colour_red=[1]), columns, NODES, "test")
    with pytest.raises(GraphError, match="no feature 'colour=red'"):
        align(graph(age=[1]), columns, NODES, "test")
    with pytest.raises(
        GraphError, match="Column 'colour' holds text in training and numbers here. .*columns=model.columns_"
    ):
        align(graph(age=[1], colour=[3]), columns, NODES, "test")


def test_edge_numbers_are_scaled_by_training_edges():
    index = torch.tensor([[0, 1, 2], [1, 2, 0]])
    values = torch.tensor([[1e6, 1.0], [3e6, 0.0], [2e6, 0.0]])
    data = Data(x=torch.ones(3, 1), edge_index=index, edge_attr=values)
    data.edge_names, data.edge_kinds = ["time", "kind=a"], ["number", "category"]
    columns = fit_fill(common_columns([data], EDGES, "test"), [data], EDGES, scale=True)
    scaled = align(data, columns, EDGES, "test").edge_attr
    torch.testing.assert_close(scaled[:, 0].mean(), torch.tensor(0.0))
    torch.testing.assert_close(scaled[:, 0].std(correction=0), torch.tensor(1.0))
    assert torch.equal(scaled[:, 1], values[:, 1]), "categories stay 0 and 1"


def test_a_constant_column_is_not_scaled():
    data = Data(x=torch.ones(2, 1), edge_index=torch.tensor([[0], [1]]), edge_attr=torch.tensor([[3.7]]))
    data.edge_names, data.edge_kinds = ["w"], ["number"]
    columns = fit_fill(common_columns([data], EDGES, "test"), [data], EDGES, scale=True)
    assert columns.spread == (1.0,)


@pytest.mark.parametrize(
    "bad", [{"kinds": ("x",)}, {"kinds": ()}, {"fill": ()}, {"fill": (float("nan"),)}, {"spread": (0.0,)}]
)
def test_columns_that_do_not_fit_are_refused(bad):
    with pytest.raises(GraphError, match="Columns: "):
        Columns(**({"names": ("a",), "kinds": ("number",)} | bad))
