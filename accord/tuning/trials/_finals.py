"""The default model beside the winner of a search: both trained as `fit` does, compared on validation data.

A search judges networks by short trainings with another seed and a part of the grid. Its winner may therefore be worse
than what `fit` gives without a search. Both are trained with the seed of the run, and the better one is kept.
"""

import shutil
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from time import perf_counter
from typing import Any, Protocol

from accord._files import fingerprint
from accord.learning import HistoryRow, Report
from accord.methods import Recipe, recipe_from_config
from accord.tuning.trials._store import TrialStore
from accord.tuning.trials._trial import TrialResult, plain_recipe

FINAL = "final"
DEFAULT, WINNER = 0, 1  # numbers of the two
FINAL_NAMES = ("default", "winner")


@dataclass(frozen=True)
class Settings:
    """What a search sets: a recipe and a treatment of features."""

    recipe: Recipe
    features: str


@dataclass(frozen=True)
class Final:
    """A whole model on validation data; scores are None where they are not defined."""

    score: float | None  # at the level asked for
    loss: float | None  # mean cross-entropy of validation labels, in nats
    settings: Settings  # that it was trained with; of the default model those of the networks that it kept


class FitFinal(Protocol):
    """Trains a whole model as `fit` does, with the seed of the run, and judges it on the validation graphs."""

    members: int  # of an ensemble

    def __call__(self, settings: Settings | None, folder: Path, report: Report) -> Final:
        """Train the default model (None), or one of a search's settings, with checkpoints in a folder."""


class _OutOfTime(Exception):
    """The default model would take more of the time than it may."""


class Finals:
    """The default model and the winner of one search, in its store.

    Args:
        fit: trains and judges.
        store: of the search; what is stored is not trained again.
        first: the settings that the search starts from.
        report: called with each of the two.
    """

    def __init__(
        self, fit: FitFinal, store: TrialStore, first: Settings, report: Callable[[TrialResult], object] | None
    ) -> None:
        self.fit, self.store, self.first, self.report = fit, store, first, report
        self.found: dict[int, TrialResult] = {}

    def try_default(self, seconds: float) -> TrialResult:
        """The default model; without a score if it takes longer than so many seconds.

        Its networks go on from their checkpoints if there is more time at the next attempt.
        """
        asked = self._asked(DEFAULT, self.first)
        stored = self.store.find(asked)
        spent = 0.0 if stored is None else stored.seconds
        if stored is None or (stored.score is None and spent < seconds):
            began = perf_counter()

            def report(row: HistoryRow) -> None:
                if spent + perf_counter() - began > seconds:
                    raise _OutOfTime("The time is over.")

            try:
                final = self.fit(None, folder_of(self.store.folder, asked), report)
            except _OutOfTime:
                final = Final(None, None, self.first)
            taken = perf_counter() - began
            result = replace(asked, score=final.score, loss=final.loss, seconds=round(spent + taken, 3))
            stored = self.store.add(replace(result, kept=_plain(final.settings)), taken)
        return self._keep(stored)

    def try_winner(self, settings: Settings) -> TrialResult:
        """The model of a search's settings."""
        asked = self._asked(WINNER, settings)
        stored = self.store.find(asked)
        if stored is None:
            began = perf_counter()
            final = self.fit(settings, folder_of(self.store.folder, asked), lambda row: None)
            seconds = round(perf_counter() - began, 3)
            stored = self.store.add(replace(asked, score=final.score, loss=final.loss, seconds=seconds))
        return self._keep(stored)

    @property
    def compared(self) -> bool:
        """Whether there was time for the default model."""
        return self.found[DEFAULT].score is not None

    @property
    def default_wins(self) -> bool:
        """Whether the winner is no better; likelihood decides between equal scores."""
        return self.compared and self.found[WINNER].rank <= self.found[DEFAULT].rank

    @property
    def kept(self) -> tuple[Settings, Path]:
        """The settings of the better one, and the folder of its checkpoints."""
        result = self.found[DEFAULT if self.default_wins else WINNER]
        values = result.kept or {"recipe": result.recipe, "features": result.features}
        settings = Settings(recipe_from_config(values["recipe"]), values["features"])
        return settings, folder_of(self.store.folder, result)

    def remove_checkpoints(self) -> None:
        """Of the worse one, which nobody goes on from."""
        if self.compared:
            worse = self.found[WINNER if self.default_wins else DEFAULT]
            shutil.rmtree(folder_of(self.store.folder, worse), ignore_errors=True)

    def _asked(self, number: int, settings: Settings) -> TrialResult:
        recipe, epochs = plain_recipe(settings.recipe), settings.recipe.training.max_epochs
        return TrialResult(
            FINAL, number, 0, epochs, None, None, 0.0, settings.features, recipe, evidence=self.fit.members
        )

    def _keep(self, result: TrialResult) -> TrialResult:
        self.found[result.number] = result
        if self.report is not None:
            self.report(result)
        return result


def folder_of(place: Path, asked: TrialResult) -> Path:
    """Where a model keeps its checkpoints: a folder for each set of settings."""
    own = fingerprint([repr((asked.recipe, asked.features, asked.evidence))])
    return place / f"{FINAL_NAMES[asked.number]}-{own}"


def _plain(settings: Settings) -> dict[str, Any]:
    return {"recipe": plain_recipe(settings.recipe), "features": settings.features}
