"""Networks of the authors' published code, built from PyG's layers, apart from Accord's encoders and scorers."""

from collections.abc import Callable, Iterable

import torch
from torch import Tensor, nn
from torch.nn import functional as F
from torch_geometric.nn import GATConv, GCN2Conv, GCNConv, GraphUNet, SAGEConv
from torch_geometric.utils import dropout_edge

EDGE_WIDTH = 64  # of the representations that scorers read, where an encoder's last layer makes them
DROPOUT = 0.5  # in edge networks, before the last layer
REMOVED_EDGES = 0.2  # in each training step of U-Net
MAX_DENSITY = 0.05  # of features, up to which their sparse form is faster


class Stack(nn.Module):
    """Layers with an activation between them, and linear skips where the authors have them."""

    def __init__(
        self,
        layers: list[nn.Module],
        activation: Callable[[Tensor], Tensor],
        skips: list[nn.Module] | None = None,
        last_dropout: float = 0.0,
    ) -> None:
        super().__init__()
        self.layers, self.skips = nn.ModuleList(layers), nn.ModuleList(skips or [])
        self.activation, self.last_dropout = activation, last_dropout

    def forward(self, x: Tensor, arcs: Tensor) -> Tensor:
        last = len(self.layers) - 1
        for number, layer in enumerate(self.layers):
            if number == last:
                x = F.dropout(x, self.last_dropout, self.training)
            x = layer(x, arcs) + (self.skips[number](x) if len(self.skips) else 0.0)
            x = x if number == last else self.activation(x)
        return x


class DeepGCNII(nn.Module):
    """GCNII with a second weight for the initial representation and identity skips."""

    def __init__(self, features: int, hidden: int = 256, depth: int = 9, normalised: bool = False) -> None:
        super().__init__()
        self.first = nn.Linear(features, hidden)
        self.layers = nn.ModuleList(
            GCN2Conv(hidden, alpha=0.5, theta=1.0, layer=number + 1, shared_weights=False) for number in range(depth)
        )
        self.norms = nn.ModuleList(nn.LayerNorm(hidden) if normalised else nn.Identity() for _ in range(depth))
        self.width = hidden

    def forward(self, x: Tensor, arcs: Tensor) -> Tensor:
        start = x = F.relu(self.first(x))
        for layer, norm in zip(self.layers, self.norms, strict=True):
            x = F.relu(norm(x + layer(x, start, arcs)))
        return x


class UNet(nn.Module):
    """Graph U-Net that pools over all graphs of a batch together."""

    def __init__(self, features: int, hidden: int = 64, depth: int = 3) -> None:
        super().__init__()
        self.net, self.width = GraphUNet(features, hidden, hidden, depth, pool_ratios=0.5), hidden

    def forward(self, x: Tensor, arcs: Tensor) -> Tensor:
        if self.training:
            arcs, _ = dropout_edge(arcs, REMOVED_EDGES, force_undirected=True)
        return self.net(x, arcs)


class Headed(nn.Module):
    """A network with a linear map behind."""

    def __init__(self, body: DeepGCNII | UNet, outputs: int) -> None:
        super().__init__()
        self.body, self.head = body, nn.Linear(body.width, outputs)

    def forward(self, x: Tensor, arcs: Tensor) -> Tensor:
        return self.head(self.body(x, arcs))


class Pointwise(nn.Module):
    """A linear map that sees no neighbours."""

    def __init__(self, features: int, states: int) -> None:
        super().__init__()
        self.map = nn.Linear(features, states)

    def forward(self, x: Tensor, arcs: Tensor) -> Tensor:
        return self.map(x)


def _deep(encoder: str, variant: str, features: int) -> DeepGCNII | UNet:
    if encoder == "unet":
        return UNet(features)
    return DeepGCNII(features, normalised=variant == "layer normalisation")


def _stack(encoder: str, variant: str, features: int, outputs: int, last_dropout: float = 0.0) -> Stack:
    if encoder == "gcn":
        layers: list[nn.Module] = [GCNConv(features, 16), GCNConv(16, outputs)]
        return Stack(layers, F.relu, last_dropout=last_dropout)
    if encoder == "sage":
        scaled = variant == "l2-normalised outputs"
        layers = [SAGEConv(features, 64, normalize=scaled), SAGEConv(64, outputs, normalize=scaled)]
        return Stack(layers, F.relu, last_dropout=last_dropout)
    layers = [GATConv(features, 256, 4), GATConv(1024, 256, 4), GATConv(1024, outputs, 6, concat=False)]
    skips: list[nn.Module] = [nn.Linear(features, 1024), nn.Linear(1024, 1024), nn.Linear(1024, outputs)]
    return Stack(layers, F.elu, skips, last_dropout)


