"""The tasks of a search: a group of trials, or a pair of trained networks. Any process may do them.

A task is plain values. The graphs are shared: each process that does tasks receives them once.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from time import perf_counter

from torch import Tensor

from accord.distributed.engines import Report, Shared
from accord.learning.training import usual_torch
from accord.methods import SPNRecipe
from accord.tuning._parts import TrainedPart
from accord.tuning.trials._groups import Problem
from accord.tuning.trials._trial import Group, TrialResult, judge_pair, run_trials, train_member


@dataclass(frozen=True, eq=False)
class GroupTask:
    """Trials of a group that are trained up to a number of epochs."""

    group: Group
    numbers: tuple[int, ...]  # of the trials
    rung: int
    epochs: int
    folder: Path  # of the group's checkpoint
    beside: int | None = None  # of edge networks: the node trial beside which they are judged
    evidence: Shared[Tensor] | None = None  # scores of that node trial's network on the validation graphs


@dataclass(frozen=True, eq=False)
class Network:
    """A trained network of a trial: its group's checkpoint has it."""

    group: Group
    number: int
    epochs: int  # of the checkpoint
    folder: Path


@dataclass(frozen=True, eq=False)
class PairTask:
    """A node network and an edge network that make an SPN."""

    asked: TrialResult  # without a score
    recipe: SPNRecipe
    node: Network
    edge: Network


def run_group(
    problem: Shared[Problem], seeds: Sequence[int], task: GroupTask, report: Report | None = None
) -> list[TrialResult]:
    """Train and judge the trials of a task."""
    own, first = problem.get(), task.group.recipes[0]
    with usual_torch():
        return run_trials(
            replace(own.run(task.group.features, first), folder=task.folder),
            own.shape_of(first),
            task.group,
            own.level,
            seeds,
            task.epochs,
            task.rung,
            # Without a checkpoint of the rung before, the whole group is trained again.
            task.numbers if not task.rung or task.folder.is_dir() else None,
            None if task.evidence is None else task.evidence.get(),
        )


def run_pair(
    problem: Shared[Problem], seeds: Sequence[int], task: PairTask, report: Report | None = None
) -> TrialResult:
    """Judge the SPN of two networks."""
    own, began = problem.get(), perf_counter()
    with usual_torch():
        parts = [load_network(own, seeds, network) for network in (task.node, task.edge)]
        run, shape = own.run(task.asked.features, task.recipe), own.shape_of(task.recipe)
        score, loss = judge_pair(task.recipe, parts[0], parts[1], run, shape, seeds, own.level)
    return replace(task.asked, score=score, loss=loss, seconds=round(perf_counter() - began, 3))


def load_network(problem: Problem, seeds: Sequence[int], network: Network) -> TrainedPart:
    """A trained network, from its group's checkpoint; trained again if there is none."""
    group, first = network.group, network.group.recipes[0]
    run = replace(problem.run(group.features, first), folder=network.folder)
    return train_member(run, problem.shape_of(first), group, network.number, problem.level, seeds, network.epochs)
