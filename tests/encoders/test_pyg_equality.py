"""With one replica and the same weights, built-in encoders equal PyTorch Geometric's layers."""

import pytest
import torch
from encoders.encoder_cases import FEATURES, WIDE, random_batch
from torch import nn
from torch.nn import functional
from torch_geometric.nn import GATConv, GCN2Conv, GCNConv, SAGEConv

from accord.encoders import GAT, GCN, GCNII, GraphSAGE

OUT, SEED = 4, [5]
TOLERANCE = {torch.float32: 1e-5, torch.float64: 1e-9}


class Stack(nn.Module):
    def __init__(self, convs, activation, skips=()):
        super().__init__()
        self.convs, self.skips, self.activation = nn.ModuleList(convs), nn.ModuleList(skips), activation

    def forward(self, x, edge_index):
        for number, conv in enumerate(self.convs):
            h = conv(x, edge_index) + (self.skips[number](x) if self.skips else 0)
            x = h if number == len(self.convs) - 1 else self.activation(h)
        return x


class GCNIIStack(nn.Module):
    def __init__(self, features, hidden, layers, alpha, theta, shared, skip=False):
        super().__init__()
        self.skip = skip
        self.first, self.last = nn.Linear(features, hidden), nn.Linear(hidden, OUT)
        self.convs = nn.ModuleList(GCN2Conv(hidden, alpha, theta, k + 1, shared) for k in range(layers))

    def forward(self, x, edge_index):
        x = initial = self.first(x).relu()
        for conv in self.convs:
            x = (conv(x, initial, edge_index) + (x if self.skip else 0)).relu()
        return self.last(x)


def pairs_gcn(ours, theirs):
    for layer, conv in zip(ours.layers, theirs.convs, strict=True):
        yield layer.weight, conv.lin.weight, True
        yield layer.bias, conv.bias, False


def pairs_sage(ours, theirs):
    for layer, conv in zip(ours.layers, theirs.convs, strict=True):
        yield layer.neighbours.weight, conv.lin_l.weight, True
        yield layer.neighbours.bias, conv.lin_l.bias, False
        yield layer.own.weight, conv.lin_r.weight, True


def pairs_gat(ours, theirs):
    for layer, conv in zip(ours.layers, theirs.convs, strict=True):
        yield layer.weight, conv.lin.weight, True
        yield layer.source, conv.att_src, False
        yield layer.target, conv.att_dst, False
        yield layer.bias, conv.bias, False
    for skip, linear in zip(ours.skips, theirs.skips, strict=True):
        yield skip.weight, linear.weight, True
        yield skip.bias, linear.bias, False


def pairs_gcnii(ours, theirs):
    for mine, yours in ((ours.first, theirs.first), (ours.last, theirs.last)):
        yield mine.weight, yours.weight, True
        yield mine.bias, yours.bias, False
    for layer, conv in zip(ours.layers, theirs.convs, strict=True):
        yield layer.weight, conv.weight1, False
        if conv.weight2 is not None:
            yield layer.initial_weight, conv.weight2, False


def cases(features):
    elu = functional.elu
    return {
        "gcn": (
            GCN(8, 3),
            Stack([GCNConv(features, 8), GCNConv(8, 8), GCNConv(8, OUT)], torch.relu),
            pairs_gcn,
        ),
        "sage": (
            GraphSAGE(9, 3),
            Stack([SAGEConv(features, 9), SAGEConv(9, 9), SAGEConv(9, OUT)], torch.relu),
            pairs_sage,
        ),
        "gat": (
            GAT(3, (2, 4, 5), skip=False),
            Stack([GATConv(features, 3, 2), GATConv(6, 3, 4), GATConv(12, OUT, 5, concat=False)], elu),
            pairs_gat,
        ),
        "gat with skip connections": (
            GAT(3, (2, 5)),
            Stack(
                [GATConv(features, 3, 2), GATConv(6, OUT, 5, concat=False)],
                elu,
                [nn.Linear(features, 6), nn.Linear(6, OUT)],
            ),
            pairs_gat,
        ),
        "gcnii": (GCNII(8, 5, 0.3, 1.5), GCNIIStack(features, 8, 5, 0.3, 1.5, True), pairs_gcnii),
        "gcnii two weights": (
            GCNII(8, 3, 0.3, 1.5, shared_weights=False),
            GCNIIStack(features, 8, 3, 0.3, 1.5, False),
            pairs_gcnii,
        ),
        "gcnii two weights and skip": (
            GCNII(8, 3, 0.3, 1.5, skip=True, shared_weights=False),
            GCNIIStack(features, 8, 3, 0.3, 1.5, False, skip=True),
            pairs_gcnii,
        ),
    }


@pytest.mark.parametrize("features", [FEATURES, WIDE], ids=["dense", "sparse"])
@pytest.mark.parametrize("dtype", TOLERANCE, ids=str)
@pytest.mark.parametrize("name", cases(FEATURES))
def test_same_weights_give_the_same_outputs_and_gradients(name, dtype, features):
    spec, theirs, pairs = cases(features)[name]
    ours, theirs = spec.build(features, OUT, SEED).to(dtype), theirs.to(dtype)
    batch = random_batch(features, dtype)
    arcs = batch.topology.arcs
    used = []
    with torch.no_grad():
        for mine, yours, transposed in pairs(ours, theirs):
            nn.init.uniform_(yours, -0.5, 0.5, generator=torch.Generator().manual_seed(len(used)))
            value = yours.t() if transposed else yours
            mine.copy_(value.reshape(mine.shape))
            used.append(mine)
    assert len(used) == len(list(ours.parameters())) == len(list(theirs.parameters()))

    target = torch.randn(batch.num_nodes, OUT, generator=torch.Generator().manual_seed(0)).to(dtype)
    out, wanted = ours(batch)[:, 0], theirs(batch.x, torch.stack([arcs.source, arcs.target]))
    (out * target).sum().backward()
    (wanted * target).sum().backward()
    tolerance = {"rtol": TOLERANCE[dtype], "atol": TOLERANCE[dtype]}
    torch.testing.assert_close(out, wanted, **tolerance)
    for mine, yours, transposed in pairs(ours, theirs):
        value = yours.grad.t() if transposed else yours.grad
        scale = max(1.0, float(value.abs().max()))
        torch.testing.assert_close(mine.grad / scale, value.reshape(mine.shape) / scale, **tolerance)


@pytest.mark.parametrize("name", cases(FEATURES))
def test_initial_weights_have_the_same_spread(name):
    """The largest of many uniform draws is close to their bound."""
    torch.manual_seed(0)  # for PyG's weights: all of six draws lie below half the bound once in 64 times
    spec, theirs, pairs = cases(FEATURES)[name]
    ours = spec.build(FEATURES, OUT, list(range(300)))
    for mine, yours, _ in pairs(ours, theirs):
        bound, seen = float(mine.detach().abs().max()), float(yours.detach().abs().max())
        assert seen <= bound * 1.01
        assert seen >= 0.5 * bound or yours.numel() < 6
