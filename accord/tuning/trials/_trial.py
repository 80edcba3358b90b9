"""A trial: settings trained for a while on training graphs and judged on validation graphs.

A trial is a plain function of graphs, method and recipes. It reads no other data and keeps nothing but the checkpoints
in its folder, so that it can run in any process.
"""

import json
import math
import time
import warnings
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import torch
from torch import Tensor

from accord.errors import DivergenceWarning
from accord.learning import Replicas, TrainingRun
from accord.learning.objectives import edge_loss, node_loss, rank
from accord.methods import METHODS, FieldModel, PairRecipe, Recipe, Shape, SPNRecipe, recipe_to_config
from accord.tuning._parts import TrainedPart, combine_parts, train_edge_part, train_node_part, validation_batch
from accord.tuning.trials._halving import Rank, as_rank

Part = Literal["node", "edge", "whole"]
SHARPNESSES = (1.0, 0.5, 0.2)  # weights of an edge network beside a node network


@dataclass(frozen=True)
class Group:
    """Settings that are trained side by side: their recipes differ in rate and weight decay of one network alone."""

    part: Part  # what is trained: the node network, the edge network, or the whole model
    method: str
    features: str  # the treatment of the graphs that they are trained on
    recipes: tuple[Recipe, ...]
    numbers: tuple[int, ...]  # of the trials, one for each recipe

    def recipe(self, number: int) -> Recipe:
        """The recipe of a trial."""
        return self.recipes[self.numbers.index(number)]


@dataclass(frozen=True)
class TrialResult:
    """What came of one trial; scores are means over seeds and tasks, None where they are not defined."""

    part: str
    number: int
    rung: int
    epochs: int
    score: float | None  # on validation graphs, as a fraction: of nodes or graphs, or of pairs of labels on edges
    loss: float | None  # mean cross-entropy of validation labels, or of pairs of labels, in nats
    seconds: float  # of this rung
    features: str
    recipe: dict[str, Any]
    evidence: int | None = None  # of an edge network: the node trial beside which it was judged; of a final: members
    at: float = 0.0  # seconds of the whole search when the trial ended
    kept: dict[str, Any] | None = None  # of the default model: recipe and features of the networks that it kept

    @property
    def rank(self) -> Rank:
        """Node networks and whole models go by score, edge networks by likelihood; the other number breaks ties."""
        loss = None if self.loss is None else -self.loss
        return as_rank(loss, self.score) if self.part == "edge" else as_rank(self.score, loss)


def run_trials(
    run: TrainingRun,
    shape: Shape,
    group: Group,
    level: str,
    seeds: Sequence[int],
    epochs: int,
    rung: int = 0,
    only: Sequence[int] | None = None,
    evidence: Tensor | None = None,
) -> list[TrialResult]:
    """Train the settings of a group up to a number of epochs and judge them on validation graphs.

    Args:
        run: graphs treated as the group asks for, and a checkpoint folder of this group, from which networks of fewer
            epochs are continued. Whole models start again.
        shape: sizes that the data fix.
        group: what to train.
        level: what to judge by.
        seeds: of each setting; its scores are averaged.
        epochs: in all, those of the checkpoint included.
        rung: kept with the results.
        only: numbers of the trials to go on with; None takes all of the group.
        evidence: of edge networks: scores [seeds x tasks, nodes, states] of a node network on the validation graphs.
            The loss is then that of the two together, so that scorers which know only whether labels agree compare
            with those that know how often each label occurs.
    """
    wanted = list(group.numbers if only is None else only)
    began = time.perf_counter()
    score, loss = [], []
    if group.part == "whole":
        for number in wanted:
            model = train_whole(run, shape, group, number, level, seeds, epochs)
            found = judge(model, run, Replicas(tuple(seeds), shape.num_tasks), level)
            score.append(found[0])
            loss.append(found[1])
    else:
        trained = train_group(run, shape, group, level, seeds, epochs, wanted)
        for number in wanted:
            member = trained.subset(_places(group, number, len(seeds) * shape.num_tasks))
            score.append(_mean(member.score))
            loss.append(_mean(member.loss if evidence is None else pair_loss(member, evidence, run, shape, seeds)))
    seconds = (time.perf_counter() - began) / len(wanted)
    return [
        TrialResult(
            group.part,
            number,
            rung,
            epochs,
            score[place],
            loss[place],
            round(seconds, 3),
            group.features,
            plain_recipe(group.recipe(number)),
        )
        for place, number in enumerate(wanted)
    ]


def run_trial(
    run: TrainingRun,
    shape: Shape,
    method: str,
    recipe: Recipe,
    level: str = "node",
    seeds: Sequence[int] = (0,),
    part: Part = "whole",
    features: str = "raw",
) -> TrialResult:
    """Train one recipe, for as long as it says, and judge it on validation graphs."""
    group = Group(part, method, features, (recipe,), (0,))
    return run_trials(run, shape, group, level, seeds, recipe.training.max_epochs)[0]


