"""The search: node networks, edge networks and their pairs, or whole recipes, by successive halving on validation data.

The settings of an SPN's node network and of its edge network are searched apart, and the best of both are combined.
Both must be trained on the same features and batches, so edge networks are tried on those of the best node networks.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from time import perf_counter
from typing import Any

import torch
from torch import Tensor

from accord.graphs import fingerprint_graphs
from accord.learning import CombinationGrid, Replicas, TrainingOptions
from accord.methods import Recipe, SPNRecipe, recipe_from_config
from accord.tuning._groups import Draws, Problem, context_of
from accord.tuning._halving import Rank, successive_halving
from accord.tuning._parts import TrainedPart, validation_batch
from accord.tuning._plan import RUNGS, SEARCH_SHARE, SearchBudget, updates_per_epoch
from accord.tuning._schedule import pace
from accord.tuning._space import SearchSpace
from accord.tuning._store import TrialStore
from accord.tuning._trial import Group, Part, TrialResult, judge_pair, plain_recipe, run_trials, train_member

NODE_SHARE = 0.6  # of the trials; the rest are for edge networks
# Shares of the time at which the phases end; what remains is for the training of the winner.
NODES_END, EDGES_END, PAIRS_END = 0.35, 0.7, SEARCH_SHARE
FIRST_RUNG_SHARE = 0.5  # of the time of a phase
BEST_NODES, BEST_EDGES = 3, 3  # networks that are combined
CONTEXTS = 2  # features and batches of the best node networks, on which edge networks are tried
# Values of the grid by which pairs are compared.
COARSE: dict[str, tuple[float, ...]] = {"sharpness": (1.0, 0.5, 0.2, 0.0), "power": (1.0, 0.1), "node_weight": (1.0,)}
PAIR = "pair"
PAIR_STRIDE = 1000  # a pair's number is PAIR_STRIDE * node trial + edge trial
ReportTrial = Callable[[TrialResult], None]


@dataclass(frozen=True)
class SearchResult:
    """The winner, and every trial."""

    method: str
    features: str
    recipe: Recipe
    trials: list[TrialResult]  # every rung of every trial, in the order in which they ended


def search(
    problem: Problem,
    space: SearchSpace,
    budget: SearchBudget,
    seed: int = 0,
    folder: Path | None = None,
    report: ReportTrial | None = None,
) -> SearchResult:
    """Find settings that are good on validation graphs.

    Args:
        problem: graphs, method and the settings to start from, which are a candidate too.
        space: what may be set.
        budget: when to stop.
        seed: of the draws and of the trials.
        folder: where every finished trial is kept; a search that was stopped continues from there.
        report: called with every trial, as soon as it is finished or found in the folder.
    """
    if folder is None:
        with TemporaryDirectory(prefix="accord-search-") as place:
            return search(problem, space, budget, seed, Path(place), report)
    running = _Search(problem, space, budget, seed, folder, report)
    if problem.separate:
        winner = running.search_pairs()
    else:
        winner = running.search_alone("node" if problem.method in ("gnn", "smooth") else "whole")
    running.store.remove_checkpoints()
    recipe = recipe_from_config(winner.recipe)
    training = running.winner_training(winner, recipe.training)
    results = sorted(running.results.values(), key=lambda own: (own.at, own.part, own.number, own.rung))
    return SearchResult(problem.method, winner.features, replace(recipe, training=training), results)


class _Search:
    """One search: what it is given, and the trials so far."""

    def __init__(
        self,
        problem: Problem,
        space: SearchSpace,
        budget: SearchBudget,
        seed: int,
        folder: Path,
        report: ReportTrial | None,
    ) -> None:
        self.problem, self.budget, self.report = problem, budget, report
        self.draws = Draws(problem, space, seed)
        self.seeds = budget.trial_seeds(seed)
        self.store = TrialStore(folder, _identity(self.draws, budget))
        self.groups: dict[tuple[str, int], Group] = {}  # by part and number of a trial
        self.last: dict[tuple[str, int], TrialResult] = {}  # the highest rung of each trial
        self.results: dict[tuple[str, int, int], TrialResult] = {}  # every rung, without what an earlier search left
        self.best_nodes: list[int] = []
        self.node_scores: dict[int, Tensor] = {}  # by node trial

    # The two kinds of searches

    def search_alone(self, part: Part) -> TrialResult:
        """Node networks alone, or whole recipes."""
        draw = self.draws.nodes if part == "node" else self.draws.wholes
        best = self._halve(draw(self.budget.trials), 0.0, PAIRS_END, always=[0])[0]
        return self.last[part, best]

    def search_pairs(self) -> TrialResult:
        """Node networks, then edge networks for the best of them, then pairs of the best of both."""
        count = max(1, round(NODE_SHARE * self.budget.trials))
        nodes = self.best_nodes = self._halve(self.draws.nodes(count), 0.0, NODES_END, always=[0])
        contexts = list(dict.fromkeys(context_of(self.groups["node", number]) for number in nodes))[:CONTEXTS]
        groups = self.draws.edges(max(1, self.budget.trials - count), contexts)
        first = [group.numbers[0] for group in groups if self.draws.is_first(group)]
        edges = self._halve(groups, NODES_END, EDGES_END, always=first)
        pairs = [
            (node, edge)
            for node in dict.fromkeys([*nodes[:BEST_NODES], *(number for number in nodes if not number)])
            for edge in dict.fromkeys([*edges[:BEST_EDGES], *(number for number in edges if number in first)])
            if context_of(self.groups["node", node]) == context_of(self.groups["edge", edge])
        ]
        pairs.sort(key=lambda pair: nodes.index(pair[0]) + edges.index(pair[1]))
        # The first candidate is judged even if the time is over: the table shows what the search has gained.
        needed = [*pairs[:1], *(pair for pair in pairs if not pair[0] and pair[1] in first)]
        found = [self._judge_pair(*pair, needed=pair in needed) for pair in dict.fromkeys([*needed, *pairs])]
        return max((result for result in found if result is not None), key=lambda result: result.rank)

    def winner_training(self, winner: TrialResult, training: TrainingOptions) -> TrainingOptions:
        """How long the winner trains: as `fit` does, or what the time allows, but not less than its trial."""
        started, graphs = self.problem.recipe.training, len(self.problem.train)
        training = replace(training, checkpoint_every=started.checkpoint_every)
        if started.patience is not None and self.budget.max_epochs is None:
            training = pace(training, updates_per_epoch(graphs, training.batch_graphs))
        else:
            full = self.budget.epochs_of(len(RUNGS) - 1, graphs, training.batch_graphs)
            training = replace(training, max_epochs=full)
        if self.budget.minutes is None or not self.budget.train_winner:
            return training
        parts, remaining = [(winner.part, winner.number)], self.budget.deadline(1.0) - self.store.seconds
        if winner.part == PAIR:
            parts = list(zip(("node", "edge"), divmod(winner.number, PAIR_STRIDE), strict=True))
            grid = CombinationGrid(**winner.recipe["grid"])
            remaining -= winner.seconds * len(grid.candidates()) / len(coarse_grid(grid).candidates())
        each = 0.0  # seconds of an epoch, by the slowest rung of each network
        for part in parts:
            rungs = sorted((own.epochs, own.seconds) for own in self.results.values() if (own.part, own.number) == part)
            before = [0, *(epochs for epochs, _ in rungs)]
            each += max(seconds / max(end - start, 1) for (end, seconds), start in zip(rungs, before, strict=False))
        allowed = max(winner.epochs, int(remaining / max(each, 1e-9)))
        return replace(training, max_epochs=min(training.max_epochs, allowed))

    # Halving

    def _halve(self, groups: Sequence[Group], start: float, end: float, always: Sequence[int]) -> list[int]:
        """Successive halving of one part, in its share of the time; the best trial comes first."""
        part = groups[0].part
        self.groups |= {(part, number): group for group in groups for number in group.numbers}

        def evaluate(going: Sequence[int], rung: int) -> dict[int, Rank]:
            # The first rung leaves time for the others, which take what remains.
            deadline = self.budget.deadline(end if rung else start + (end - start) * FIRST_RUNG_SHARE)
            found: dict[int, Rank] = {}
            for group in dict.fromkeys(self.groups[part, number] for number in going):
                mine = [number for number in group.numbers if number in going]
                for result in self._run(group, mine, rung, deadline, forced=not rung and not found):
                    found[result.number] = result.rank
            return found

        numbers = [number for group in groups for number in group.numbers]
        return successive_halving(numbers, len(RUNGS), evaluate, always=always)

    def _run(self, group: Group, numbers: Sequence[int], rung: int, deadline: float, forced: bool) -> list[TrialResult]:
        """Results of some trials of a group, from the store where they are there; none if the time is over."""
        epochs, beside = self._epochs(group, rung), self._evidence(group)
        asked = [_asked(group.part, n, rung, epochs, group.features, group.recipe(n), beside) for n in numbers]
        known = {own.number: stored for own in asked if (stored := self.store.find(own)) is not None}
        if len(known) < len(numbers):
            if not forced and self.store.seconds + self._expected(group, numbers, rung) > deadline:
                return []
            folder = self._folder(group)
            found = run_trials(
                replace(self.problem.run(group.features, group.recipes[0]), folder=folder),
                self.problem.shape_of(group.recipes[0]),
                group,
                self.problem.level,
                self.seeds,
                epochs,
                rung,
                # Without a checkpoint of the rung before, the whole group is trained again.
                numbers if not rung or folder.is_dir() else None,
                None if beside is None else self._node_scores(beside),
            )
            missing = [own for own in found if own.number in numbers and own.number not in known]
            known |= {own.number: self.store.add(replace(own, evidence=beside)) for own in missing}
        for number in numbers:
            self._keep(known[number])
        return [known[number] for number in numbers]

    def _epochs(self, group: Group, rung: int) -> int:
        return self.budget.epochs_of(rung, len(self.problem.train), group.recipes[0].training.batch_graphs)

    def _expected(self, group: Group, numbers: Sequence[int], rung: int) -> float:
        """Seconds that trials will take: from their rung before, or from the other trials of the first rung."""
        if rung:
            past = [0, *(self._epochs(group, before) for before in range(rung + 1))]
            growth = (past[-1] - past[-2]) / max(past[-2] - past[-3], 1)
            return growth * sum(self.last[group.part, number].seconds for number in numbers)
        others = [own.seconds for own in self.store.results.values() if (own.part, own.rung) == (group.part, 0)]
        return len(numbers) * sum(others) / max(len(others), 1)

    # Trained networks

    def _evidence(self, group: Group) -> int | None:
        """The node trial beside which an edge network is judged: the best one with the same features and batches."""
        if group.part != "edge":
            return None
        same = (number for number in self.best_nodes if context_of(self.groups["node", number]) == context_of(group))
        return next(same)

    def _node_scores(self, number: int) -> Tensor:
        """Scores [seeds x tasks, nodes, states] of the network of a node trial on the validation graphs."""
        if number not in self.node_scores:
            trained = self._trained("node", number)
            group = self.groups["node", number]
            run = self.problem.run(group.features, group.recipes[0])
            replicas = Replicas(tuple(self.seeds), self.problem.shape.num_tasks)
            held_out, _ = validation_batch(run, replicas, next(trained.part.parameters()).device)
            with torch.no_grad():
                self.node_scores[number] = trained.part(held_out)
        return self.node_scores[number]

    def _trained(self, part: str, number: int) -> TrainedPart:
        """The network of a trial, from its group's checkpoint."""
        group, problem = self.groups[part, number], self.problem
        run = replace(problem.run(group.features, group.recipes[0]), folder=self._folder(group))
        epochs = max(own.epochs for (kind, n), own in self.last.items() if kind == part and n in group.numbers)
        shape = problem.shape_of(group.recipes[0])
        return train_member(run, shape, group, number, problem.level, self.seeds, epochs)

    def _judge_pair(self, node: int, edge: int, needed: bool) -> TrialResult | None:
        """The SPN of two trained networks; None if the time is over and it is not needed."""
        ours = self.last["node", node], self.last["edge", edge]
        node_recipe, edge_recipe = (self.groups[own.part, own.number].recipe(own.number) for own in ours)
        assert isinstance(node_recipe, SPNRecipe) and isinstance(edge_recipe, SPNRecipe)
        recipe = replace(
            node_recipe, edge_encoder=edge_recipe.edge_encoder, scorer=edge_recipe.scorer, edge=edge_recipe.edge
        )
        asked = _asked(PAIR, PAIR_STRIDE * node + edge, 0, ours[0].epochs, ours[0].features, recipe)
        result = self.store.find(asked)
        if result is None:
            if not needed and self.store.seconds > self.budget.deadline(PAIRS_END):
                return None
            began, problem = perf_counter(), self.problem
            parts = [self._trained(own.part, own.number) for own in ours]
            run, shape = problem.run(asked.features, recipe), problem.shape_of(recipe)
            coarse = replace(recipe, grid=coarse_grid(recipe.grid))
            score, loss = judge_pair(coarse, parts[0], parts[1], run, shape, self.seeds, problem.level)
            seconds = round(perf_counter() - began, 3)
            result = self.store.add(replace(asked, score=score, loss=loss, seconds=seconds))
        self._keep(result)
        return result

    def _folder(self, group: Group) -> Path:
        return self.store.checkpoint_folder(f"{group.part}-{group.numbers[0]:03d}")

    def _keep(self, result: TrialResult) -> None:
        self.last[result.part, result.number] = result
        self.results[result.part, result.number, result.rung] = result
        if self.report is not None:
            self.report(result)


