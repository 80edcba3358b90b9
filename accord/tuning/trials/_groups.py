"""Which settings a search tries: groups of trials, drawn one after the other from the space."""

import random
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from torch_geometric.data import Data

from accord.graphs import EdgeColumns, common_treatment, fit_treatment
from accord.learning import PartOptions, TrainingRun
from accord.learning.training import StateWeights
from accord.methods import Recipe, Shape, SPNRecipe
from accord.tuning._candidates import Candidate
from accord.tuning.trials._plan import for_search
from accord.tuning.trials._space import SearchSpace, draw_edge, draw_node, draw_options, draw_whole
from accord.tuning.trials._trial import Group, Part

WIDTH = 2  # settings of a group
Context = tuple[str, int | None, bool]  # features, graphs an update, whether networks read edge attributes


@dataclass(frozen=True, eq=False)
class Problem:
    """What is to be learned, and the settings that the search starts from."""

    train: Sequence[Data]  # with raw features, labels as states
    validation: Sequence[Data]
    shape: Shape
    level: str
    method: str
    recipe: Recipe  # the first candidate, and what the search leaves as it is
    features: str  # the treatment of features of the first candidate
    weights: StateWeights | None = None  # of training labels; None where all count the same
    edge_columns: EdgeColumns | None = None  # of recipes that read them
    nodes: tuple[Candidate, ...] = ()  # networks that are tried after the first candidate's and before drawn ones
    edges: tuple[Candidate, ...] = ()

    @cached_property
    def _runs(self) -> dict[tuple[str, bool], TrainingRun]:
        return {}

    def run(self, features: str, recipe: Recipe) -> TrainingRun:
        """The graphs as networks of a recipe read them; graphs that were given treated keep their treatment."""
        key = (features, recipe.edge_inputs)
        if key not in self._runs:
            treatment = common_treatment(list(self.train)) or fit_treatment(features, list(self.train))
            train, held_out = ([treatment.apply(graph) for graph in part] for part in (self.train, self.validation))
            if self.edge_columns is not None and recipe.edge_inputs:
                train, held_out = ([self.edge_columns.apply(graph) for graph in part] for part in (train, held_out))
            self._runs[key] = TrainingRun(train, held_out, weights=self.weights)
        return self._runs[key]

    def shape_of(self, recipe: Recipe) -> Shape:
        """The sizes that networks of a recipe have."""
        columns = self.edge_columns if recipe.edge_inputs else None
        return replace(self.shape, edge_columns=0 if columns is None else columns.count)

    @property
    def separate(self) -> bool:
        """Whether node and edge network are trained apart, so that their settings can be searched apart."""
        return isinstance(self.recipe, SPNRecipe) and not (self.recipe.shared or self.recipe.consistency)


@dataclass(frozen=True, eq=False)
class Draws:
    """Draws the groups of a search; every draw depends on the seed and its number alone.

    The first groups of each part are networks that the search is given, each once as it is and once with another rate.
    """

    problem: Problem
    space: SearchSpace
    seed: int

    @cached_property
    def base(self) -> Recipe:
        """The recipe that the search starts from."""
        return for_search(self.problem.recipe, len(self.problem.train))

    def nodes(self, trials: int) -> list[Group]:
        """Groups of node networks."""
        given = [Candidate(self.base.encoder, self.base.node), *self.problem.nodes]

        def draw(number: int, width: int) -> tuple[str, Sequence[Recipe]]:
            if number >= len(given):
                return draw_node(self.base, self.space, number - len(given), width, self.seed)
            first = replace(self.base, encoder=given[number].encoder, node=given[number].options)
            others = self._other_options(f"node {number}", width - 1, first.node.label_smoothing)
            return self.problem.features, [first, *(replace(first, node=own) for own in others)]

        return [self._group("node", numbers, *draw(place, len(numbers))) for place, numbers in _numbers(trials, WIDTH)]

    def edges(self, trials: int, contexts: Sequence[Context]) -> list[Group]:
        """Groups of edge networks, on the features and batches of good node networks, which take turns.

        Given networks are tried in the best context, the first candidate's in its own too.
        """
        assert isinstance(self.base, SPNRecipe)
        first = Candidate(self.base.edge_encoder, self.base.edge)
        given = [(own, contexts[0]) for own in (first, *self.problem.edges)]
        if self.own_context != contexts[0]:
            given.insert(1, (first, self.own_context))

        def draw(number: int, width: int) -> tuple[str, Sequence[Recipe]]:
            drawn = number - len(given)
            features, batch_graphs, edge_inputs = given[number][1] if drawn < 0 else contexts[drawn % len(contexts)]
            training = replace(self.base.training, batch_graphs=batch_graphs)
            base = replace(self.base, training=training, edge_inputs=edge_inputs)
            assert isinstance(base, SPNRecipe)
            if drawn >= 0:
                return features, draw_edge(base, self.space, drawn, width, self.seed)
            own = given[number][0]
            base = replace(base, edge_encoder=own.encoder, edge=own.options)
            others = self._other_options(f"edge {number}", width - 1, base.edge.label_smoothing)
            return features, [base, *(replace(base, edge=other) for other in others)]

        return [self._group("edge", numbers, *draw(place, len(numbers))) for place, numbers in _numbers(trials, WIDTH)]

    def wholes(self, trials: int) -> list[Group]:
        """Whole recipes, each by itself."""
        drawn = [(self.problem.features, self.base)]
        drawn += [draw_whole(self.base, self.space, number, self.seed) for number in range(trials - 1)]
        return [self._group("whole", (number,), features, [recipe]) for number, (features, recipe) in enumerate(drawn)]

    @property
    def own_context(self) -> Context:
        """Features, batches and inputs of the first candidate."""
        return self.problem.features, self.base.training.batch_graphs, self.base.edge_inputs

    def is_first(self, group: Group) -> bool:
        """Whether a group's edge network is that of the first candidate."""
        own, base = group.recipes[0], self.base
        assert isinstance(own, SPNRecipe) and isinstance(base, SPNRecipe)
        return (own.edge_encoder, own.scorer, own.edge) == (base.edge_encoder, base.scorer, base.edge)

    def _group(self, part: Part, numbers: tuple[int, ...], features: str, recipes: Sequence[Recipe]) -> Group:
        ready = tuple(for_search(recipe, len(self.problem.train)) for recipe in recipes)
        return Group(part, self.problem.method, features, ready, numbers)

    def _other_options(self, what: str, count: int, label_smoothing: float) -> list[PartOptions]:
        drawn = draw_options(random.Random(f"first {what} {self.seed}"), count)
        return [replace(own, label_smoothing=label_smoothing) for own in drawn]


def context_of(group: Group) -> Context:
    """Features, batches and inputs of a group."""
    return group.features, group.recipes[0].training.batch_graphs, group.recipes[0].edge_inputs


def _numbers(trials: int, width: int) -> list[tuple[int, tuple[int, ...]]]:
    """The groups of so many trials: their places, and the numbers of their trials."""
    firsts = range(0, trials, width)
    return [(place, tuple(range(first, min(first + width, trials)))) for place, first in enumerate(firsts)]
