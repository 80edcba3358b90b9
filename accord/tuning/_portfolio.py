"""The default model: a few networks of each kind are trained apart, and validation data choose among them.

No encoder is best on all graphs: where neighbours differ, or where a node's own features say it all, averaging over
neighbours does harm. Node and edge networks are trained apart anyway, so a portfolio of both is cheap: each network is
trained once, and only the most promising pairs are combined and compared.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import product
from typing import Any

import torch

from accord.learning import HistoryRow, Replicas, TrainingRun
from accord.methods import (
    GNN,
    FieldModel,
    Method,
    PairRecipe,
    ProxyModel,
    Recipe,
    Shape,
    SPNRecipe,
    StructuredProxyNetwork,
)
from accord.methods._refinement import refine
from accord.methods._triangles import extend
from accord.methods._validated import measure
from accord.tuning._candidates import Candidate
from accord.tuning._parts import TrainedPart, combine_parts, train_edge_part, train_node_part

KEPT = 2  # networks of each kind that are tried in pairs
NODE_LEVEL = "node"
METHODS_WITH_PORTFOLIO = ("spn", "gnn", "smooth")


@dataclass(frozen=True)
class Portfolio:
    """Candidates of the node network and of the edge network, and whether the edge network reads directions.

    With `edge_inputs`, networks are tried with and without the attributes of a node's edges among their inputs.
    """

    nodes: tuple[Candidate, ...]
    edges: tuple[Candidate, ...]
    symmetric: tuple[bool, ...] = (True,)
    edge_inputs: bool = False

    @property
    def is_choice(self) -> bool:
        """Whether there is anything to choose."""
        return len(self.nodes) > 1 or len(self.edges) > 1 or len(self.symmetric) > 1

    def trainings(self, recipe: Recipe) -> int:
        """How many networks are trained."""
        count = len(self.nodes) + (min(KEPT, len(self.nodes)) if self.edge_inputs else 0)
        return count + len(self.edges) + len(self.symmetric) - 1 if isinstance(recipe, PairRecipe) else count


@dataclass(frozen=True, eq=False)
class Fitted:
    """What came of a portfolio."""

    model: FieldModel
    recipe: Recipe  # that of the winner
    table: list[dict[str, Any]]  # one row for each candidate: validation score, loss and seconds
    run: TrainingRun  # with the inputs of the winner
    shape: Shape  # likewise


def fit_portfolio(
    portfolio: Portfolio,
    method: Method,
    run: TrainingRun,
    shape: Shape,
    replicas: Replicas,
    plain: tuple[TrainingRun, Shape] | None = None,
) -> Fitted:
    """Train the candidates and choose.

    Node networks are compared by their accuracy on validation nodes, which varies less than that of whole graphs, and
    by likelihood where accuracies are within a standard error of the best; edge networks by the likelihood of
    validation pairs. The best of both are combined in pairs and compared at the level asked for in the same way.

    Args:
        portfolio: the candidates.
        method: what is fitted, with the recipe that gives everything else.
        run: graphs, checkpoint folder and callback.
        shape: sizes that the data fix.
        replicas: seeds and tasks.
        plain: where `run` and `shape` have edge columns: both without them. The best node network is trained without
            them too, and if that is better, the next one.
    """
    recipe, level = replace(method.recipe, edge_inputs=method.recipe.edge_inputs or plain is not None), method.level
    stages = _Stages(run, recipe.training.max_epochs)
    nodes = []
    for candidate in portfolio.nodes:
        tried = replace(recipe, encoder=candidate.encoder, node=candidate.options)
        part = train_node_part(tried, stages.next(f"node-{tried.encoder.kind}"), shape, replicas, NODE_LEVEL)
        nodes.append((tried, part))
    table = [_row("node", tried.encoder.kind, part) for tried, part in nodes]
    if plain is not None:
        found = _without_edge_columns(nodes, *plain, stages, replicas)
        table += [_row("node", f"{tried.encoder.kind}, without edge attributes", part) for tried, part in found]
        nodes = _best_nodes([*nodes, *found], run)
        recipe = replace(recipe, edge_inputs=nodes[0][0].edge_inputs)
        nodes = [one for one in nodes if one[0].edge_inputs == recipe.edge_inputs]
        if not recipe.edge_inputs:
            run, shape = plain
        stages.run = run
    nodes = _best_nodes(nodes, run)
    if not isinstance(recipe, SPNRecipe):
        winner, node = nodes[0]
        stage = f"node-{winner.encoder.kind}" + ("-plain" if plain is not None and not winner.edge_inputs else "")
        return Fitted(_finish(method, winner, node, run, stage, shape, replicas), winner, table, run, shape)
    edges = _train_edges(portfolio, recipe, stages, shape, replicas)
    for edge_recipe, edge in edges:
        direction = "" if edge_recipe.scorer.symmetric else ", directed"
        table.append(_row("edge", edge_recipe.edge_encoder.kind + direction, edge))
    pairs: list[tuple[float, ProxyModel, SPNRecipe]] = []
    for (node_recipe, node), (edge_recipe, edge) in product(nodes[:KEPT], edges[:KEPT]):
        pair = replace(edge_recipe, encoder=node_recipe.encoder, node=node_recipe.node)
        alone = replace(pair, refinement=None)  # only the winner is refined
        model = combine_parts(alone, node, edge, run, shape, replicas, level, method.ensemble)
        model.history = _merged(node.history, edge.history)
        score = float(model.chosen.score.double().nanmean())
        table.append({"network": "both", "kind": f"{pair.encoder.kind} and {pair.edge_encoder.kind}", "score": score})
        pairs.append((score, model, pair))
    best = max(score for score, _, _ in pairs)
    # The first within the noise of the best: both lists are in order of likelihood.
    _, model, winner = next(one for one in pairs if one[0] >= best - standard_error(best, run, level))
    if winner.triangles is not None:
        own = StructuredProxyNetwork(winner, level, method.ensemble)
        model = extend(model, own, stages.next("order-3"), shape, replicas)
    elif winner.refinement is not None:
        refine(model, winner, level, run, replicas)
        weight = model.chosen.node_weight if winner.rule == "careful" else None
        model.validated = measure(model, run, replicas.pooled(method.ensemble), level, weight)
    return Fitted(model, winner, table, run, shape)


def _without_edge_columns(
    nodes: list[tuple[Recipe, TrainedPart]], run: TrainingRun, shape: Shape, stages: "_Stages", replicas: Replicas
) -> list[tuple[Recipe, TrainedPart]]:
    """The best node networks again, without edge columns: the first, and the next ones while that is better.

    Args:
        nodes: networks with edge columns.
        run: graphs without them.
        shape: likewise.
        stages: of the whole portfolio.
        replicas: seeds and tasks.
    """
    found: list[tuple[Recipe, TrainedPart]] = []
    for recipe, part in _by_accuracy(nodes)[:KEPT]:
        tried = replace(recipe, edge_inputs=False)
        stage = stages.next(f"node-{recipe.encoder.kind}-plain")
        again = replace(stage, train=run.train, validation=run.validation)
        found.append((tried, train_node_part(tried, again, shape, replicas, NODE_LEVEL)))
        if _best_nodes([(recipe, part), found[-1]], run)[0][0].edge_inputs:
            break
    return found


def _by_accuracy(nodes: list[tuple[Recipe, TrainedPart]]) -> list[tuple[Recipe, TrainedPart]]:
    """Networks in order of their accuracy on validation nodes, the best first; the loss breaks ties."""

    def rank(one: tuple[Recipe, TrainedPart]) -> tuple[float, float]:
        return float(one[1].score.double().nanmean()), -float(one[1].loss.double().nanmean())

    return sorted(nodes, key=rank, reverse=True)


def _row(network: str, kind: str, part: TrainedPart) -> dict[str, Any]:
    score, loss = float(part.score.double().nanmean()), float(part.loss.double().nanmean())
    return {"network": network, "kind": kind, "score": score, "loss": loss, "seconds": round(part.seconds, 2)}


def _finish(
    method: Method, recipe: Recipe, node: TrainedPart, run: TrainingRun, stage: str, shape: Shape, replicas: Replicas
) -> FieldModel:
    """The model of a method that has a node network only, which was trained in a stage of that name."""
    own = type(method)(recipe, method.level, method.ensemble)
    if method.name != GNN.name:  # it chooses more than the network
        return own.fit(run.stage(stage), shape, replicas)
    assert isinstance(own, GNN)
    model = own.build(shape, replicas)
    model.parts["node"], model.history, model.kept = node.part, node.history, {"node": node.kept}
    return own.settle(model, run, shape, replicas)


def _best_nodes(nodes: list[tuple[Recipe, TrainedPart]], run: TrainingRun) -> list[tuple[Recipe, TrainedPart]]:
    """Networks whose accuracy cannot be told from the best one's, the most likely first."""
    scores = [float(part.score.double().nanmean()) for _, part in nodes]
    near = max(scores) - standard_error(max(scores), run, NODE_LEVEL)
    close = [one for one, score in zip(nodes, scores, strict=True) if score >= near]
    return sorted(close, key=lambda one: float(one[1].loss.nanmean()))


