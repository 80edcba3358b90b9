import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch_geometric.data import Batch, Data

from accord.errors import GraphError, OptionError
from accord.graphs import TREATMENTS, FeatureTreatment, common_treatment, fit_treatment, scale_ratio, treatment_of


@st.composite
def counts(draw) -> tuple[Data, Data]:
    """A training graph and another graph with word counts as features, many of them zero."""
    columns = draw(st.integers(1, 5))

    def graph() -> Data:
        rows = draw(st.integers(1, 8))
        values = draw(st.lists(st.integers(0, 3), min_size=rows * columns, max_size=rows * columns))
        return Data(x=torch.tensor(values, dtype=torch.float).reshape(rows, columns))

    return graph(), graph()


@given(counts())
def test_raw_returns_the_graph_itself(graphs):
    train, other = graphs
    assert fit_treatment("raw", [train]).apply(other) is other


@given(counts())
def test_normalised_rows_sum_to_one_or_stay_zero(graphs):
    train, other = graphs
    total = fit_treatment("row-normalised", [train]).apply(other).x.sum(1)
    torch.testing.assert_close(total, (other.x.sum(1) > 0).float())


@given(counts())
def test_standardised_training_columns_have_mean_zero_and_deviation_one_or_zero(graphs):
    train, _ = graphs
    treated = fit_treatment("standardised", [train]).apply(train).x
    assert treated.dtype == train.x.dtype and bool(treated.isfinite().all())
    torch.testing.assert_close(treated.double().mean(0), torch.zeros(treated.shape[1]).double(), atol=1e-5, rtol=0)
    changes = (train.x.amin(0) != train.x.amax(0)).double()
    torch.testing.assert_close(treated.double().std(0, correction=0), changes, atol=1e-5, rtol=0)


def test_a_column_that_is_constant_in_training_is_only_shifted():
    treatment = fit_treatment("standardised", [Data(x=torch.full((3, 1), 0.1))])
    treated = treatment.treat(torch.tensor([[0.1], [3.1]]))
    torch.testing.assert_close(treated, torch.tensor([[0.0], [3.0]]))


def test_a_node_of_overlapping_graphs_counts_once():
    x = torch.tensor([[1.0], [2.0], [6.0]])
    once = fit_treatment("standardised", [Data(x=x)])
    overlapping = [
        Data(x=x[[2, 0]], node_id=torch.tensor([9, 4])),
        Data(x=x[[0, 1, 2]], node_id=torch.tensor([4, 5, 9])),
    ]
    assert fit_treatment("standardised", overlapping).equals(once)
    assert not fit_treatment("standardised", [Data(x=graph.x) for graph in overlapping]).equals(once)


@given(counts())
def test_the_given_graph_is_left_alone_and_treated_once(graphs):
    train, other = graphs
    before = other.x.clone()
    for graph in graphs:
        graph.tokens = ["word"] * len(graph.x)
    for name in TREATMENTS:
        treatment = fit_treatment(name, [train])
        treated = treatment.apply(other)
        assert torch.equal(other.x, before) and treatment_of(other) is None
        assert treatment.apply(treated) is treated


def test_other_treatments_of_a_treated_graph_are_refused():
    graph = Data(x=torch.tensor([[1.0, 3.0]]))
    treated = FeatureTreatment("row-normalised").apply(graph)
    with pytest.raises(GraphError, match="already been row-normalised.*needs them left as they are.*raw"):
        FeatureTreatment("raw").apply(treated)
    first, second = (fit_treatment("standardised", [Data(x=graph.x + n * torch.eye(2))]) for n in (1, 2))
    with pytest.raises(GraphError, match="by other training nodes"):
        second.apply(first.apply(graph))


def test_the_treatment_travels_with_the_graph():
    treatment = fit_treatment("standardised", [Data(x=torch.randn(5, 2))])
    treated = treatment.apply(Data(x=torch.randn(4, 2), edge_index=torch.tensor([[0, 1], [1, 2]])))
    assert treatment_of(treated.clone()) is treatment
    parts = Batch.from_data_list([treated, treated]).to_data_list()
    assert all(treatment_of(part) is treatment for part in parts)


def test_graphs_treated_in_different_ways_are_told_apart():
    raw = Data(x=torch.randn(3, 2))
    treated = FeatureTreatment("row-normalised").apply(raw)
    assert common_treatment([raw, raw]) is None
    assert common_treatment([treated, FeatureTreatment("row-normalised").apply(raw)]).name == "row-normalised"
    with pytest.raises(GraphError, match="graph 1 have another treatment"):
        common_treatment([treated, raw])


def test_unknown_treatments_are_refused_with_the_choices():
    with pytest.raises(OptionError, match="'scaled'.*raw, row-normalised, standardised"):
        fit_treatment("scaled", [])


def test_the_ratio_of_scales_leaves_out_constant_columns():
    columns = torch.tensor([[0.0, 0.0, 7.0], [2.0, 500.0, 7.0]])
    parts = [Data(x=columns[:1]), Data(x=columns[1:])]
    assert scale_ratio(parts) == 250
    assert scale_ratio(parts[:1]) == scale_ratio([Data(x=torch.empty(0, 3))]) == 1
