"""Graph U-Net (Gao and Ji 2019): PyTorch Geometric's network behind the adapter."""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch_geometric.nn import GraphUNet as PyGGraphUNet
from torch_geometric.utils import add_self_loops, dropout_edge, remove_self_loops

from accord.encoders._adapter import AdaptedEncoder, Adapter
from accord.encoders._encoder import EncoderSpec
from accord.encoders.replica import silence_beta_warning
from accord.errors import OptionError


@dataclass(frozen=True)
class GraphUNet(EncoderSpec):
    """Pooling to smaller and smaller graphs and back; the defaults are the paper's.

    Args:
        hidden: channels of all layers.
        depth: number of poolings.
        pool_ratios: fraction of nodes that pooling keeps, one for all levels or one for each.
        dropout: on the features.
        edge_dropout: fraction of edges removed in each training step.
        activation: between the layers.
        pool_batch: pool over all graphs of a batch together, as the authors of SPN do, so that the labels of a graph
            depend on the graphs beside it; False pools each graph by itself.
        head: end in a linear map from `hidden` channels.
    """

    kind = "unet"
    hidden: int = 64
    depth: int = 3
    pool_ratios: float | tuple[float, ...] = 0.5
    dropout: float = 0.0
    edge_dropout: float = 0.2
    activation: str = "relu"
    pool_batch: bool = False
    head: bool = False

    def __post_init__(self) -> None:
        super().__post_init__()
        ratios = self.pool_ratios if isinstance(self.pool_ratios, tuple) else (self.pool_ratios,)
        if len(ratios) not in (1, self.depth) or not all(0.0 < ratio <= 1.0 for ratio in ratios):
            raise OptionError(
                f"GraphUNet: pool_ratios={self.pool_ratios}; give one fraction, above 0 and at most 1, "
                f"or {self.depth} of them, one for each level."
            )

    def build(self, in_channels: int, out_channels: int, seeds: Sequence[int]) -> AdaptedEncoder:
        """Build one copy of the network per seed."""
        adapter = Adapter(lambda inputs, outputs: _UNet(self, inputs, outputs), pass_graph=True)
        return adapter.build(in_channels, out_channels, seeds)


class _UNet(nn.Module):
    """The network with dropout on features and edges."""

    def __init__(self, spec: GraphUNet, in_channels: int, out_channels: int) -> None:
        super().__init__()
        silence_beta_warning()
        ratios = list(spec.pool_ratios) if isinstance(spec.pool_ratios, tuple) else spec.pool_ratios
        self.spec = spec
        inner = spec.hidden if spec.head else out_channels
        self.net = _PoolingNet(in_channels, spec.hidden, inner, spec.depth, ratios, act=spec.activation)
        self.last = nn.Linear(inner, out_channels) if spec.head else nn.Identity()

    def forward(self, x: Tensor, edge_index: Tensor, batch: Tensor) -> Tensor:
        x = nn.functional.dropout(x, self.spec.dropout, self.training)
        if self.training and self.spec.edge_dropout:
            edge_index, _ = dropout_edge(edge_index, self.spec.edge_dropout, force_undirected=True)
        encoded: Tensor = self.last(self.net(x, edge_index, None if self.spec.pool_batch else batch))
        return encoded


class _PoolingNet(PyGGraphUNet):  # type: ignore[misc]
    """PyG's network, with a product of adjacencies that does not leak memory.

    Products of CSR matrices leak on CPUs (torch 2.13: 70 kB for 400 nodes), and PyG computes one at every level of
    every forward pass. Products of COO matrices do not leak.
    """

    def augment_adj(self, edge_index: Tensor, edge_weight: Tensor, num_nodes: int) -> tuple[Tensor, Tensor]:
        """Add edges between nodes that are two steps apart."""
        edge_index, edge_weight = remove_self_loops(edge_index, edge_weight)
        edge_index, edge_weight = add_self_loops(edge_index, edge_weight, num_nodes=num_nodes)
        size = (num_nodes, num_nodes)
        adjacency = torch.sparse_coo_tensor(edge_index, edge_weight, size, check_invariants=False)
        squared = torch.sparse.mm(adjacency, adjacency).coalesce()
        pairs: tuple[Tensor, Tensor] = remove_self_loops(squared.indices(), squared.values())
        return pairs
