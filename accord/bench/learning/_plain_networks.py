"""Training one replica the usual way: torch_geometric's own modules, torch's Adam, a loop over graphs."""

from collections.abc import Sequence
from itertools import pairwise

import torch
from torch import Tensor, nn
from torch.nn import functional
from torch_geometric.data import Data
from torch_geometric.nn import GATConv, GCN2Conv, GCNConv, SAGEConv

from accord.encoders import GAT, GCN, GCNII, EncoderSpec, GraphSAGE
from accord.errors import OptionError
from accord.graphs import GraphBatch
from accord.methods import PairRecipe

EDGE_DROPOUT = 0.5  # before the edge scorer, as in the paper's recipe


class PlainStack(nn.Module):
    """Convolutions with an activation between them, and optional skip connections."""

    def __init__(self, layers: Sequence[nn.Module], skips: Sequence[nn.Module], activation: str) -> None:
        super().__init__()
        self.layers, self.skips = nn.ModuleList(layers), nn.ModuleList(skips)
        self.activation = getattr(functional, activation)

    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
        """Representations of nodes."""
        for number, layer in enumerate(self.layers):
            out = layer(x, edge_index)
            out = out + self.skips[number](x) if self.skips else out
            x = out if number == len(self.layers) - 1 else self.activation(out)
        return x


class PlainGCNII(nn.Module):
    """GCNII built from torch_geometric's convolutions."""

    def __init__(self, spec: GCNII, inputs: int, outputs: int) -> None:
        super().__init__()
        self.first, self.last = nn.Linear(inputs, spec.hidden), nn.Linear(spec.hidden, outputs)
        self.layers = nn.ModuleList(
            GCN2Conv(spec.hidden, spec.alpha, spec.theta, number + 1) for number in range(spec.layers)
        )
        norm = spec.normalisation == "layer"
        self.norms = nn.ModuleList(nn.LayerNorm(spec.hidden) if norm else nn.Identity() for _ in range(spec.layers))

    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
        """Representations of nodes."""
        initial = h = torch.relu(self.first(x))
        for layer, norm in zip(self.layers, self.norms, strict=True):
            h = torch.relu(norm(layer(h, initial, edge_index)))
        out: Tensor = self.last(h)
        return out


def plain_network(spec: EncoderSpec, inputs: int, outputs: int) -> nn.Module:
    """The network of an encoder, built from torch_geometric's modules."""
    if isinstance(spec, GCNII):
        return PlainGCNII(spec, inputs, outputs)
    if isinstance(spec, GAT):
        widths = [inputs, *(spec.hidden * heads for heads in spec.heads[:-1]), outputs]
        layers = [GATConv(a, spec.hidden, heads) for a, heads in zip(widths[:-2], spec.heads[:-1], strict=True)]
        layers.append(GATConv(widths[-2], outputs, spec.heads[-1], concat=False))
        return PlainStack(layers, [nn.Linear(a, b) for a, b in pairwise(widths)], spec.activation)
    if isinstance(spec, (GCN, GraphSAGE)):
        kind = GCNConv if isinstance(spec, GCN) else SAGEConv
        widths = [inputs, *[spec.hidden] * (spec.layers - 1), outputs]
        return PlainStack([kind(a, b) for a, b in pairwise(widths)], [], spec.activation)
    raise OptionError(f"bench learning: encoder {spec.kind!r} has no plain version. Choose gcn, sage, gat or gcnii.")


class PlainTraining:
    """Node and edge network of one replica.

    Args:
        recipe: architectures and learning rates; only the edge scorer has dropout.
        num_states: number of states.
        portions: graphs of each update.
        task: the label to learn; None where nodes have only one.
        device: where to train.
    """

    def __init__(
        self, recipe: PairRecipe, num_states: int, portions: Sequence[Sequence[Data]], task: int | None, device: str
    ) -> None:
        self.batches = [self._ready(GraphBatch.collate(list(portion)), task, device) for portion in portions]
        inputs, channels = int(portions[0][0].x.shape[1]), recipe.edge_channels
        self.node = plain_network(recipe.encoder, inputs, num_states).to(device)
        self.edge = plain_network(recipe.edge_encoder, inputs, channels).to(device)
        self.scorer = nn.Linear(2 * channels, num_states**2).to(device)
        self.num_states = num_states
        on_edges = [*self.edge.parameters(), *self.scorer.parameters()]
        self.optimisers = [
            torch.optim.Adam(self.node.parameters(), lr=recipe.node.learning_rate),
            torch.optim.Adam(on_edges, lr=recipe.edge.learning_rate),
        ]

    def epoch(self) -> int:
        """One update for every portion; returns their number."""
        for x, arcs, edges, y in self.batches:
            for optimiser in self.optimisers:
                optimiser.zero_grad()
            loss = functional.cross_entropy(self.node(x, arcs), y, ignore_index=-1)
            (loss + self._edge_loss(x, arcs, edges, y)).backward()
            for optimiser in self.optimisers:
                optimiser.step()
        return len(self.batches)

    def _edge_loss(self, x: Tensor, arcs: Tensor, edges: Tensor, y: Tensor) -> Tensor:
        """Cross-entropy of pairs, scored in both directions."""
        hidden = functional.dropout(self.edge(x, arcs), EDGE_DROPOUT)
        source, target = hidden[edges[0]], hidden[edges[1]]
        shape = (-1, self.num_states, self.num_states)
        along = self.scorer(torch.cat([source, target], 1)).view(shape)
        against = self.scorer(torch.cat([target, source], 1)).view(shape).transpose(1, 2)
        pair = (y[edges[0]] * self.num_states + y[edges[1]]).masked_fill((y[edges] < 0).any(0), -1)
        return functional.cross_entropy(((along + against) / 2).flatten(1), pair, ignore_index=-1)

    @staticmethod
    def _ready(batch: GraphBatch, task: int | None, device: str) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        """Features, arcs, edges and labels on the device."""
        batch = batch.to(device, torch.float32)
        arcs, y = batch.topology.arcs, batch.y
        assert y is not None
        return (
            batch.x,
            torch.stack([arcs.source, arcs.target]),
            batch.topology.edge_index,
            y if task is None else y[:, task],
        )
