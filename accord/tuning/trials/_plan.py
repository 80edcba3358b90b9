"""How long a search takes: trials, time, and the epochs of each rung."""

import math
from dataclasses import dataclass, replace

from accord.errors import OptionError
from accord.methods import Recipe

RUNGS = (1 / 9, 1 / 3, 1.0)  # share of the whole training that a trial of each rung has behind it
EVALUATED_UPDATES = 5  # between evaluations, at least one epoch
CHECKPOINT_EPOCHS = 50
FIRST_SEED = 101  # trials do not have the seed that the winner is trained with
SECONDS = 60.0  # of a minute
DEFAULT_SHARE = 0.5  # of the time at most, for the default model, which the winner is compared with
SEARCH_SHARE = 0.75  # of the time that a search takes where the winner is trained after it


@dataclass(frozen=True, kw_only=True)
class SearchBudget:
    """What a search may spend; the first limit that is reached ends it.

    Args:
        trials: settings that are tried, those of node and edge networks counted separately.
        minutes: time for the default model, the search and the training of the winner; None for any. Networks that are
            being trained when the time is over are finished.
        seeds: of each setting; its scores are averaged.
        updates: of a whole training.
        epochs: of a whole training at least, where an epoch has several updates.
        max_epochs: epochs of a whole training; replaces `updates` and `epochs`.
        train_winner: whether the winner is trained within the time. If not, the search takes all of it, and the
            winner's recipe has the epochs of a whole training.
    """

    trials: int = 30
    minutes: float | None = None
    seeds: int = 1
    updates: int = 900
    epochs: int = 30
    max_epochs: int | None = None
    train_winner: bool = True

    def __post_init__(self) -> None:
        for name in ("trials", "seeds", "updates", "epochs"):
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, int) or value < 1:
                raise OptionError(f"search: {name} is {value!r}; a positive whole number is needed.")
        if self.minutes is not None and not 0 < self.minutes < math.inf:
            raise OptionError(f"search: minutes is {self.minutes!r}; a positive number is needed.")

    def trial_seeds(self, seed: int) -> list[int]:
        """The seeds of every trial of a search."""
        return [seed + FIRST_SEED + place for place in range(self.seeds)]

    def epochs_of(self, rung: int, graphs: int, batch_graphs: int | None) -> int:
        """The epochs that a trial has behind it at the end of a rung."""
        if self.max_epochs is not None:
            return math.ceil(RUNGS[rung] * self.max_epochs)
        needed = RUNGS[rung] * self.updates / updates_per_epoch(graphs, batch_graphs)
        return math.ceil(max(needed, RUNGS[rung] * self.epochs if batch_graphs else 0.0))

    def after(self, seconds: float) -> "SearchBudget":
        """What is left after so many seconds."""
        if self.minutes is None:
            return self
        return replace(self, minutes=max(self.minutes - seconds / SECONDS, 1 / SECONDS / SECONDS))

    def deadline(self, share: float) -> float:
        """Seconds after which a share of the time is over; without a winner to train, its time is divided too."""
        share = share if self.train_winner else min(1.0, share / SEARCH_SHARE)
        return math.inf if self.minutes is None else SECONDS * self.minutes * share


def updates_per_epoch(graphs: int, batch_graphs: int | None) -> int:
    """Updates of one pass over the training graphs."""
    return math.ceil(graphs / min(batch_graphs or graphs, graphs))


def for_search(recipe: Recipe, graphs: int) -> Recipe:
    """A recipe that is evaluated after every few updates and never stops early, so that rungs can continue it."""
    each = updates_per_epoch(graphs, recipe.training.batch_graphs)
    training = replace(
        recipe.training,
        evaluate_every=max(1, EVALUATED_UPDATES // each),
        patience=None,
        checkpoint_every=CHECKPOINT_EPOCHS,
    )
    return replace(recipe, training=training)