def node_network(encoder: str, variant: str, features: int, states: int) -> nn.Module:
    """The authors' node network; "linear" is that of CRF-linear."""
    if encoder == "linear":
        return Pointwise(features, states)
    if encoder in ("gcnii", "unet"):
        return Headed(_deep(encoder, variant, features), states)
    return _stack(encoder, variant, features, states)


class EdgeNetwork(nn.Module):
    """A table of logits for each arc, from the representations of its ends.

    Args:
        encoder: of the representations; "linear" reads the features themselves.
        variant: of the encoder.
        scorer: "bilinear", a full bilinear form, or "linear", linear in both ends.
        features: of nodes.
        states: of labels.
        averaged: whether both arcs of an edge have one table, the average of theirs, in training too.
    """

    def __init__(
        self, encoder: str, variant: str, scorer: str, features: int, states: int, averaged: bool = False
    ) -> None:
        super().__init__()
        self.states, self.late, self.averaged = states, 0.0, averaged
        if encoder == "linear":
            self.encoder, width = None, features
        elif encoder in ("gcnii", "unet"):
            body = _deep(encoder, variant, features)
            self.encoder, width, self.late = body, body.width, DROPOUT
        else:
            self.encoder, width = _stack(encoder, variant, features, EDGE_WIDTH, DROPOUT), EDGE_WIDTH
        tables = states * states
        self.bilinear = nn.Bilinear(width, width, tables) if scorer == "bilinear" else None
        self.ends = None if self.bilinear else nn.ModuleList([nn.Linear(width, tables), nn.Linear(width, tables)])

    def forward(self, x: Tensor, arcs: Tensor) -> Tensor:
        """[arcs, states of the source, states of the target]."""
        h = x if self.encoder is None else F.dropout(self.encoder(x, arcs), self.late, self.training)
        source, target = arcs
        if self.bilinear is not None:
            # nn.Bilinear's own forward pass maps each arc; mapping each node first gives the same in far less time.
            mapped = torch.einsum("ni,kij->nkj", h, self.bilinear.weight)
            logits = torch.einsum("akj,aj->ak", mapped[source], h[target]) + self.bilinear.bias
        else:
            first, second = self.ends
            logits = first(h)[source] + second(h)[target]
        tables = logits.view(-1, self.states, self.states)
        return one_table_an_edge(tables) if self.averaged else tables


def one_table_an_edge(tables: Tensor) -> Tensor:
    """Tables of both directions, averaged: one for each edge, as Accord has it."""
    half = len(tables) // 2
    mean = (tables[:half] + tables[half:].mT) / 2
    return torch.cat([mean, mean.mT])


class SparseFirst(nn.Module):
    """A linear map of features of which most are zero: the same as the dense one, in less time."""

    def __init__(self, dense: nn.Module, rows: dict[int, Tensor]) -> None:
        super().__init__()
        self.weight, self.bias, self.rows = dense.weight, dense.bias, rows

    def forward(self, x: Tensor) -> Tensor:
        mapped = torch.sparse.mm(self.rows[x.data_ptr()], self.weight.t())
        return mapped if self.bias is None else mapped + self.bias


def with_sparse_features(network: nn.Module, parts: Iterable[Tensor]) -> nn.Module:
    """The network with maps of features in sparse form, in place, if few features are not zero; weights stay.

    Args:
        network: not GraphSAGE, which maps averages of features.
        parts: features of each part that the network is used on.
    """
    dense = list(parts)
    if max(float((x != 0).float().mean()) for x in dense) > MAX_DENSITY:
        return network
    rows = {x.data_ptr(): x.to_sparse_csr() for x in dense}
    for module in list(network.modules()):
        for name, child in list(module.named_children()):
            weight = getattr(child, "weight", None)
            if isinstance(weight, Tensor) and weight.dim() == 2 and weight.shape[1] == dense[0].shape[1]:
                setattr(module, name, SparseFirst(child, rows))
    return network
