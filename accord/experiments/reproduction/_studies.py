"""Studies beside plain training: statistics and overlap of data, run time, convergence of the game, a case study."""

import time
from collections.abc import Callable
from dataclasses import replace
from statistics import median

import torch

from accord.datasets import Benchmark
from accord.evaluation import EDGE, NODE, Answers, choose_cases, node_ids
from accord.experiments._convergence import game_part, game_recipes
from accord.experiments._provenance import provenance
from accord.experiments._run_time import first_label
from accord.experiments.reproduction._cells import (
    BACKBONES,
    CASE,
    CONVERGENCE,
    HEADS,
    OVERLAP,
    RUN_TIME,
    SEARCH,
    STATISTICS,
    TRAINING,
)
from accord.experiments.reproduction._recipes import cell_recipe
from accord.experiments.reproduction._records import Context, Metrics, Record, plain_recipe, recipe_code
from accord.experiments.reproduction._search import search_cell
from accord.experiments.reproduction._training import (
    SOURCE,
    Outcome,
    Place,
    Task,
    Unsteady,
    benchmark,
    count_labels,
    finish,
    fit,
    train_cell,
    ways,
)
from accord.graphs import GraphBatch
from accord.learning import Replicas, TrainingRun
from accord.methods import METHODS, CRFRecipe, ProxyModel, Shape, SPNRecipe, preset_features, preset_recipe

GAME_EPOCHS = 60
TIMED_EPOCHS = 10  # of the shorter of two runs; their difference is timed, so that set-up cancels
TIMED_REPEATS = 3
PAPER_TIMED_EPOCHS = 1000  # of the paper's run-time table, to which the time of an epoch is scaled


def compute(task: Task, place: Place | None = None) -> Outcome:
    """Compute a task: a plain function of plain values, which any process or cluster may call.

    Args:
        task: what is computed.
        place: device, folder of checkpoints and callback; None for any device and neither of the others.
    """
    return COMPUTE[task.cell.experiment](task, place or Place())


def _statistics(task: Task, place: Place) -> Outcome:
    """The paper's Table 8."""
    bench = benchmark(task.cell.data, "raw")
    found = {"features": float(bench.num_features), "labels": float(max(bench.num_states, bench.num_tasks))}
    if bench.num_tasks > 1:
        found["labels"] = float(bench.num_tasks)
    for name, split in bench.statistics().items():
        sizes = (split.graphs, split.average_nodes, split.average_edges)
        found |= {f"{name} {what}": float(size) for what, size in zip(("graphs", "nodes", "edges"), sizes, strict=True)}
    return _of_data(task, {"data": found})


def _overlap(task: Task, place: Place) -> Outcome:
    """How many node occurrences of test graphs lie in other graphs, and how many test graphs are free of them."""
    bench = benchmark(task.cell.data, "raw")
    return _of_data(task, {"data": overlap(bench)})


def overlap(bench: Benchmark) -> dict[str, float]:
    """Shares of test-node occurrences in training graphs, validation graphs and either; graphs free of those."""
    ids = node_ids(bench.test)
    assert ids is not None
    graph = torch.cat([torch.full((int(g.num_nodes),), number) for number, g in enumerate(bench.test)])
    found = {}
    for name, others in (("train", bench.train), ("val", bench.val), ("either", [*bench.train, *bench.val])):
        seen = node_ids(others)
        assert seen is not None
        known = torch.isin(ids, seen)
        found[f"share in {name}"] = float(known.double().mean())
        found[f"graphs free of {name}"] = float(len(bench.test) - len(graph[known].unique()))
    return found


def _of_data(task: Task, metrics: Metrics) -> Outcome:
    context = Context({}, "raw", provenance(torch.device("cpu")), SOURCE)
    record = Record(cell=task.cell, seed=task.seeds[0], epochs=0, recipe="", metrics=metrics, context=context.code)
    return [record], [context]


def _first_label(task: Task, place: Place) -> Outcome:
    """Figure 4: an SPN of the first label of PPI-1, with other heads or backbones."""
    recipe = cell_recipe(task.cell, task.epochs, place.accelerator)
    features = preset_features(task.cell.preset, task.cell.data)
    bench = benchmark(task.cell.data, features)
    begin = time.perf_counter()
    model, replicas = fit(task, recipe, bench, place)
    test = GraphBatch.collate(bench.test).to(model.device, torch.float32)
    assert test.y is not None
    truth = replicas.targets(test.y)
    metrics = {way: count_labels(labels, truth) for way, labels in ways(model, test).items()}
    context = Context(plain_recipe(recipe), features, provenance(model.device), SOURCE)
    return finish(task, recipe, [metrics], context, time.perf_counter() - begin), [context]


