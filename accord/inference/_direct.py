"""What beliefs that are not iterated say about convergence."""

import torch
from torch import Tensor


class Direct:
    """Beliefs that were computed in one go; they have the attributes of those of `propagate`."""

    log_partition: Tensor

    @property
    def converged(self) -> Tensor:
        """All true: nothing is iterated."""
        return torch.ones_like(self.log_partition, dtype=torch.bool)

    @property
    def sweeps(self) -> Tensor:
        """All zero."""
        return torch.zeros_like(self.log_partition, dtype=torch.long)

    @property
    def residual(self) -> Tensor:
        """All zero."""
        return torch.zeros_like(self.log_partition)
