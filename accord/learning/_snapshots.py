"""The best parameters seen so far on validation data, replica by replica."""

import torch
from torch import Tensor, nn

from accord.learning._replicas import learned, spread


class Snapshots:
    """Keeps, for each replica, a copy of its parameters at its best validation score.

    Replicas may peak at different epochs.

    Args:
        module: whose parameters are kept.
        num_replicas: how many replicas it holds.
        trained: whether it comes trained; else its first parameters win no tie.
    """

    def __init__(self, module: nn.Module, num_replicas: int, trained: bool = False) -> None:
        self.trained = trained
        self.score = torch.full((num_replicas,), -torch.inf, dtype=torch.float64)
        self.epoch = torch.full((num_replicas,), -1)
        self.best = {name: value.detach().clone() for name, value in learned(module).items()}

    @torch.no_grad()
    def update(self, module: nn.Module, score: Tensor, epoch: int, running: Tensor) -> Tensor:
        """Take over the parameters of running replicas that have improved; return which did [R].

        Where validation data cannot tell (NaN) the latest are kept.
        """
        score = score.detach().double().cpu()
        untrained = (self.epoch <= 0) & (not self.trained)
        better = (score > self.score) | (untrained & (score >= self.score)) | (score.isnan() & ~self.score.isfinite())
        better &= running
        self.score = torch.where(better & ~score.isnan(), score, self.score)
        self.epoch = torch.where(better, torch.tensor(epoch), self.epoch)
        for name, value in learned(module).items():
            self.best[name] = torch.where(spread(better, value, name), value, self.best[name])
        return better

    @torch.no_grad()
    def restore(self, module: nn.Module, which: Tensor | None = None) -> None:
        """Put the best parameters back, of all replicas or of some [R]."""
        for name, value in learned(module).items():
            value.copy_(
                self.best[name] if which is None else torch.where(spread(which, value, name), self.best[name], value)
            )
