"""Training of a cell: its seeds side by side, selection on validation data, one test at the end."""

import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from accord.datasets import Benchmark, load_benchmark
from accord.evaluation import graph_accuracy, node_accuracy, node_ids
from accord.experiments._paper import CITATION_SETS
from accord.experiments._provenance import provenance
from accord.experiments.reproduction._ablation import ablate
from accord.experiments.reproduction._cells import ABLATION, TRAINING, WIDTHS, Block, Cell, is_in_figure_5
from accord.experiments.reproduction._recipes import cell_recipe
from accord.experiments.reproduction._records import Context, Metrics, Record, plain_recipe, recipe_code
from accord.graphs import GraphBatch
from accord.learning import HistoryRow, Replicas, TrainingRun
from accord.methods import METHODS, FieldModel, ProxyModel, Recipe, Shape, preset_features

SOURCE = "accord reproduce"


@dataclass(frozen=True)
class Task:
    """What is computed in one go: some seeds of a cell, on one block of labels.

    Attributes:
        cell: the cell.
        seeds: trained side by side; a seed's result does not depend on its companions.
        block: labels; None where a node has one.
        epochs: None for the recipe's own.
    """

    cell: Cell
    seeds: tuple[int, ...]
    block: Block | None = None
    epochs: int | None = None


def _go_on() -> None:
    """Nothing ends the task."""


@dataclass(frozen=True)
class Place:
    """Where a task is computed: the device, a folder for checkpoints, and callbacks that may end it by an exception."""

    accelerator: str = "auto"
    folder: Path | None = None
    report: Callable[[HistoryRow], None] | None = None  # called with each evaluation
    check: Callable[[], None] = _go_on  # called now and then after training


Outcome = tuple[list[Record], list[Context]]


class Unsteady(Exception):
    """Times could not be told apart, because other processes slowed the machine down; to be measured another time."""


@lru_cache(maxsize=2)
def benchmark(name: str, features: str) -> Benchmark:
    """A benchmark, kept for the next task on the same data."""
    return load_benchmark(name, features=features)


def train_cell(task: Task, place: Place) -> Outcome:
    """Train, and record how well each way to label with the trained networks does on test data."""
    cell = task.cell
    recipe = cell_recipe(cell, task.epochs, place.accelerator)
    features = preset_features(cell.preset, cell.data)
    bench = benchmark(cell.data, features)
    begin = time.perf_counter()
    model, replicas = fit(task, recipe, bench, place)
    test = GraphBatch.collate(bench.test).to(model.device, torch.float32)
    assert test.y is not None
    truth = replicas.targets(test.y)
    labels = ways(model, test)
    if task.block is None:
        measured = [
            {way: one_label(found[number], truth[number], test, bench) for way, found in labels.items()}
            for number in range(len(task.seeds))
        ]
    else:
        measured = [{way: count_labels(found, truth) for way, found in labels.items()}]
    details = ablate(model, bench, replicas, test, place.check) if is_ablated(cell, task) else None
    seconds = (time.perf_counter() - begin) / len(task.seeds)
    context = Context(plain_recipe(recipe), features, provenance(model.device), SOURCE)
    return finish(task, recipe, measured, context, seconds, details), [context]


def finish(
    task: Task,
    recipe: Recipe | None,
    measured: list[Metrics],
    context: Context,
    seconds: float,
    details: list[Any] | None = None,
) -> list[Record]:
    """The records of a task: one a seed, and one a seed of the ablation if there is one."""
    whole = None if recipe is None else cell_recipe(task.cell)
    epochs, full = (0 if one is None else one.training.max_epochs for one in (recipe, whole))
    common: dict[str, Any] = {
        "block": task.block,
        "epochs": epochs,
        "shortened": epochs < full,
        "recipe": recipe_code(whole),
        "context": context.code,
    }
    records = [
        Record(cell=task.cell, seed=seed, metrics=metrics, seconds=seconds, **common)
        for seed, metrics in zip(task.seeds, measured, strict=True)
    ]
    if details is not None:
        cell = Cell(ABLATION, task.cell.data, "spn", task.cell.encoder, task.cell.preset, task.cell.variant)
        records += [
            Record(cell=cell, seed=seed, metrics={}, details=found, **common)
            for seed, found in zip(task.seeds, details, strict=True)
        ]
    return records


def is_ablated(cell: Cell, task: Task) -> bool:
    """Whether the trained networks are also combined in every way: SPNs on the citation sets, and those of Figure 5."""
    whole = (cell.experiment, cell.method, task.block) == (TRAINING, "spn", None)
    return whole and (cell.variant in WIDTHS and cell.data in CITATION_SETS or is_in_figure_5(cell))


def fit(task: Task, recipe: Recipe, bench: Benchmark, place: Place) -> tuple[FieldModel, Replicas]:
    """Train the seeds of a task."""
    replicas, run = Replicas(task.seeds), TrainingRun(bench.train, bench.val, place.folder, place.report)
    if bench.num_tasks > 1:
        first, last = task.block or (0, 1)
        members = tuple(
            seed * bench.num_tasks + label for seed in range(len(task.seeds)) for label in range(first, last)
        )
        replicas = Replicas(task.seeds, bench.num_tasks, members)
    shape = Shape(bench.num_features, bench.num_states, bench.num_tasks)
    return METHODS[task.cell.method](recipe, bench.level).fit(run, shape, replicas), replicas


def ways(model: FieldModel, test: GraphBatch) -> dict[str, Tensor]:
    """Labels [R, nodes] by each way: the method's own, and for an SPN its node network and sum-product marginals."""
    if not isinstance(model, ProxyModel):
        return {model.method: model.labels(test)}
    node, edge = model.logits(test)
    field = model.field_of(node, edge, test.topology)
    beliefs = model.beliefs_of(field, "sum")
    return {"gnn": node.argmax(-1), "spn": model.labels_of(field), "sum": beliefs.node.argmax(-1)}


def one_label(labels: Tensor, truth: Tensor, test: GraphBatch, bench: Benchmark) -> dict[str, float]:
    """Fractions: all test graphs, and what no training or validation graph has shown.

    *node_unseen*: nodes that occur in no training graph. *graph_free*: graphs without such nodes; *graph_apart*: nor
    nodes of validation graphs.
    """
    found = {
        "graph": float(graph_accuracy(labels, truth, test.topology)),
        "node": float(node_accuracy(labels, truth)),
    }
    for name, others in (("free", bench.train), ("apart", [*bench.train, *bench.val])):
        seen, ids = node_ids(others), node_ids(bench.test)
        if seen is None or ids is None:
            continue
        known = torch.isin(ids, seen).to(truth.device)
        touched = torch.zeros(test.num_graphs, dtype=torch.bool, device=truth.device)
        touched[test.topology.graph[known]] = True
        clear = truth.masked_fill(touched[test.topology.graph], -1)
        found[f"graph_{name}"] = float(graph_accuracy(labels, clear, test.topology))
        if name == "free":
            found["node_unseen"] = float(node_accuracy(labels, truth.masked_fill(known, -1)))
    return {name: value for name, value in found.items() if value == value}  # NaN where nothing counts


def count_labels(labels: Tensor, truth: Tensor) -> dict[str, float]:
    """Counts over a block of yes/no labels [labels, nodes]; counts of blocks add up."""
    known = truth >= 0
    marked, true = (labels == 1) & known, truth == 1
    counts = ((labels == truth) & known, known, marked & true, marked, true)
    return dict(zip(("right", "known", "hits", "marked", "true"), (float(c.sum()) for c in counts), strict=True))
