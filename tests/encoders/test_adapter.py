"""PyG modules as encoders."""

import pytest
import torch
from encoders.encoder_cases import ATTRIBUTES, FEATURES, NoisyConv, random_batch
from torch_geometric.nn import GATConv, GCNConv

from accord.encoders import Adapter, Noise
from accord.errors import InputTypeError, OptionError


def test_both_directions_of_each_edge_are_passed():
    batch = random_batch()
    conv = GCNConv(FEATURES, 3)
    arcs = batch.topology.arcs
    wanted = conv(batch.x, torch.stack([arcs.source, arcs.target]))
    torch.testing.assert_close(Adapter(conv).build(FEATURES, 3, [0])(batch)[:, 0], wanted)


def test_edge_attributes_and_graph_numbers_can_be_passed():
    batch = random_batch()
    encoder = Adapter(lambda i, o: GATConv(i, o, edge_dim=ATTRIBUTES), pass_edge_attr=True).build(FEATURES, 3, [0, 1])
    assert encoder(batch).shape == (batch.num_nodes, 2, 3)

    class Centred(torch.nn.Module):
        def forward(self, x, edge_index, batch):
            return x + batch[:, None]

    out = Adapter(Centred(), pass_graph=True).build(FEATURES, FEATURES, [0])(batch)
    torch.testing.assert_close(out[:, 0], batch.x + batch.topology.graph[:, None])


def test_training_mode_follows_the_noise():
    batch, encoder = random_batch(), Adapter(NoisyConv).build(FEATURES, 3, [1, 2])
    encoder(batch, Noise([1, 2], 0))
    assert all(module.training for module in encoder.modules())
    encoder(batch)
    assert not any(module.training for module in encoder.modules())


def test_modules_that_do_not_fit_are_refused():
    batch = random_batch()
    with pytest.raises(OptionError, match="one replica, not 2"):
        Adapter(GCNConv(FEATURES, 3)).build(FEATURES, 3, [0, 1])
    with pytest.raises(InputTypeError, match="nn.Module"):
        Adapter("gcn").build(FEATURES, 3, [0])
    with pytest.raises(InputTypeError, match="factory made a int"):
        Adapter(lambda i, o: i + o).build(FEATURES, 3, [0])
    with pytest.raises(InputTypeError, match=r"\[22, 3\]"):
        Adapter(GCNConv(FEATURES, 4)).build(FEATURES, 3, [0])(batch)
    with pytest.raises(OptionError, match="edge_attr"):
        Adapter(NoisyConv, pass_edge_attr=True).build(FEATURES, 3, [0])(type(batch)(batch.x, batch.topology))
