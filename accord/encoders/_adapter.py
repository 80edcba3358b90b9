"""Any PyTorch Geometric module as an encoder: one copy for each replica, with repeatable randomness."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from accord.encoders._encoder import Encoder, EncoderSpec
from accord.encoders.replica import Noise, derive_seed
from accord.errors import InputTypeError, OptionError
from accord.graphs import GraphBatch

Factory = Callable[[int, int], nn.Module]


@dataclass(frozen=True)
class Adapter(EncoderSpec):
    """Wraps modules that are called as module(x, edge_index); edge_index has both directions of each edge.

    A module that is random in training mode draws from torch's generators, which are seeded before and restored after
    the call. An adapted encoder runs one replica after the other, and cannot be saved.

    Args:
        module: a function `factory(in_channels, out_channels)` that makes a module, or a module, for one replica.
        pass_graph: also pass `batch=`, the graph number of each node; needed by modules that pool or normalise.
        pass_edge_attr: also pass `edge_attr=`, one row for each direction.
    """

    module: Factory | nn.Module
    pass_graph: bool = False
    pass_edge_attr: bool = False

    def build(self, in_channels: int, out_channels: int, seeds: Sequence[int]) -> "AdaptedEncoder":
        """Build one copy per seed, with initial weights from that seed."""
        return AdaptedEncoder(self, in_channels, out_channels, seeds)

    def to_config(self) -> dict[str, Any]:
        """Not possible: code cannot be written to JSON."""
        raise OptionError(
            "Adapter: a model with an adapted module cannot be saved, because JSON cannot hold its code. "
            "Use a built-in encoder, or save the module's state_dict yourself."
        )


class AdaptedEncoder(Encoder):
    """Copies of a module, one for each replica."""

    def __init__(self, spec: Adapter, in_channels: int, out_channels: int, seeds: Sequence[int]) -> None:
        super().__init__(in_channels, out_channels, len(seeds))
        self.spec = spec
        self.replicas = nn.ModuleList(_make(spec.module, in_channels, out_channels, list(seeds)))
        for replica, module in enumerate(self.replicas):
            for parameter in module.parameters():
                parameter.replica = replica  # type: ignore[attr-defined]  # it has no replica axis

    def encode(self, batch: GraphBatch, noise: Noise | None) -> Tensor:
        """Run the copies one after the other."""
        arcs = batch.topology.arcs
        edge_index = batch.cached("edge_index", lambda: torch.stack([arcs.source, arcs.target]))
        more: dict[str, Tensor] = {}
        if self.spec.pass_graph:
            more["batch"] = batch.topology.graph
        if self.spec.pass_edge_attr:
            if batch.edge_attr is None:
                raise OptionError(
                    "Adapter: pass_edge_attr is set, but the graphs have no edge_attr. Set data.edge_attr, or leave "
                    "the option out."
                )
            more["edge_attr"] = batch.edge_attr.repeat(2, 1)
        self.train(noise is not None)
        seeds = [0] * self.num_replicas if noise is None else noise.seeds.tolist()
        step = None if noise is None else noise.step
        outputs = []
        for seed, module in zip(seeds, self.replicas, strict=True):
            with seeded(derive_seed(seed, "step", step), batch.x.device):
                outputs.append(self._checked(module(batch.x, edge_index, **more), batch))
        return torch.stack(outputs, 1)

    def _checked(self, output: object, batch: GraphBatch) -> Tensor:
        wanted = [batch.num_nodes, self.out_channels]
        if not isinstance(output, Tensor) or list(output.shape) != wanted:
            got = list(output.shape) if isinstance(output, Tensor) else type(output).__name__
            raise InputTypeError(
                f"Adapter: the module returned {got}, but a tensor {wanted} is needed: one row for each node, "
                "out_channels columns."
            )
        return output


@contextmanager
def seeded(seed: int, device: torch.device) -> Iterator[None]:
    """Seed torch's generators inside the block, and restore them afterwards."""
    with torch.random.fork_rng([device] if device.type == "cuda" else []):
        torch.manual_seed(seed)
        yield


def _make(module: object, in_channels: int, out_channels: int, seeds: list[int]) -> list[nn.Module]:
    if isinstance(module, nn.Module):
        if len(seeds) > 1:
            raise OptionError(
                f"Adapter: a module can serve one replica, not {len(seeds)}. "
                "Pass a function factory(in_channels, out_channels) that makes a new one."
            )
        return [module]
    if not callable(module):
        raise InputTypeError(f"Adapter: module is a {type(module).__name__}, not an nn.Module or a function.")
    made = []
    for seed in seeds:
        with seeded(derive_seed(seed, "adapter"), torch.device("cpu")):
            made.append(module(in_channels, out_channels))
        if not isinstance(made[-1], nn.Module):
            raise InputTypeError(f"Adapter: the factory made a {type(made[-1]).__name__}, not an nn.Module.")
    return made
