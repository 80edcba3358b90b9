"""The PPI table: all 121 labels as replicas of one training run, GNN and SPN, one seed after another."""

import json
from collections.abc import Sequence
from dataclasses import asdict, replace
from functools import partial
from itertools import product
from pathlib import Path
from statistics import mean
from typing import Any

import torch
from torch import Tensor

from accord._files import locked, write_text
from accord.datasets import load_benchmark
from accord.encoders import encoder_from_config
from accord.errors import OptionError
from accord.evaluation import micro_f1, node_accuracy
from accord.experiments._paper import PPI_SETS, paper_ppi_score
from accord.experiments._provenance import provenance
from accord.experiments._results import Result, Scores, markdown_table, percent
from accord.experiments._runner import SEEDS, Announce, check_choices, silence
from accord.experiments._store import read_records, read_result, read_stored, usable
from accord.graphs import GraphBatch
from accord.learning import GameOptions, Replicas, Report, TrainingOptions, TrainingRun
from accord.learning.selection import FieldChoice, choose_combination
from accord.methods import DENSE_GRID, Shape, SPNRecipe, StructuredProxyNetwork, preset_recipe, recipe_to_config

PPI_ENCODERS, PPI_PRESETS = ("gcn", "sage", "gat", "gcnii"), ("paper",)
PPI_EPOCHS = 200  # the networks fit their training graphs long before
EVALUATE_EVERY, PATIENCE = 10, 5  # epochs between evaluations; evaluations without improvement until a label stops
PRECISION, GPU_PRECISION = "tf32", {"gat": "bf16-mixed"}  # as accurate as float32 (results/replicas)
MEASURE_TITLES = {"accuracy": "Accuracy", "f1": "Micro-F1"}

INTRODUCTION = """# PPI: all labels at once, GNN and SPN

Written by `accord reproduce ppi`. Test accuracy and micro-F1 over all 121 labels in percent, mean ± standard deviation
over seeds. **The labels are rebuilt**: they are a close reconstruction of the benchmark's; graphs and features are
original. Compare the pattern with the paper's figures, not the numbers. Sizes and rates are the paper's,
{epochs} epochs, one graph per update; a label stops when its networks have not improved on validation data for
{patience} epochs. *SPN* uses the appendix's sharpness of 10. *SPN, picked* picks sharpness and power for each label on
validation data, as the authors' code picks sharpness. GNN and SPN share the node network. ▲ marks an SPN above its GNN,
▼ one below, by the mean over seeds.

A sharpness of 10 falls short here because a node has about twenty edges, and the table of each edge repeats what is
known about the node. Sharpened, they outvote the node network; flattened, they correct it.

"""


def run_ppi(benchmark: str, encoder: str, seed: int, recipe: SPNRecipe, report: Report | None = None) -> Result:
    """Train all labels of one seed side by side, and test once at the end."""
    bench = load_benchmark(benchmark)
    tasks = bench.num_tasks
    shape, replicas = Shape(bench.num_features, bench.num_states, tasks), Replicas((seed,), tasks)
    run = TrainingRun(bench.train, bench.val, report=report)
    model = StructuredProxyNetwork(recipe, bench.level).fit(run, shape, replicas)
    device = model.device
    val, test = (GraphBatch.collate(part).to(device, torch.float32) for part in (bench.val, bench.test))
    assert val.y is not None and test.y is not None
    picked = choose_combination(
        *model.logits(val), replicas.targets(val.y), val.topology, bench.level, DENSE_GRID, recipe.damping
    )
    truth = replicas.targets(test.y)
    node, edge = model.logits(test)

    def solve(chosen: FieldChoice) -> Tensor:
        return chosen.labels(chosen.field(node, edge, test.topology), model.damping)

    return Result(
        benchmark=benchmark,
        encoder=encoder,
        preset="paper",
        features="the benchmark's",
        seeds=(seed,),
        scores={
            "gnn": measure_tasks(node.argmax(-1), truth),
            "spn": measure_tasks(solve(model.chosen), truth),
            "picked": measure_tasks(solve(picked), truth),
        },
        picked_from=asdict(DENSE_GRID),
        recipe=recipe_to_config(recipe),
        provenance=[provenance(device)],
    )


def ppi_recipe(encoder: str, benchmark: str, max_epochs: int | None = None, accelerator: str = "auto") -> SPNRecipe:
    """Sizes, rates and sharpness of preset `paper`, own sums to the power 0.1, fewer epochs, early stopping."""
    recipe = preset_recipe("paper", encoder, benchmark=benchmark)
    recipe = replace(recipe, grid=replace(recipe.grid, normaliser=("own",), power=(0.1,)), damping=0.5)
    on_gpu = accelerator != "cpu" and torch.cuda.is_available()
    training = replace(
        recipe.training,
        max_epochs=PPI_EPOCHS if max_epochs is None else max_epochs,
        evaluate_every=EVALUATE_EVERY,
        patience=PATIENCE,
        precision=GPU_PRECISION.get(encoder, PRECISION) if on_gpu else PRECISION,
        accelerator=accelerator,
    )
    return replace(recipe, training=training)


