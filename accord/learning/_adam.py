"""Adam with a learning rate and weight decay of its own for every replica.

Adam works element by element, so parameters stacked along a replica axis train as if apart; only the step size needs
to know which replica an element belongs to.
"""

from collections.abc import Callable, Iterable

import torch
from torch import Tensor
from torch.nn import Parameter

from accord.learning._replicas import spread


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
            first, second = group["betas"]
            for parameter in group["params"]:
                if parameter.grad is None:
                    continue
                state = self.state[parameter]
                if not state:
                    state["step"] = torch.zeros((), dtype=torch.float64)
                    state["mean"] = torch.zeros_like(parameter)
                    state["square"] = torch.zeros_like(parameter)
                state["step"] += 1
                count = float(state["step"])
                gradient = parameter.grad
                if _any(group["weight_decay"]):
                    gradient = gradient + _rate(group["weight_decay"], parameter) * parameter
                state["mean"].lerp_(gradient, 1 - first)
                state["square"].mul_(second).addcmul_(gradient, gradient, value=1 - second)
                scale = (state["square"] / (1 - second**count)).sqrt_().add_(group["eps"])
                step = state["mean"] / scale
                parameter.sub_(_rate(group["lr"], parameter) * step / (1 - first**count))


def _any(value: float | Tensor) -> bool:
    return bool((value != 0).any()) if isinstance(value, Tensor) else value != 0


def _rate(value: float | Tensor, parameter: Tensor) -> float | Tensor:
    return spread(value, parameter) if isinstance(value, Tensor) and value.dim() else value
