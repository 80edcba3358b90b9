"""The best parameters seen so far on validation data, replica by replica."""

import torch
from torch import Tensor, nn

from accord.learning.training._replicas import learned, owner, set_num_replicas


class Snapshots:
    """Keeps, for each replica, a copy of its parameters at its best validation score.

    Replicas may peak at different epochs. A module that has lost replicas on the way says at which places those that
    it still holds belong.

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
    def update(
        self, module: nn.Module, score: Tensor, epoch: int, running: Tensor, places: Tensor | None = None
    ) -> Tensor:
        """Take over the parameters of running replicas that have improved; return which did.

        Where validation data cannot tell (NaN) the latest are kept.

        Args:
            module: with the replicas that are left.
            score: [left], on validation data.
            epoch: how many are done.
            running: [left], which replicas may improve.
            places: [left], where they belong; None where all are left.
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
        """Put the best parameters of all replicas back, also of those that the module has lost."""
        for name, value in learned(module).items():
            if value.shape == self.best[name].shape:
                value.copy_(self.best[name])
            else:
                value.data = self.best[name].clone()
        set_num_replicas(module, len(self.score))

    @torch.no_grad()
    def send_back(self, module: nn.Module, which: Tensor, places: Tensor) -> None:
        """Put the best parameters of some replicas back: `which` [left] of those that the module holds."""
        self._copy(self.best, learned(module), places[which], which.nonzero().flatten())

    def _copy(self, origin: dict[str, Tensor], goal: dict[str, Tensor], source: Tensor, target: Tensor) -> None:
        """Rows `source` of what was learned become rows `target`."""
        for name, value in goal.items():
            mine, there = owner(origin[name], name), value.device
            mine = owner(value, name) if mine is None else mine
            if mine is None:
                value.index_copy_(0, target.to(there), origin[name].index_select(0, source.to(there)))
            elif bool((target == mine).any()):  # a module of one replica alone, which is never lost
                value.copy_(origin[name])
