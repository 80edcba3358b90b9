"""Where the nodes of sequences stand."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch.nn.utils.rnn import pack_sequence

from accord.errors import GraphError
from accord.graphs import path_edges, topology
from accord.graphs.sequences import path_layout, sequence_layout

LENGTHS = st.lists(st.integers(0, 6), min_size=1, max_size=5)


def paths(lengths):
    sizes = torch.tensor(lengths)
    graph = torch.repeat_interleave(torch.arange(len(lengths)), sizes)
    starts = (sizes.cumsum(0) - sizes).tolist()
    edges = [path_edges(length) + start for length, start in zip(lengths, starts, strict=True)]
    return topology(torch.cat(edges, 1), int(sizes.sum()), graph, len(lengths))


@given(LENGTHS)
def test_packed_and_padded_places_are_those_of_torch(lengths):
    layout = sequence_layout(paths(lengths), "test")
    rows = torch.arange(sum(lengths))
    parts = [part for part in rows.split(lengths) if len(part)]
    assert layout.lengths.tolist() == [len(part) for part in parts]
    if not parts:
        return
    order, inverse, sizes = layout.packed
    packed = pack_sequence(parts, enforce_sorted=False)
    assert order.tolist() == packed.data.tolist() and sizes.tolist() == packed.batch_sizes.tolist()
    assert order[inverse].tolist() == rows.tolist()
    padded = torch.full((len(parts) * layout.longest,), -1).index_copy(0, layout.padded, rows)
    assert padded.view(len(parts), -1).tolist() == [
        [*part.tolist(), *[-1] * (layout.longest - len(part))] for part in parts
    ]


@given(LENGTHS, st.integers(-3, 3))
def test_rows_are_shifted_within_their_sequence(lengths, offset):
    layout = sequence_layout(paths(lengths), "test")
    rows = torch.arange(1.0, 1 + sum(lengths))
    shifted = layout.shifted(rows, offset).tolist()
    expected = []
    for part in rows.split(lengths):
        own = part.tolist()
        expected += [own[i + offset] if 0 <= i + offset < len(own) else 0.0 for i in range(len(own))]
    assert shifted == expected


@pytest.mark.parametrize(
    "edges, problem",
    [
        ([[0, 1], [1, 2], [0, 2]], r"graph 0 is not a sequence: it has an edge between nodes 0 and 2"),
        ([[0, 1]], r"graph 0 is not a sequence: it has 3 nodes, but 1 edges"),
    ],
)
def test_a_graph_that_is_no_path_is_refused_with_a_remedy(edges, problem):
    graphs = topology(torch.tensor(edges).t(), 3)
    with pytest.raises(GraphError, match=problem) as caught:
        sequence_layout(graphs, "BiLSTM")
    assert "path_edges" in str(caught.value)
    assert path_layout(graphs.edge_index, graphs.graph, 1) is None


def test_the_graph_at_fault_is_named_by_its_own_node_numbers():
    edges = torch.tensor([[0, 2, 3], [1, 3, 2 + 2]])
    bad = torch.cat([edges, torch.tensor([[2], [4]])], 1)
    graphs = topology(bad, 5, torch.tensor([0, 0, 1, 1, 1]), 2)
    with pytest.raises(GraphError, match="graph 1 .* nodes 0 and 2"):
        sequence_layout(graphs, "BiLSTM")


def test_direction_and_order_of_edges_do_not_matter():
    assert sequence_layout(topology(torch.tensor([[2, 1], [1, 0]]), 3), "test").lengths.tolist() == [3]
