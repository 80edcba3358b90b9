"""The search: node networks, edge networks and their pairs, or whole recipes, by successive halving on validation data.

The settings of an SPN's node network and of its edge network are searched apart, and the best of both are combined.
Both must be trained on the same features and batches, so edge networks are tried on those of the best node networks.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from time import perf_counter
from typing import Any

import torch
from torch import Tensor

from accord.distributed.engines import Engine, LocalEngine, Shared
from accord.graphs import fingerprint_graphs
from accord.learning import CombinationGrid, Replicas, TrainingOptions
from accord.methods import Recipe, SPNRecipe, recipe_from_config
from accord.tuning._parts import validation_batch
from accord.tuning._schedule import pace
from accord.tuning.trials._finals import FINAL, Finals, FitFinal, Settings
from accord.tuning.trials._groups import Draws, Problem, context_of
from accord.tuning.trials._halving import Rank, successive_halving
from accord.tuning.trials._plan import DEFAULT_SHARE, RUNGS, SEARCH_SHARE, SearchBudget, updates_per_epoch
from accord.tuning.trials._space import SearchSpace
from accord.tuning.trials._store import TrialStore
from accord.tuning.trials._trial import Group, Part, TrialResult, plain_recipe
from accord.tuning.trials._work import GroupTask, Network, PairTask, load_network, run_group, run_pair

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
    """The winner (or the default model, if that is better), and every trial."""

    method: str
    features: str
    recipe: Recipe
    trials: list[TrialResult]  # every rung of every trial, in the order in which they ended
    compared: bool = False  # with the default model
    kept_default: bool = False  # because the winner is no better
    folder: Path | None = None  # of the checkpoints of the one that is kept


def search(
    problem: Problem,
    space: SearchSpace,
    budget: SearchBudget,
    seed: int = 0,
    folder: Path | None = None,
    report: ReportTrial | None = None,
    engine: Engine | None = None,
    final: FitFinal | None = None,
) -> SearchResult:
    """Find settings that are good on validation graphs.

    Args:
        problem: graphs, method and the settings to start from, which are a candidate too.
        space: what may be set.
        budget: when to stop.
        seed: of the draws and of the trials.
        folder: where every finished trial is kept; a search that was stopped continues from there.
        report: called with every trial, as soon as it is finished or found in the folder.
        engine: where trials run; None for this process. Which trials there are, and which wins, does not depend on it
            unless the time ends the search. An engine of several machines needs a folder that all of them share.
        final: trains whole models as `fit` does. The default model comes first, the winner last, both in this process;
            the result has the settings of the better one. None compares nothing.
    """
    if folder is None:
        with TemporaryDirectory(prefix="accord-search-") as place:
            return search(problem, space, budget, seed, Path(place), report, engine, final)
    running = _Search(problem, space, budget, seed, folder, report, engine)
    finals = None
    if final is not None:
        finals = Finals(final, running.store, Settings(problem.recipe, problem.features), running.keep)
        running.spend(finals.try_default(budget.deadline(DEFAULT_SHARE)).seconds)
    if problem.separate:
        winner = running.search_pairs()
    else:
        winner = running.search_alone("node" if problem.method in ("gnn", "smooth") else "whole")
    running.store.remove_checkpoints()
    recipe = recipe_from_config(winner.recipe)
    training = running.winner_training(winner, recipe.training)
    found = Settings(replace(recipe, training=training), winner.features)
    folder = None
    if finals is not None:
        finals.try_winner(found)
        found, folder = finals.kept
        finals.remove_checkpoints()
    results = sorted(running.results.values(), key=lambda own: (own.at, own.part, own.number, own.rung))
    told = (False, False) if finals is None else (finals.compared, finals.default_wins)
    return SearchResult(problem.method, found.features, found.recipe, results, *told, folder)


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
        engine: Engine | None = None,
    ) -> None:
        self.problem, self.budget, self.report = problem, budget, report
        self.engine = engine or LocalEngine()
        self.shared = self.engine.share(problem)
        self.draws = Draws(problem, space, seed)
        self.seeds = budget.trial_seeds(seed)
        self.store = TrialStore(folder, _identity(self.draws, budget))
        self.groups: dict[tuple[str, int], Group] = {}  # by part and number of a trial
        self.last: dict[tuple[str, int], TrialResult] = {}  # the highest rung of each trial
        self.results: dict[tuple[str, int, int], TrialResult] = {}  # every rung, without what an earlier search left
        self.best_nodes: list[int] = []
        self.node_scores: dict[int, Shared[Tensor]] = {}  # by node trial
        self.spent = 0.0  # seconds before the first trial

    @property
    def elapsed(self) -> float:
        """Seconds that the trials took so far."""
        ends = (result.at for result in self.store.results.values() if result.part != FINAL)
        return max(max(ends, default=0.0) - self.spent, 0.0)

    def spend(self, seconds: float) -> None:
        """Leave time for what was done before the first trial."""
        self.spent, self.budget = seconds, self.budget.after(seconds)

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
        return self._judge_pairs(list(dict.fromkeys([*needed, *pairs])), needed)

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
        parts, remaining = [(winner.part, winner.number)], self.budget.deadline(1.0) - self.elapsed
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
            tasks = [
                self._task(group, [number for number in group.numbers if number in going], rung)
                for group in dict.fromkeys(self.groups[part, number] for number in going)
            ]

            def waiting() -> Iterator[GroupTask]:
                begun = bool(rung)  # the first group of the first rung is trained in any case
                for task in tasks:
                    known = self._stored(task)
                    if len(known) == len(task.numbers):
                        for result in known.values():
                            found[result.number] = self.keep(result).rank
                    elif not begun or self.elapsed + self._expected(task) <= deadline:
                        yield self._with_evidence(task)
                    else:
                        continue
                    begun = True

            for task, results, taken in self._map(run_group, waiting()):
                for result in self._add(task, results, taken):
                    found[result.number] = self.keep(result).rank
            # In the order of the tasks, so that ties do not depend on which task was the first to finish.
            return {number: found[number] for task in tasks for number in task.numbers if number in found}

        numbers = [number for group in groups for number in group.numbers]
        return successive_halving(numbers, len(RUNGS), evaluate, always=always)

    def _map(self, work: Callable[..., Any], tasks: Iterator[Any]) -> Iterator[tuple[Any, Any, float]]:
        """Do tasks: each with its result, and the seconds that the search took since the result before."""
        before = perf_counter()
        for task, result in self.engine.map(partial(work, self.shared, self.seeds), tasks):
            now = perf_counter()
            yield task, result, now - before
            before = now

    def _task(self, group: Group, numbers: Sequence[int], rung: int) -> GroupTask:
        beside = self._evidence(group)
        return GroupTask(group, tuple(numbers), rung, self._epochs(group, rung), self._folder(group), beside)

    def _with_evidence(self, task: GroupTask) -> GroupTask:
        """The task with what its networks are judged beside."""
        return task if task.beside is None else replace(task, evidence=self._node_scores(task.beside))

    def _stored(self, task: GroupTask) -> dict[int, TrialResult]:
        """Results of a task's trials that are in the store."""
        group, found = task.group, {}
        for number in task.numbers:
            recipe = group.recipe(number)
            asked = _asked(group.part, number, task.rung, task.epochs, group.features, recipe, task.beside)
            stored = self.store.find(asked)
            if stored is not None:
                found[number] = stored
        return found

    def _add(self, task: GroupTask, results: Sequence[TrialResult], taken: float) -> list[TrialResult]:
        """Store what is not stored yet, and return all results of a task's trials."""
        known = self._stored(task)
        missing = [own for own in results if own.number in task.numbers and own.number not in known]
        for own in missing:
            known[own.number] = self.store.add(replace(own, evidence=task.beside), taken / len(missing))
        return [known[number] for number in task.numbers]

    def _epochs(self, group: Group, rung: int) -> int:
        return self.budget.epochs_of(rung, len(self.problem.train), group.recipes[0].training.batch_graphs)

    def _expected(self, task: GroupTask) -> float:
        """Seconds that trials will take: from their rung before, or from the other trials of the first rung."""
        group, numbers, rung = task.group, task.numbers, task.rung
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

    def _node_scores(self, number: int) -> Shared[Tensor]:
        """Scores [seeds x tasks, nodes, states] of the network of a node trial on the validation graphs."""
        if number not in self.node_scores:
            network = self._network("node", number)
            trained = load_network(self.problem, self.seeds, network)
            run = self.problem.run(network.group.features, network.group.recipes[0])
            replicas = Replicas(tuple(self.seeds), self.problem.shape.num_tasks)
            held_out, _ = validation_batch(run, replicas, next(trained.part.parameters()).device)
            with torch.no_grad():
                self.node_scores[number] = self.engine.share(trained.part(held_out).cpu())
        return self.node_scores[number]

    def _network(self, part: str, number: int) -> Network:
        """The trained network of a trial."""
        group = self.groups[part, number]
        epochs = max(own.epochs for (kind, n), own in self.last.items() if kind == part and n in group.numbers)
        return Network(group, number, epochs, self._folder(group))

    def _judge_pairs(self, pairs: Sequence[tuple[int, int]], needed: Sequence[tuple[int, int]]) -> TrialResult:
        """The best SPN of two trained networks; pairs that are not needed give way when the time is over."""
        found: dict[int, TrialResult] = {}
        tasks = [self._pair(*pair) for pair in pairs]

        def waiting() -> Iterator[PairTask]:
            for pair, task in zip(pairs, tasks, strict=True):
                stored = self.store.find(task.asked)
                if stored is not None:
                    found[stored.number] = self.keep(stored)
                elif pair in needed or self.elapsed <= self.budget.deadline(PAIRS_END):
                    yield task

        for _, result, taken in self._map(run_pair, waiting()):
            found[result.number] = self.keep(self.store.add(result, taken))
        ordered = (found[task.asked.number] for task in tasks if task.asked.number in found)
        return max(ordered, key=lambda result: result.rank)

    def _pair(self, node: int, edge: int) -> PairTask:
        ours = self.last["node", node], self.last["edge", edge]
        node_recipe, edge_recipe = (self.groups[own.part, own.number].recipe(own.number) for own in ours)
        assert isinstance(node_recipe, SPNRecipe) and isinstance(edge_recipe, SPNRecipe)
        recipe = replace(
            node_recipe, edge_encoder=edge_recipe.edge_encoder, scorer=edge_recipe.scorer, edge=edge_recipe.edge
        )
        asked = _asked(PAIR, PAIR_STRIDE * node + edge, 0, ours[0].epochs, ours[0].features, recipe)
        coarse = replace(recipe, grid=coarse_grid(recipe.grid))
        return PairTask(asked, coarse, self._network("node", node), self._network("edge", edge))

    def _folder(self, group: Group) -> Path:
        return self.store.checkpoint_folder(f"{group.part}-{group.numbers[0]:03d}").resolve()

    def keep(self, result: TrialResult) -> TrialResult:
        """Note a result and call the report callback."""
        self.last[result.part, result.number] = result
        self.results[result.part, result.number, result.rung] = result
        if self.report is not None:
            self.report(result)
        return result


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