def train_group(
    run: TrainingRun,
    shape: Shape,
    group: Group,
    level: str,
    seeds: Sequence[int],
    epochs: int,
    only: Sequence[int] | None,
) -> TrainedPart:
    """The networks of a group, side by side: replicas are ordered by setting, then seed, then task."""
    replicas = Replicas(tuple(seeds) * len(group.recipes), shape.num_tasks)
    each = len(seeds) * shape.num_tasks
    recipe = _with_epochs(group.recipes[0], epochs)
    several = len(group.recipes) > 1
    going = [place for number in only for place in _places(group, number, each)] if several and only else None
    if group.part == "edge":
        pairs = [own for own in group.recipes if isinstance(own, PairRecipe)]
        options = [own.edge for own in pairs for _ in range(each)] if several else None
        assert isinstance(recipe, PairRecipe)
        return train_edge_part(recipe, run, shape, replicas, options, going)
    options = [own.node for own in group.recipes for _ in range(each)] if several else None
    return train_node_part(recipe, run, shape, replicas, level, options, going)


def train_member(
    run: TrainingRun, shape: Shape, group: Group, number: int, level: str, seeds: Sequence[int], epochs: int
) -> TrainedPart:
    """The network of one trial of a group, as the group's checkpoint has it; trained again if there is none.

    The epochs are those that the group's last trial had; others left it with their best parameters.
    """
    trained = train_group(run, shape, group, level, seeds, epochs, None)
    return trained.subset(_places(group, number, len(seeds) * shape.num_tasks))


def train_whole(
    run: TrainingRun, shape: Shape, group: Group, number: int, level: str, seeds: Sequence[int], epochs: int
) -> FieldModel:
    """A whole model of one trial, trained from the start."""
    method = METHODS[group.method](_with_epochs(group.recipe(number), epochs), level)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DivergenceWarning)
        return method.fit(replace(run, folder=None), shape, Replicas(tuple(seeds), shape.num_tasks))


def judge_pair(
    recipe: SPNRecipe,
    node: TrainedPart,
    edge: TrainedPart,
    run: TrainingRun,
    shape: Shape,
    seeds: Sequence[int],
    level: str,
) -> tuple[float | None, float | None]:
    """Score and loss on validation graphs of the SPN that two networks make."""
    replicas = Replicas(tuple(seeds), shape.num_tasks)
    model = combine_parts(recipe, node, edge, run, shape, replicas, level)
    return judge(model, run, replicas, level)


def judge(model: FieldModel, run: TrainingRun, replicas: Replicas, level: str) -> tuple[float | None, float | None]:
    """Score of joint labels, and cross-entropy of marginals in nats, on validation graphs."""
    held_out, targets = validation_batch(run, replicas, model.device)
    answer = model.answers(held_out)[model.method]
    logs = answer.probabilities.clamp_min(torch.finfo(torch.float32).tiny).log()
    return _mean(rank(answer.labels, targets, held_out.topology, level, logs)), _mean(node_loss(logs, targets))


@torch.no_grad()
def pair_loss(edge: TrainedPart, evidence: Tensor, run: TrainingRun, shape: Shape, seeds: Sequence[int]) -> Tensor:
    """Mean cross-entropy of pairs of labels [R], each edge by itself, of an edge network beside a node network.

    The table of an edge is divided by its own sums, as in Eq. 5, and multiplied by the node network's marginals; the
    best of a few weights of the edge network counts.
    """
    device = next(edge.part.parameters()).device
    replicas = Replicas(tuple(seeds), shape.num_tasks)
    held_out, targets = validation_batch(run, replicas, device)
    logits = edge.part(held_out).float()
    node = evidence.to(device).float().log_softmax(-1)
    source, target = held_out.topology.edge_index
    losses = []
    for sharpness in SHARPNESSES:
        table = (sharpness * logits).flatten(-2).log_softmax(-1).view_as(logits)
        table = table - table.logsumexp(-1, keepdim=True) - table.logsumexp(-2, keepdim=True)
        both = table + node[:, source, :, None] + node[:, target, None, :]
        losses.append(edge_loss(both, targets, held_out.topology))
    return torch.stack(losses).amin(0).cpu()


def plain_recipe(recipe: Recipe) -> dict[str, Any]:
    """A recipe as it is read back from json: with lists, not tuples."""
    plain: dict[str, Any] = json.loads(json.dumps(recipe_to_config(recipe)))
    return plain


def _with_epochs(recipe: Recipe, epochs: int) -> Recipe:
    return replace(recipe, training=replace(recipe.training, max_epochs=epochs))


def _places(group: Group, number: int, each: int) -> list[int]:
    """The replicas of a trial in its group."""
    first = group.numbers.index(number) * each
    return list(range(first, first + each))


def _mean(values: Tensor) -> float | None:
    """The mean; None if it is not a finite number."""
    mean = float(values.double().nanmean())
    return mean if math.isfinite(mean) else None
