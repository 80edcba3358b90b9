"""The best parameters so far on validation data, replica by replica."""

import torch
from torch import Tensor, nn

from accord.learning.training._replicas import learned, owner, set_num_replicas


class Snapshots:
    """Keeps, for each replica, a copy of its parameters at its best validation score.

    Replicas may reach their best score in different epochs. Where replicas have left a module, `places` gives the
    positions of the remaining ones.

    Args:
        module: whose parameters are kept.
        num_replicas: how many replicas it holds.
        trained: whether the module is trained already; otherwise its first parameters win no tie.
    """

    def __init__(self, module: nn.Module, num_replicas: int, trained: bool = False) -> None:
        self.trained = trained
        self.score = torch.full((num_replicas,), -torch.inf, dtype=torch.float64)
        self.epoch = torch.full((num_replicas,), -1)
        self.best = {name: value.detach().clone() for name, value in learned(module).items()}

    @torch.no_grad()
    def update(
        self, module: nn.Module, score: Tensor, epoch: int, running: Tensor, places: Tensor | None = None
    ) -> Tensor:
        """Keep the parameters of running replicas that have improved; return which did.

        Where the score is not defined (NaN) the latest parameters are kept.

        Args:
            module: holds the remaining replicas.
            score: [remaining], on validation data.
            epoch: epochs done.
            running: [remaining], which replicas may improve.
            places: [remaining], their positions; None if all remain.
        """
        score = score.detach().double().cpu()
        places = torch.arange(len(score)) if places is None else places
        before, untrained = self.score[places], (self.epoch[places] <= 0) & (not self.trained)
        better = (score > before) | (untrained & (score >= before)) | (score.isnan() & ~before.isfinite())
        better &= running
        self.score[places] = torch.where(better & ~score.isnan(), score, before)
        self.epoch[places] = torch.where(better, torch.tensor(epoch), self.epoch[places])
        if bool(better.any()):
            self._copy(learned(module), self.best, better.nonzero().flatten(), places[better])
        return better

    @torch.no_grad()
    def restore(self, module: nn.Module) -> None:
        """Restore the best parameters of all replicas, including those that have left the module."""
        for name, value in learned(module).items():
            if value.shape == self.best[name].shape:
                value.copy_(self.best[name])
            else:
                value.data = self.best[name].clone()
        set_num_replicas(module, len(self.score))

    @torch.no_grad()
    def send_back(self, module: nn.Module, which: Tensor, places: Tensor) -> None:
        """Restore the best parameters of some replicas: `which` [remaining] of those that the module holds."""
        self._copy(self.best, learned(module), places[which], which.nonzero().flatten())

    def _copy(self, origin: dict[str, Tensor], goal: dict[str, Tensor], source: Tensor, target: Tensor) -> None:
        """Copy rows `source` of what was learned to rows `target`."""
        for name, value in goal.items():
            mine, there = owner(origin[name], name), value.device
            mine = owner(value, name) if mine is None else mine
            if mine is None:
                value.index_copy_(0, target.to(there), origin[name].index_select(0, source.to(there)))
            elif bool((target == mine).any()):  # a module of one replica; it never leaves
                value.copy_(origin[name])
