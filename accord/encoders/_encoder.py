"""The interface of encoders: graphs in, one representation for each node and replica out."""

from abc import ABC, abstractmethod
from collections.abc import Sequence

from torch import Tensor, nn

from accord.encoders._spec import Spec
from accord.encoders.replica import Noise
from accord.errors import GraphError, OptionError
from accord.graphs import GraphBatch


class Encoder(nn.Module, ABC):
    """A built encoder; its parameters have a leading replica axis."""

    on_parts = False  # whether it can run on parts of a graph, each in a process of its own

    def __init__(self, in_channels: int, out_channels: int, num_replicas: int) -> None:
        super().__init__()
        if min(in_channels, out_channels) < 1 or num_replicas < 1:
            raise OptionError(
                f"{type(self).__name__}: in_channels={in_channels}, out_channels={out_channels} and "
                f"{num_replicas} seeds; each must be at least 1."
            )
        self.in_channels = in_channels
        self.out_channels = out_channels
        self.num_replicas = num_replicas

    def forward(self, batch: GraphBatch, noise: Noise | None = None) -> Tensor:
        """Encode the nodes.

        Args:
            batch: the graphs.
            noise: randomness of a training step; None for evaluation.

        Returns:
            [nodes, replicas, out_channels].
        """
        if batch.num_features != self.in_channels:
            raise GraphError(
                f"{type(self).__name__}: the graphs have {batch.num_features} features a node, but the encoder was "
                f"built for {self.in_channels}. Give the features it was trained on."
            )
        if noise is not None and noise.num_replicas != self.num_replicas:
            raise OptionError(
                f"{type(self).__name__}: noise for {noise.num_replicas} replicas, but the encoder has "
                f"{self.num_replicas}. Build both from the same seeds."
            )
        if batch.halo is not None and not self.on_parts:
            raise OptionError(
                f"{type(self).__name__}: this encoder reads the graph as a whole, so it cannot run on parts of one. "
                "Train with 'gcn', 'sage', 'gat', 'gcnii', 'mlp' or 'linear', or predict on one machine."
            )
        return self.encode(batch, noise)

    @abstractmethod
    def encode(self, batch: GraphBatch, noise: Noise | None) -> Tensor:
        """As `forward`, for inputs that have been checked."""


class EncoderSpec(Spec, ABC):
    """Specification of an encoder; `build` makes one."""

    @abstractmethod
    def build(self, in_channels: int, out_channels: int, seeds: Sequence[int]) -> Encoder:
        """Build an encoder with initial weights for one replica per seed.

        Layers of the same name and shape get the same initial weights from the same seed, so give node and edge
        encoders different seeds.
        """
