"""Random states from unnormalised log-probabilities."""

import torch
from torch import Tensor


def draw(logits: Tensor, generator: torch.Generator | None) -> Tensor:
    """Draw one state for each row of unnormalised log-probabilities [..., states]; never one that is -inf.

    It is the state at which the running sum of probabilities exceeds a uniform random number.
    """
    sums = (logits - logits.amax(-1, keepdim=True)).exp().cumsum(-1)
    total = sums[..., -1:].contiguous()
    device = logits.device if generator is None else generator.device
    uniform = torch.rand(total.shape, dtype=total.dtype, device=device, generator=generator).to(logits.device)
    # Rounding must not raise the number to the total itself: only forbidden states, or none, would come after it.
    passed = torch.minimum(uniform * total, torch.nextafter(total, torch.zeros_like(total)))
    return torch.searchsorted(sums, passed, right=True)[..., 0]
