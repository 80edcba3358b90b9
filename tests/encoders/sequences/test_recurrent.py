"""Recurrent encoders against torch's own modules."""

import pytest
import torch
from torch_geometric.data import Data

from accord.encoders import BiGRU, BiLSTM
from accord.errors import GraphError
from accord.graphs import GraphBatch, path_edges

LENGTHS = (4, 1, 6, 3)


def sequences(features=5):
    generator = torch.Generator().manual_seed(0)
    return [
        Data(x=torch.randn(n, features, generator=generator, dtype=torch.float64), edge_index=path_edges(n))
        for n in LENGTHS
    ]


@pytest.mark.parametrize("spec, kind", [(BiLSTM(6, 2), torch.nn.LSTM), (BiGRU(6, 2), torch.nn.GRU)])
def test_equals_torch_sequence_by_sequence(spec, kind):
    encoder = spec.build(5, 3, [1, 2]).double()
    graphs = sequences()
    out = encoder(GraphBatch.collate(graphs))
    for replica in range(2):
        other = kind(5, 6, num_layers=2, bidirectional=True).double()
        for number, layer in enumerate(encoder.body.layers):
            for name, weight in layer.weights.items():
                getattr(other, name.replace("_l0", f"_l{number}")).data = weight[replica].detach()
        alone = torch.cat([other(graph.x)[0] for graph in graphs])
        expected = alone @ encoder.head.weight[replica] + encoder.head.bias[replica]
        torch.testing.assert_close(out[:, replica], expected)


def test_scores_of_the_ends_are_added_at_the_ends_alone():
    plain, ended = BiLSTM(6).build(5, 3, [1]).double(), BiLSTM(6, ends=True).build(5, 3, [1]).double()
    with torch.no_grad():
        ended.ends.copy_(torch.tensor([[[1.0, 2.0, 3.0], [10.0, 20.0, 30.0]]]))
    batch = GraphBatch.collate(sequences())
    gain = (ended(batch) - plain(batch))[:, 0, 0].detach()
    expected = []
    for length in LENGTHS:
        own = [0.0] * length
        own[0] += 1.0
        own[-1] += 10.0
        expected += own
    torch.testing.assert_close(gain, torch.tensor(expected, dtype=torch.float64))


def test_a_graph_that_is_no_path_is_refused():
    ring = Data(x=torch.zeros(3, 5), edge_index=torch.tensor([[0, 1, 2], [1, 2, 0]]))
    with pytest.raises(GraphError, match="BiLSTM: graph 0 is not a sequence.*path_edges"):
        BiLSTM().build(5, 3, [1])(GraphBatch.collate([ring]))