def coarse_grid(grid: CombinationGrid) -> CombinationGrid:
    """A few candidates of a grid, enough to compare networks; the winner is trained with the whole grid."""
    few: dict[str, Any] = {
        name: tuple(value for value in values if value in getattr(grid, name)) for name, values in COARSE.items()
    }
    return replace(grid, **{name: values for name, values in few.items() if values})


def _asked(
    part: str, number: int, rung: int, epochs: int, features: str, recipe: Recipe, evidence: int | None = None
) -> TrialResult:
    """A trial that has no result yet."""
    return TrialResult(part, number, rung, epochs, None, None, 0.0, features, plain_recipe(recipe), evidence)


def _identity(draws: Draws, budget: SearchBudget) -> dict[str, Any]:
    """Everything on which a trial depends, except how many there are and how long they may take."""
    problem = draws.problem
    recipe = plain_recipe(problem.recipe)
    recipe["training"] = {name: value for name, value in recipe["training"].items() if name != "accelerator"}
    weights = {} if problem.weights is None else {"weights": problem.weights.node.tolist()}
    return weights | {
        "data": {
            "train": fingerprint_graphs(list(problem.train)),
            "validation": fingerprint_graphs(list(problem.validation)),
        },
        "shape": {name: value for name, value in vars(problem.shape).items() if name != "edge_columns"},
        "level": problem.level,
        "method": problem.method,
        "features": problem.features,
        "recipe": recipe,
        "space": draws.space.to_config(),
        "seed": draws.seed,
        "training": {name: getattr(budget, name) for name in ("seeds", "updates", "epochs", "max_epochs")},
    }