def measure_tasks(labels: Tensor, truth: Tensor) -> Scores:
    """Accuracy and micro-F1 of labels [tasks, nodes], all tasks counted together."""
    flat, known = labels.flatten(), truth.flatten()
    return {"accuracy": [float(node_accuracy(flat, known))], "f1": [float(micro_f1(flat, known))]}


LATER_FIELDS = ("rule", "shrinkage")  # of an SPN's recipe, without which older results are stored


def same_experiment(stored: Result, recipe: SPNRecipe, any_precision: bool = False) -> bool:
    """Whether a stored result has this recipe and these candidates, on whatever device it was computed."""
    asked: dict[str, Any] = json.loads(json.dumps({"recipe": recipe_to_config(recipe), "grid": asdict(DENSE_GRID)}))
    for name in ("accelerator", *(("precision",) if any_precision else ())):
        asked["recipe"]["training"][name] = stored.recipe["training"][name]
    # Older results name no method, and their recipes also hold the fields of other methods. Fields and options that
    # came later had the values that presets keep for benchmarks.
    known = {key: stored.recipe[key] for key in asked["recipe"] if key in stored.recipe}
    preset = recipe_to_config(preset_recipe("paper", benchmark="ppi"))
    kept = {**{key: preset[key] for key in LATER_FIELDS}, **known, "method": recipe.method}
    kept |= {key: encoder_from_config(known[key]).to_config() for key in ("encoder", "edge_encoder")}
    kept["game"] = {**asdict(GameOptions()), **known["game"]}
    kept["training"] = {**asdict(TrainingOptions()), **known["training"]}
    return bool(asked == json.loads(json.dumps({"recipe": kept, "grid": stored.picked_from})))


def reproduce_ppi(
    folder: Path,
    benchmarks: Sequence[str] = ("ppi-1", "ppi-2"),
    encoders: Sequence[str] = PPI_ENCODERS,
    presets: Sequence[str] = PPI_PRESETS,
    seeds: Sequence[int] = SEEDS,
    max_epochs: int | None = None,
    accelerator: str = "auto",
    announce: Announce = silence,
) -> str:
    """Run the requested seeds that are not stored yet, store each, and write the table of everything stored.

    Args:
        folder: where results are stored; the table includes those that are there already.
        benchmarks: names of data sets.
        encoders: names of encoders.
        presets: only "paper".
        seeds: one after another, since each is 121 replicas.
        max_epochs: None for PPI_EPOCHS.
        accelerator: "auto", "cpu" or "cuda".
        announce: called with the name of each job, and with the numbers of each evaluation.
    """
    check_choices(
        "ppi",
        {
            "benchmark": (benchmarks, PPI_SETS),
            "encoder": (encoders, PPI_ENCODERS),
            "preset": (presets, PPI_PRESETS),
        },
    )
    with locked(folder):
        for benchmark, encoder, seed in product(benchmarks, encoders, seeds):
            path = folder / f"{benchmark}-{encoder}.json"
            stored = read_stored(path, read_result)
            done = stored is not None and seed in stored.seeds
            recipe = ppi_recipe(encoder, benchmark, max_epochs, accelerator)
            # The precision depends on the device; it does not matter for a seed that is stored already.
            if stored is not None and not same_experiment(stored, recipe, any_precision=done):
                raise OptionError(f"{path}: holds seeds of another recipe. Choose another folder, or remove it.")
            if done:
                continue
            job = f"{benchmark} {encoder} seed {seed}"
            announce(job, None)
            found = run_ppi(benchmark, encoder, seed, recipe, report=partial(announce, job))
            (found if stored is None else stored.with_more_seeds(found)).write(path)
        return write_ppi_table(folder)


def write_ppi_table(folder: Path) -> str:
    """The table of all stored results, also written to README.md beside them."""
    read = usable(read_result, lambda result: [_measure_table([result], name) for name in MEASURE_TITLES])
    found = read_records(folder, read, "ppi-*.json")
    found.sort(key=lambda result: (PPI_SETS.index(result.benchmark), PPI_ENCODERS.index(result.encoder)))
    table = "\n".join(f"## {title}\n\n{_measure_table(found, name)}\n" for name, title in MEASURE_TITLES.items())
    epochs = sorted({result.recipe["training"]["max_epochs"] for result in found})
    introduction = INTRODUCTION.format(epochs=" or ".join(map(str, epochs)), patience=EVALUATE_EVERY * PATIENCE)
    write_text(folder / "README.md", introduction + table)
    return table


def _measure_table(results: Sequence[Result], measure: str) -> str:
    lines = []
    for result in results:
        gnn = result.scores["gnn"][measure]
        ours = [percent(gnn, 2), *(_cell(result.scores[way][measure], gnn) for way in ("spn", "picked"))]
        paper = [paper_ppi_score(measure, method, result.encoder, result.benchmark) for method in ("gnn", "spn")]
        lines.append([result.benchmark, result.encoder, str(len(result.seeds)), *ours, *map(str, paper)])
    return markdown_table(["data", "encoder", "seeds", "GNN", "SPN", "SPN, picked", "paper: GNN", "paper: SPN"], lines)


def _cell(values: Sequence[float], gnn: Sequence[float]) -> str:
    gap = mean(values) - mean(gnn)
    return f"{percent(values, 2)}{' ▲' if gap > 0 else ' ▼' if gap < 0 else ''}"
