"""The end of a search: the default model and the winner are trained as `fit` does, and the better one is kept."""

import copy
import math
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from torch_geometric.data import Data

from accord.estimator.fitting._unlabelled import judge, portions_of
from accord.evaluation import mean_log_likelihood
from accord.graphs import GraphBatch, each, training_nodes
from accord.learning import Report, TrainingRun
from accord.tuning import Final, SearchResult, Settings

if TYPE_CHECKING:
    from accord.estimator._classifier import NodeClassifier


class FinalFits:
    """Trains whole models for a search, each without unlabelled graphs and refit, and keeps them.

    Args:
        model: whose data have been read; its parameters count, except those that a search sets.
        train: training graphs with raw features and labels as states.
        validation: validation graphs, likewise.
        follow: called with the rows of the winner's training.
    """

    def __init__(
        self, model: "NodeClassifier", train: Sequence[Data], validation: Sequence[Data], follow: Report | None = None
    ) -> None:
        self.model, self.train, self.validation, self.follow = model, train, validation, follow
        self.members = model.ensemble
        self.trained: dict[Path, tuple[NodeClassifier, TrainingRun]] = {}  # by the folder of the checkpoints

    def __call__(self, settings: Settings | None, folder: Path, report: Report) -> Final:
        """Train the default model (None), or one of a search's settings, and judge it on the validation graphs."""
        own = copy.copy(self.model)
        own.search = None
        features = own.resolve_features(each(self.train, training_nodes))
        if settings is not None:
            own.recipe, own.recipe_, features = settings.recipe, settings.recipe, settings.features

        def tell(row: dict[str, float]) -> None:
            report(row)
            if settings is not None and self.follow is not None:
                self.follow(row)

        run = own._learn(self.train, self.validation, features, folder, tell)
        self.trained[folder] = own, run
        whole = GraphBatch.collate(run.validation)
        assert whole.y is not None  # the trainer has refused graphs without labels
        truth = own.replicas_.targets(whole.y).cpu()
        found = judge(own.model_, portions_of(own, run.validation))
        likelihood = mean_log_likelihood(found.probabilities.double().log(), truth)
        score = found.score(own.level, truth, whole.topology)
        return Final(_plain(score), _plain(-float(likelihood.nanmean())), Settings(own.recipe_, own.treatment_.name))

    def better(self, result: SearchResult) -> tuple["NodeClassifier", TrainingRun]:
        """The model that a search has kept, and its run; a search that was found finished trains it again."""
        assert result.folder is not None  # with finals there is one
        if result.folder not in self.trained:
            settings = None if result.kept_default else Settings(result.recipe, result.features)
            self(settings, result.folder, lambda row: None)
        return self.trained[result.folder]


def _plain(value: float) -> float | None:
    return value if math.isfinite(value) else None
