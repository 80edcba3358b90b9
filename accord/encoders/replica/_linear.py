"""Linear maps with one weight for each replica, in the layout [nodes, replicas, channels]."""

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor, nn
from torch.autograd import Function
from torch.autograd.function import once_differentiable
from torch.nn import functional

from accord.encoders.replica._initial import constant_weights, fan_in_weights, glorot_weights


def replica_linear(h: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """h weight + bias for each replica.

    Args:
        h: [nodes, replicas, inputs], or [nodes, inputs] shared by all replicas.
        weight: [replicas, inputs, outputs].
        bias: [replicas, outputs].

    Returns:
        [nodes, replicas, outputs], contiguous, as sparse products over the nodes need it.
    """
    h, weight, bias = to_autocast(h), to_autocast(weight), None if bias is None else to_autocast(bias)
    product: Tensor = _ReplicaLinear.apply(h, weight, bias)  # type: ignore[no-untyped-call]
    return product


def replica_linear_onto(base: Tensor, h: Tensor, weight: Tensor) -> Tensor:
    """base + h weight for each replica, written over `base`: one pass over it in place of three.

    Args:
        base: [nodes, replicas, outputs], the output of a layer whose gradient does not need it.
        h: [nodes, replicas, inputs], or [nodes, inputs] shared by all replicas.
        weight: [replicas, inputs, outputs].
    """
    h, weight = to_autocast(h), to_autocast(weight)
    if base.dtype != weight.dtype or not base.is_contiguous():
        return base + replica_linear(h, weight)
    total: Tensor = _LinearOnto.apply(base, h, weight)  # type: ignore[no-untyped-call]
    return total


def to_autocast(values: Tensor) -> Tensor:
    """Convert to the precision of autocast if it is on; autocast does not reach inside our autograd functions."""
    kind = values.device.type
    return values.to(torch.get_autocast_dtype(kind)) if torch.is_autocast_enabled(kind) else values


class ReplicaLinear(nn.Module):
    """`nn.Linear` with a leading replica axis; initial weights as in `nn.Linear`, or Glorot's."""

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        seeds: Sequence[int],
        name: str,
        *,
        bias: bool = True,
        glorot: bool = False,
    ) -> None:
        super().__init__()
        shape = (in_channels, out_channels)
        weight_name = f"{name}.weight"
        self.weight = (
            glorot_weights(seeds, weight_name, shape)
            if glorot
            else fan_in_weights(seeds, weight_name, shape, in_channels)
        )
        self.bias = fan_in_weights(seeds, f"{name}.bias", (out_channels,), in_channels) if bias else None

    def forward(self, h: Tensor) -> Tensor:
        """[nodes, replicas, in] or [nodes, in] -> [nodes, replicas, out]."""
        return replica_linear(h, self.weight, self.bias)


class ReplicaLayerNorm(nn.Module):
    """Layer normalisation over the channels, with a scale and a shift for each replica."""

    def __init__(self, channels: int, seeds: Sequence[int]) -> None:
        super().__init__()
        self.weight = constant_weights(seeds, (channels,), 1.0)
        self.bias = constant_weights(seeds, (channels,), 0.0)

    def forward(self, h: Tensor) -> Tensor:
        """Normalise [nodes, replicas, channels] over the channels."""
        return torch.addcmul(self.bias, functional.layer_norm(h, h.shape[-1:]), self.weight)


def _each(a: Tensor, b: Tensor, out: Tensor) -> Tensor:
    """Matrix products for each replica, written into `out`, whose first axis is the replicas."""
    if out.device.type == "cpu":
        for replica in range(len(out)):  # bmm copies strided outputs; mm does not
            torch.mm(a[replica], b[replica], out=out[replica])
        return out
    return torch.bmm(a, b, out=out)


def _add_each(a: Tensor, b: Tensor, out: Tensor) -> None:
    """Matrix products for each replica, added to `out`."""
    if out.device.type == "cpu":
        for replica in range(len(out)):
            out[replica].addmm_(a[replica], b[replica])
    else:
        out.baddbmm_(a, b)


class _LinearOnto(Function):
    @staticmethod
    def forward(ctx: Any, base: Tensor, h: Tensor, weight: Tensor) -> Tensor:
        ctx.save_for_backward(h, weight)
        # Not marked as changed in place: `base` may be a view, and autograd would then copy all gradients twice.
        total = base.data
        _add_each(_by_replica(h, len(weight)), weight, total.transpose(0, 1))
        return total

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, Tensor | None, Tensor | None]:
        h, weight = ctx.saved_tensors
        needs = ctx.needs_input_grad
        return gradient, *_linear_gradients(gradient, h, weight, needs[1], needs[2])


def _linear_gradients(
    gradient: Tensor, h: Tensor, weight: Tensor, for_h: bool, for_weight: bool
) -> tuple[Tensor | None, Tensor | None]:
    """Gradients of `h` and of `weight`, each if needed, from the gradient of their product."""
    replicas = len(weight)
    by_replica = gradient.contiguous().transpose(0, 1)
    to_h = to_weight = None
    if for_h:
        to_h = h.new_empty(len(h), replicas, weight.shape[1])
        _each(by_replica, weight.transpose(1, 2), to_h.transpose(0, 1))
        to_h = to_h.sum(1) if h.dim() == 2 else to_h
    if for_weight:
        to_weight = _each(_by_replica(h, replicas).transpose(1, 2), by_replica, torch.empty_like(weight))
    return to_h, to_weight


class _ReplicaLinear(Function):
    @staticmethod
    def forward(ctx: Any, h: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
        ctx.save_for_backward(h, weight)
        ctx.has_bias = bias is not None
        replicas, _, outputs = weight.shape
        out = h.new_empty(len(h), replicas, outputs)
        _each(_by_replica(h, replicas), weight, out.transpose(0, 1))
        return out if bias is None else out.add_(bias)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, Tensor | None, Tensor | None]:
        h, weight = ctx.saved_tensors
        to_h, to_weight = _linear_gradients(gradient, h, weight, *ctx.needs_input_grad[:2])
        to_bias = None
        if ctx.has_bias and ctx.needs_input_grad[2]:
            to_bias = gradient.sum(0)
        return to_h, to_weight, to_bias


def _by_replica(h: Tensor, replicas: int) -> Tensor:
    """A view [replicas, nodes, channels]."""
    return h.expand(replicas, *h.shape) if h.dim() == 2 else h.transpose(0, 1)