def standard_error(score: float, run: TrainingRun, level: str) -> float:
    """Of an accuracy on the validation graphs: of nodes, or of whole graphs."""
    labelled = [graph for graph in run.validation if graph.y is not None and bool((graph.y >= 0).any())]
    count = len(labelled) if level == "graph" else sum(int((graph.y >= 0).sum()) for graph in labelled)
    return math.sqrt(max(score * (1 - score), 0.0) / max(count, 1))


def _train_edges(
    portfolio: Portfolio, recipe: SPNRecipe, stages: "_Stages", shape: Shape, replicas: Replicas
) -> list[tuple[SPNRecipe, TrainedPart]]:
    """Edge networks in order of validation loss; the first encoder decides whether directions are read."""
    found: list[tuple[SPNRecipe, TrainedPart]] = []
    symmetric: Sequence[bool] = portfolio.symmetric
    candidates, training = portfolio.edges, recipe.training
    if not any(graph.num_edges for graph in stages.run.train):  # there is nothing to learn, nor to choose by
        candidates, training = candidates[:1], replace(training, max_epochs=min(1, training.max_epochs))
    for candidate in candidates:
        for choice in symmetric:
            scorer = replace(recipe.scorer, symmetric=choice)
            tried = replace(recipe, edge_encoder=candidate.encoder, edge=candidate.options, scorer=scorer)
            name = f"edge-{tried.edge_encoder.kind}" + ("" if choice else "-directed")
            part = train_edge_part(replace(tried, training=training), stages.next(name), shape, replicas)
            found.append((tried, part))
        found.sort(key=lambda one: float(one[1].loss.nanmean()) if bool(one[1].loss.isfinite().any()) else torch.inf)
        symmetric = (found[0][0].scorer.symmetric,)
    return found


class _Stages:
    """Hands out a stage of the run to each training, with epochs that go on from one to the next."""

    def __init__(self, run: TrainingRun, epochs: int) -> None:
        self.run, self.epochs, self.done = run, epochs, 0

    def next(self, name: str) -> TrainingRun:
        before, self.done = self.done, self.done + self.epochs
        return replace(self.run.stage(name), report=self._shifted(before))

    def _shifted(self, before: int) -> Callable[[HistoryRow], None] | None:
        report = self.run.report
        if report is None:
            return None
        return lambda row: report({**row, "epoch": row["epoch"] + before})


def _merged(*histories: Sequence[HistoryRow]) -> list[HistoryRow]:
    """Rows of several networks by epoch; one that has ended keeps its last values."""
    merged: list[HistoryRow] = []
    last: HistoryRow = {}
    by_epoch: dict[float, HistoryRow] = {}
    for history in histories:
        for row in history:
            by_epoch.setdefault(row["epoch"], {}).update(row)
    for epoch in sorted(by_epoch):
        last = {**last, **by_epoch[epoch]}
        merged.append(last)
    return merged
