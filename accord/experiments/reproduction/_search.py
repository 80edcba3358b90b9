"""The fair search: recipes of every method drawn from one space, with the same number of draws; all draws are kept.

Draw number n has the same encoder, rates, regularisation, batches and features for each method, so no method is
searched harder than another. Seed 1 of a draw is judged on validation graphs only. The best draw of a method is then
trained with the other seeds, and only those are tested.
"""

import random
import time
from collections.abc import Iterable
from dataclasses import fields, replace
from typing import Any

import torch

from accord.encoders import EncoderSpec, GraphUNet
from accord.evaluation import graph_accuracy, node_accuracy
from accord.experiments._paper import CITATION_SETS
from accord.experiments._provenance import provenance
from accord.experiments.reproduction._cells import SEARCH, Cell
from accord.experiments.reproduction._records import Context, Record, plain_recipe, recipe_code
from accord.experiments.reproduction._training import SOURCE, Outcome, Place, Task, benchmark, fit, one_label
from accord.graphs import GraphBatch
from accord.learning import PartOptions
from accord.methods import Recipe, preset_recipe
from accord.tuning.trials._space import DECAYS, HIDDEN, RATES, draw_encoder

DRAWS = 20
METHODS = ("spn", "crf", "gmnn")
ENCODERS = ("gcn", "gat", "gcnii", "unet")
JUDGED, TESTED = 1, (2, 3, 4, 5, 6)  # the seed that chooses, and those that are tested
TREATMENTS = ("raw", "row-normalised")
BATCHES = (None, 8, 32)


def draws() -> tuple[Cell, ...]:
    """Every draw of every method."""
    return tuple(
        Cell(SEARCH, data, method, encoder, "accord", f"draw {number}")
        for number in range(DRAWS)
        for data in CITATION_SETS
        for method in METHODS
        for encoder in ENCODERS
    )


def drawn_recipe(cell: Cell, accelerator: str = "auto") -> tuple[Recipe, str]:
    """The recipe and the treatment of features of a draw."""
    rng = random.Random(f"{cell.data} {cell.encoder} {cell.variant}")  # not the method: it gets the same draw
    recipe = preset_recipe("accord", cell.encoder, method=cell.method)
    if cell.encoder == "unet":
        spec: EncoderSpec = GraphUNet(
            hidden=rng.choice((32, 64, 128)),
            depth=rng.choice((1, 2, 3)),
            dropout=rng.choice((0.0, 0.3, 0.5)),
            edge_dropout=rng.choice((0.0, 0.2)),
        )
    else:
        spec = draw_encoder(cell.encoder, rng, HIDDEN)
    node, second = (PartOptions(learning_rate=rng.choice(RATES), weight_decay=rng.choice(DECAYS)) for _ in range(2))
    training = replace(recipe.training, batch_graphs=rng.choice(BATCHES), accelerator=accelerator)
    features = rng.choice(TREATMENTS)
    names = {entry.name for entry in fields(recipe)}
    changes: dict[str, Any] = {"node": node, "edge": second, "label": second}
    changes |= dict.fromkeys(("encoder", "edge_encoder", "label_encoder"), spec)
    chosen = {name: value for name, value in changes.items() if name in names}
    return replace(recipe, training=training, **chosen), features


def search_cell(task: Task, place: Place) -> Outcome:
    """Train a draw; score it on validation graphs, and on test graphs for seeds that do not choose."""
    cell, seed = task.cell, task.seeds[0]
    recipe, features = drawn_recipe(cell, place.accelerator)
    full = recipe.training.max_epochs
    epochs = full if task.epochs is None else min(full, task.epochs)
    recipe = replace(recipe, training=replace(recipe.training, max_epochs=epochs))
    bench = benchmark(cell.data, features)
    begin = time.perf_counter()
    model, replicas = fit(task, recipe, bench, place)
    metrics = {}
    for name, graphs in (("val", bench.val), *((("test", bench.test),) if seed != JUDGED else ())):
        batch = GraphBatch.collate(graphs).to(model.device, torch.float32)
        assert batch.y is not None
        truth, labels = replicas.targets(batch.y), model.labels(batch)
        found = {
            "graph": float(graph_accuracy(labels, truth, batch.topology)[0]),
            "node": float(node_accuracy(labels, truth)[0]),
        }
        metrics[name] = found if name == "val" else one_label(labels[0], truth[0], batch, bench)
    context = Context(plain_recipe(recipe), features, provenance(model.device), SOURCE)
    record = Record(
        cell=cell,
        seed=seed,
        epochs=epochs,
        shortened=epochs < full,
        recipe=recipe_code(drawn_recipe(cell)[0]),
        metrics=metrics,
        seconds=time.perf_counter() - begin,
        context=context.code,
    )
    return [record], [context]


def best_draws(records: Iterable[Record]) -> dict[tuple[str, str, str], Cell]:
    """The draw with the best validation score by data, method and encoder, where all draws are there."""
    scores: dict[tuple[str, str, str], dict[Cell, tuple[float, float]]] = {}
    for record in records:
        if record.cell.experiment == SEARCH and record.seed == JUDGED and not record.shortened:
            values = record.metrics["val"]
            group = (record.cell.data, record.cell.method, record.cell.encoder)
            scores.setdefault(group, {})[record.cell] = (values["graph"], values["node"])
    return {
        group: max(found, key=lambda cell: (found[cell], cell.variant))
        for group, found in scores.items()
        if len(found) == DRAWS
    }
