"""Adam with a separate learning rate and weight decay for every replica.

Adam works element by element, so parameters stacked along a replica axis train independently; only the step size
depends on the replica that an element belongs to. Where all replicas share their rates, torch's fused kernel updates
all parameters in one pass. Nothing here waits for the device, so a CUDA graph can record it.
"""

from collections.abc import Callable, Iterable
from typing import Any

import torch
from torch import Tensor
from torch.nn import Parameter
from torch.optim.adam import adam

from accord.learning.training._replicas import owner, spread

FUSED = ("cpu", "cuda")  # where torch has a fused kernel
RATES = ("lr", "weight_decay")


class ReplicaAdam(torch.optim.Optimizer):
    """Adam (Kingma and Ba 2015) over parameters [R, ...]; equals `torch.optim.Adam` for each replica alone.

    Args:
        parameters: each with the replica axis first.
        lr: one learning rate, or one for each replica [R].
        weight_decay: L2 penalty, one or one for each replica.
    """

    def __init__(
        self,
        parameters: Iterable[Parameter],
        lr: float | Tensor = 1e-3,
        weight_decay: float | Tensor = 0.0,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
    ) -> None:
        super().__init__(list(parameters), {"lr": lr, "weight_decay": weight_decay, "betas": betas, "eps": eps})

    @torch.no_grad()
    def step(self, closure: Callable[[], float] | None = None) -> None:  # type: ignore[override]
        """One update of every parameter that has a gradient."""
        for group in self.param_groups:
            given = [parameter for parameter in group["params"] if parameter.grad is not None]
            states = [self._state_of(parameter) for parameter in given]
            shared = not any(isinstance(group[name], Tensor) and group[name].dim() for name in RATES)
            if shared and all(parameter.device.type in FUSED for parameter in given):
                _step_fused(group, given, states)
            else:
                for parameter, state in zip(given, states, strict=True):
                    _step_plain(group, parameter, state)

    @torch.no_grad()
    def keep(self, replicas: Tensor) -> None:
        """Keep the state of some replicas; the parameters have been cut to them already.

        Args:
            replicas: [kept], positions among the replicas so far.
        """
        for parameter, state in self.state.items():
            for name in ("mean", "square"):
                if name in state and owner(parameter) is None:
                    state[name] = state[name].index_select(0, replicas.to(state[name].device))
        for group in self.param_groups:
            for name in RATES:
                if isinstance(group[name], Tensor) and group[name].dim():
                    group[name] = group[name][replicas.to(group[name].device)]

    def _state_of(self, parameter: Parameter) -> dict[str, Tensor]:
        """Running averages, and the number of steps on the device where the fused kernel expects it."""
        state: dict[str, Tensor] = self.state[parameter]
        if not state:
            state["step"] = torch.zeros((), device=parameter.device)
            state["mean"] = torch.zeros_like(parameter)
            state["square"] = torch.zeros_like(parameter)
        state["step"] = state["step"].to(parameter.device, torch.float32)  # checkpoints may hold another type
        return state


def _step_fused(group: dict[str, Any], parameters: list[Parameter], states: list[dict[str, Tensor]]) -> None:
    """Update all parameters at once."""
    first, second = group["betas"]
    adam(
        list(parameters),
        [parameter.grad for parameter in parameters if parameter.grad is not None],
        [state["mean"] for state in states],
        [state["square"] for state in states],
        [],
        [state["step"] for state in states],
        fused=True,
        amsgrad=False,
        beta1=first,
        beta2=second,
        lr=float(group["lr"]),
        weight_decay=float(group["weight_decay"]),
        eps=group["eps"],
        maximize=False,
    )


def _step_plain(group: dict[str, Any], parameter: Parameter, state: dict[str, Tensor]) -> None:
    """Update one parameter by Adam's equations, with a rate for each replica."""
    first, second = group["betas"]
    gradient = parameter.grad
    assert gradient is not None
    state["step"] += 1
    decay = group["weight_decay"]
    if isinstance(decay, Tensor) or decay:
        gradient = gradient + _rate(decay, parameter) * parameter
    state["mean"].lerp_(gradient, 1 - first)
    state["square"].mul_(second).addcmul_(gradient, gradient, value=1 - second)
    count = state["step"].double()
    scale = (state["square"] / (1 - second**count)).sqrt_().add_(group["eps"])
    step = state["mean"] / scale
    parameter.sub_(_rate(group["lr"], parameter) * step / (1 - first**count))


def _rate(value: float | Tensor, parameter: Tensor) -> float | Tensor:
    return spread(value, parameter) if isinstance(value, Tensor) and value.dim() else value