def _case(task: Task, place: Place) -> Outcome:
    """Figure 3: test graphs on which the node network is wrong and the SPN right."""
    recipe = cell_recipe(task.cell, task.epochs, place.accelerator)
    features = preset_features(task.cell.preset, task.cell.data)
    bench = benchmark(task.cell.data, features)
    begin = time.perf_counter()
    model, replicas = fit(task, recipe, bench, place)
    assert isinstance(model, ProxyModel)
    test = GraphBatch.collate(bench.test).to(model.device, torch.float32)
    assert test.y is not None
    found = model.answers(test)
    labels = {part: answer.labels.cpu() for part, answer in found.items()}
    truth = replicas.targets(test.y).cpu()
    answers = Answers(GraphBatch.collate(bench.test).topology, truth, labels, {}, joint="spn")
    wrong = {part: (labels[part] != truth).any(0).double() for part in (NODE, EDGE, "spn")}
    metrics = {part: {"node": 1.0 - float(values.mean())} for part, values in wrong.items()}
    context = Context(plain_recipe(recipe), features, provenance(model.device), SOURCE)
    records = finish(task, recipe, [metrics], context, time.perf_counter() - begin)
    details = {"cases": [case.plain() for case in choose_cases(answers)], "names": bench.label_names}
    return [replace(record, details=details) for record in records], [context]


def _convergence(task: Task, place: Place) -> Outcome:
    """Figure 2: validation accuracy and training loss along the maximin game, from three starts."""
    cell, seed = task.cell, task.seeds[0]
    epochs = GAME_EPOCHS if task.epochs is None else min(task.epochs, GAME_EPOCHS)
    rate = float(cell.variant.removeprefix("rate "))
    features = preset_features(cell.preset, cell.data)
    bench = benchmark(cell.data, features)
    begin = time.perf_counter()
    recipes = game_recipes(cell.preset, cell.encoder, cell.data, epochs, place.accelerator, rate)
    curves = {}
    for name, recipe in recipes.items():
        folder = None if place.folder is None else place.folder / name
        run = TrainingRun(bench.train, bench.val, folder, place.report)
        method = METHODS["crf" if isinstance(recipe, CRFRecipe) else "spn"](recipe, bench.level)
        model = method.fit(run, Shape(bench.num_features, bench.num_states), Replicas((seed,)))
        curves[name] = game_part(model.history)
    context = Context(plain_recipe(recipes["spn"]), features, provenance(model.device), SOURCE)
    ends = {
        name: {
            "start": rows[0]["field_score"],
            "end": rows[-1]["field_score"],
            "best": max(row["field_score"] for row in rows),
        }
        for name, rows in curves.items()
    }
    record = Record(
        cell=cell,
        seed=seed,
        epochs=epochs,
        shortened=epochs < GAME_EPOCHS,
        recipe=recipe_code(cell_recipe(cell)),
        metrics=ends,
        seconds=time.perf_counter() - begin,
        context=context.code,
        details=curves,
    )
    return [record], [context]


def _run_time(task: Task, place: Place) -> Outcome:
    """Table 3: seconds of 1,000 epochs of GNN, SPN and CRF with the same encoder, and of a CRF with plain messages."""
    cell = task.cell
    epochs = TIMED_EPOCHS if task.epochs is None else min(task.epochs, TIMED_EPOCHS)
    features = preset_features(cell.preset, cell.data)
    bench = benchmark(cell.data, features)
    train, held_out = first_label(bench.train), first_label(bench.val[:1])
    shape = Shape(bench.num_features, bench.num_states)
    seconds: dict[str, list[float]] = {}
    begin = time.perf_counter()
    device = torch.device("cpu")
    for repeat in range(TIMED_REPEATS + 1):
        for way in ("gnn", "spn", "crf", "crf-plain"):
            method = way.partition("-")[0]
            recipe = preset_recipe(cell.preset, cell.encoder, None, cell.data, method)
            if isinstance(recipe, SPNRecipe):
                recipe = replace(recipe, grid=replace(recipe.grid, sharpness=(1.0,)))
            if isinstance(recipe, CRFRecipe) and way == "crf-plain":
                recipe = replace(recipe, game=replace(recipe.game, backend="reference"))
            whole = []
            for count in (epochs, 2 * epochs):
                place.check()
                training = replace(recipe.training, max_epochs=count, evaluate_every=count)
                one = replace(recipe, training=replace(training, accelerator=place.accelerator))
                start = time.perf_counter()
                model = METHODS[method](one).fit(TrainingRun(train, held_out), shape, Replicas((1,)))
                whole.append(time.perf_counter() - start)
                device = model.device
            if repeat:  # the first one warms up
                seconds.setdefault(way, []).append(PAPER_TIMED_EPOCHS * (whole[1] - whole[0]) / epochs)
    if min(median(values) for values in seconds.values()) <= 0:
        raise Unsteady
    context = Context({}, features, provenance(device), SOURCE)
    record = Record(
        cell=cell,
        seed=1,
        epochs=epochs,
        shortened=epochs < TIMED_EPOCHS,
        recipe=recipe_code(cell_recipe(cell)),
        metrics={way: {"seconds": median(values)} for way, values in seconds.items()},
        seconds=time.perf_counter() - begin,
        context=context.code,
        details=seconds,
    )
    return [record], [context]


COMPUTE: dict[str, Callable[[Task, Place], Outcome]] = {
    TRAINING: train_cell,
    STATISTICS: _statistics,
    OVERLAP: _overlap,
    HEADS: _first_label,
    BACKBONES: _first_label,
    CASE: _case,
    CONVERGENCE: _convergence,
    RUN_TIME: _run_time,
    SEARCH: search_cell,
}
