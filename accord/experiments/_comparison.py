"""A GNN against the SPN built on it: same data, same seeds, same node network."""

import json
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from scipy.stats import ttest_rel
from torch import Tensor

from accord._files import write_json
from accord.datasets import Benchmark, load_benchmark
from accord.evaluation import graph_accuracy, node_accuracy, unseen_nodes
from accord.experiments._provenance import provenance
from accord.graphs import GraphBatch
from accord.learning import Replicas, Report, TrainingRun
from accord.methods import (
    ProxyModel,
    Shape,
    StructuredProxyNetwork,
    preset_features,
    preset_recipe,
    recipe_to_config,
)


@dataclass(frozen=True, kw_only=True)
class Comparison:
    """Fractions on test data, one for each seed, and everything that led to them."""

    benchmark: str
    features: str
    encoder: str
    preset: str
    seeds: tuple[int, ...]
    gnn: dict[str, list[float]]  # by measure
    spn: dict[str, list[float]]
    chosen: list[dict[str, float]]  # combination of each seed, and its validation score
    seconds: float  # training and selection, all seeds together
    recipe: dict[str, Any]
    provenance: dict[str, str]

    def p_value(self, measure: str) -> float:
        """Two-sided paired t-test of SPN against GNN over seeds."""
        gaps = [a - b for a, b in zip(self.spn[measure], self.gnn[measure], strict=True)]
        if len(gaps) < 2 or len(set(gaps)) == 1:
            return float("nan")
        return float(ttest_rel(self.spn[measure], self.gnn[measure]).pvalue)

    def write(self, folder: Path) -> Path:
        """Store it."""
        name = f"{self.preset}-{self.benchmark.rstrip('*')}-{self.encoder}.json"
        return write_json(folder / name, asdict(self))


def read_comparisons(folder: Path) -> list[Comparison]:
    """All comparisons stored in a folder, by file name."""
    return [Comparison(**json.loads(path.read_text())) for path in sorted(folder.glob("*.json"))]


def compare(
    benchmark: str,
    encoder: str,
    preset: str = "accord",
    seeds: Sequence[int] = (1, 2, 3, 4, 5),
    features: str | None = None,
    max_epochs: int | None = None,
    accelerator: str = "auto",
    folder: Path | None = None,
    report: Report | None = None,
) -> Comparison:
    """Train all seeds side by side; look at the test graphs once, at the end.

    Args:
        benchmark: a benchmark with one label a node.
        encoder: name of the encoder of both networks.
        preset: "accord" or "paper".
        seeds: one replica each.
        features: treatment of the features; None for what the preset found best.
        max_epochs: None for the preset's.
        accelerator: "auto", "cpu" or "cuda".
        folder: where to keep a checkpoint, to go on after an interruption.
        report: called with a row of numbers at every look at validation data.
    """
    features = features or preset_features(preset, benchmark)
    bench = load_benchmark(benchmark, features=features)
    recipe = preset_recipe(preset, encoder, benchmark=bench.name)
    training = replace(recipe.training, accelerator=accelerator)
    recipe = replace(recipe, training=replace(training, max_epochs=max_epochs) if max_epochs else training)
    begin = time.perf_counter()
    model = StructuredProxyNetwork(recipe, bench.level).fit(
        TrainingRun(bench.train, bench.val, folder, report),
        Shape(bench.num_features, bench.num_states),
        Replicas(tuple(seeds)),
    )
    seconds = time.perf_counter() - begin
    device = next(iter(model.tensors().values())).device
    test = GraphBatch.collate(bench.test).to(device)
    gnn = model.node_logits(test).argmax(-1)
    spn = model.labels(test)
    return Comparison(
        benchmark=bench.name,
        features=features or "the benchmark's",
        encoder=encoder,
        preset=preset,
        seeds=tuple(seeds),
        gnn=measure(gnn, test, bench),
        spn=measure(spn, test, bench),
        chosen=_chosen(model),
        seconds=seconds,
        recipe=recipe_to_config(recipe),
        provenance=provenance(device),
    )


def measure(labels: Tensor, test: GraphBatch, bench: Benchmark) -> dict[str, list[float]]:
    """Fractions for each replica; nodes that occur in a training graph are left out of `node_unseen`."""
    assert test.y is not None
    truth = test.y[None]
    unseen = unseen_nodes(bench.train, bench.test)
    hidden = truth if unseen is None else truth.masked_fill(~unseen.to(truth.device), -1)
    return {
        "graph": graph_accuracy(labels, truth, test.topology).tolist(),
        "node": node_accuracy(labels, truth).tolist(),
        "node_unseen": node_accuracy(labels, hidden).tolist(),
    }


def _chosen(model: ProxyModel) -> list[dict[str, float]]:
    columns = {name: values.double().cpu().tolist() for name, values in model.chosen.tensors().items()}
    return [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]
