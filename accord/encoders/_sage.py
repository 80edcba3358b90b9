"""GraphSAGE with mean aggregation (Hamilton et al. 2017)."""

from collections.abc import Sequence
from dataclasses import dataclass

from torch import Tensor

from accord.encoders._stack import Layer, UniformStackSpec
from accord.encoders.replica import Noise, ReplicaLinear, Signal, mean_operator
from accord.graphs import GraphBatch


class SAGELayer(Layer):
    """A linear map of the neighbours' mean, a linear map of the node itself, and a bias."""

    on_parts = True

    def __init__(self, in_channels: int, out_channels: int, seeds: Sequence[int], name: str) -> None:
        super().__init__()
        self.neighbours = ReplicaLinear(in_channels, out_channels, seeds, f"{name}.neighbours")
        self.own = ReplicaLinear(in_channels, out_channels, seeds, f"{name}.own", bias=False)

    def forward(self, signal: Signal, batch: GraphBatch, noise: Noise | None, number: int) -> Tensor:
        """One layer."""
        operator = mean_operator(batch, self.own.weight.dtype)
        mean = signal.aggregated_linear(operator, self.neighbours.weight, self.neighbours.bias)
        return mean + signal.linear(self.own.weight)


@dataclass(frozen=True)
class GraphSAGE(UniformStackSpec):
    """Stack of GraphSAGE layers; the defaults are the paper's."""

    kind = "sage"
    layer = SAGELayer
