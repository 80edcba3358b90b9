"""Sequence labelling: one encoder with softmax, with two linear-chain CRFs, with SPN and refined SPN.

    python benchmarks/structures/sequences.py results/sequences                      # hours on one core
    python benchmarks/structures/sequences.py OUT --tasks ocr --seeds 0 --folds 0    # one cell

Needs ud_ewt_*.tsv.gz, wnut17_*.tsv.gz, glove100_subset.npz and ocr_letters.npz in $ACCORD_DATA, and the package
pytorch-crf. Every method trains the same encoder from the same initial weights, by the same loop and on the same
batches, for the same number of epochs; only the layer above differs. The epoch, and how the networks of an SPN combine,
are chosen on validation data; test data are read once, for the record. A finished cell (task, fold, seed, method) is
one line of OUT/TASK.jsonl, and is not repeated; OUT/README.md is the table of all lines.
"""

import argparse
import json
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from itertools import product
from pathlib import Path
from statistics import mean, median, stdev

import torch
from sequence_tasks import TASKS, Task, folder, load
from torch import Tensor, nn

from accord._files import write_text
from accord.encoders import Identity, LinearScorer, TransitionScorer
from accord.estimator.sequences import find_transitions, fit_words
from accord.evaluation import entity_scores, graph_accuracy, node_accuracy
from accord.experiments import provenance
from accord.experiments._results import markdown_table
from accord.graphs import GraphBatch, WordOptions
from accord.graphs.sequences import sequence_layout
from accord.learning import GameOptions, PartOptions, RefinementOptions, Replicas, TrainingOptions, TrainingRun
from accord.learning.objectives import NodePart
from accord.learning.objectives._ranking import rank
from accord.learning.training import Job, Objective, train_in_chunks
from accord.methods import CRF, GNN, CRFRecipe, GNNRecipe, Shape, SPNRecipe, StructuredProxyNetwork
from accord.methods._refinement import refine

METHODS = ("softmax", "pytorch-crf", "crf", "spn", "refined")
TITLES = {"softmax": "softmax", "pytorch-crf": "pytorch-crf", "crf": "CRF", "spn": "SPN", "refined": "refined SPN"}
CLIP = 5.0


# pytorch-crf with the same encoder


class TorchCRF(nn.Module):
    """The node network and a CRF layer of pytorch-crf."""

    def __init__(self, node: NodePart, states: int, seed: int) -> None:
        super().__init__()
        from torchcrf import CRF as Layer

        self.node = node
        with torch.random.fork_rng():
            torch.manual_seed(seed)
            self.replicas = nn.ModuleList([Layer(states, batch_first=True)])
        for parameter in self.replicas.parameters():
            parameter.replica = 0  # they have no replica axis

    def padded(self, batch: GraphBatch, values: Tensor) -> Tensor:
        layout = sequence_layout(batch.topology, "pytorch-crf")
        shape = (len(layout.lengths) * layout.longest, *values.shape[1:])
        rows = values.new_zeros(shape).index_copy(0, layout.padded, values)
        return rows.unflatten(0, (len(layout.lengths), layout.longest))

    def forward(self, batch: GraphBatch, targets: Tensor, noise) -> Tensor:
        """Negative log-likelihood for each labelled node."""
        scores = self.padded(batch, self.node(batch, noise)[0])
        mask = self.padded(batch, torch.ones(batch.num_nodes, dtype=torch.uint8)).bool()
        return -self.replicas[0](scores, self.padded(batch, targets[0]), mask, reduction="sum")[None] / batch.num_nodes

    @torch.no_grad()
    def labels(self, batch: GraphBatch) -> Tensor:
        scores = self.padded(batch, self.node(batch)[0])
        mask = self.padded(batch, torch.ones(batch.num_nodes, dtype=torch.uint8)).bool()
        return torch.tensor([state for row in self.replicas[0].decode(scores, mask) for state in row])[None]


class TorchObjective(Objective):
    """Its likelihood, and the score of its labels."""

    def __init__(self, part: TorchCRF, options: PartOptions, level: str) -> None:
        self.parts, self.options, self.level, self.identity = {"field": part}, {"field": options}, level, {}

    def losses(self, batch, targets, noise):
        return {"field": self.parts["field"](batch, targets, noise)}

    def scores(self, batch, targets):
        return {"field": rank(self.parts["field"].labels(batch), targets, batch.topology, self.level)}


# One cell


def run_cells(task: Task, fold: int, seed: int, methods: Sequence[str], report: Callable[[dict], None]) -> None:
    """Train and score methods on one fold with one seed."""
    split = load(task, fold)
    part = PartOptions(learning_rate=task.learning_rate)
    training = TrainingOptions(
        max_epochs=task.epochs, batch_graphs=task.batch, evaluate_every=1, clip_norm=CLIP, accelerator="cpu"
    )
    common = {"encoder": task.encoder, "node": part, "training": training}
    pair = {"edge": part, "game": GameOptions(exact=True)}
    recipes = {
        "softmax": GNNRecipe(**common),
        "pytorch-crf": GNNRecipe(**common),
        "crf": CRFRecipe(
            **common | {"encoder": replace(task.encoder, ends=True)},
            **pair,
            edge_encoder=Identity(),
            scorer=TransitionScorer(),
        ),
        "spn": SPNRecipe(
            **common,
            **pair,
            edge_encoder=task.encoder,
            shared=SHARED,
            edge_channels=2 * task.encoder.hidden,
            scorer=LinearScorer(symmetric=False),
        ),
    }
    replicas, states = Replicas((seed,)), len(split.names)
    for method in ("softmax", "pytorch-crf", "crf", "spn"):
        wanted = [name for name in methods if name == method or (name == "refined" and method == "spn")]
        if not wanted:
            continue
        recipe, shape, treatment = recipes[method], Shape(int(split.train[0].x.shape[1]), states), None
        if task.words:
            options = WordOptions(vectors=folder() / "glove100_subset.npz")
            treatment, recipe, shape = fit_words(split.train, recipe, options, shape)
        train, validation, test = (
            [graph if treatment is None else treatment.apply(graph) for graph in graphs]
            for graphs in (split.train, split.validation, split.test)
        )
        found = find_transitions("auto", recipe, split.names, [*split.train, *split.validation])
        recipe = recipe if found is None else replace(recipe, transitions=found)
        clock = Clock()
        run = TrainingRun(train, validation, report=clock.follow)
        batches = {"validation": GraphBatch.collate(validation), "test": GraphBatch.collate(test)}
        record = partial(make_record, report, task, fold, seed, batches, split.names)
        if method == "pytorch-crf":
            node = NodePart(recipe.encoder.build(shape.num_features, states, replicas.keys))
            network = TorchCRF(node, states, seed)
            train_in_chunks(Job(TorchObjective(network, part, task.level), replicas, training, run))
            record(method, network.labels, clock, task.epochs)
            continue
        kind = {"softmax": GNN, "crf": CRF, "spn": StructuredProxyNetwork}[method]
        model = kind(recipe, task.level).fit(run, shape, replicas)
        clock.stop()
        if method in methods:
            record(method, model.labels, clock, task.epochs)
        if method == "spn" and "refined" in methods:
            options = RefinementOptions(learning_rate=task.learning_rate / 4, max_epochs=task.refining)
            clock.go_on()
            refine(model, replace(recipe, refinement=options), task.level, run, replicas)
            clock.stop()
            record("refined", model.labels, clock, task.epochs + task.refining)


def make_record(
    report: Callable[[dict], None],
    task: Task,
    fold: int,
    seed: int,
    batches: dict[str, GraphBatch],
    names: list[str],
    method: str,
    labels: Callable[[GraphBatch], Tensor],
    clock: "Clock",
    epochs: int,
) -> None:
    """Score a trained model and report the record of its cell."""
    parts = ("validation",) if PILOT else ("validation", "test")
    report(
        {
            "task": task.name,
            "fold": fold,
            "seed": seed,
            "method": method,
            **{part: scores(task, labels(batches[part]), batches[part], names) for part in parts},
            "training_seconds": round(clock.training, 2),
            "fit_seconds": round(clock.whole, 2),
            "epochs": epochs,
            "provenance": provenance(torch.device("cpu")),
        }
    )


class Clock:
    """Processor seconds: until the last evaluation of the training loop, and of the whole fit.

    The whole fit also chooses how an SPN's networks combine, and calibrates probabilities.
    """

    def __init__(self) -> None:
        self.training = self.whole = 0.0
        self.began = time.process_time()

    def follow(self, row: dict) -> None:
        """Note an evaluation; called by the training loop."""
        self.training = self.whole = time.process_time() - self.began

    def stop(self) -> None:
        """Note the end of a fit."""
        self.whole = time.process_time() - self.began

    def go_on(self) -> None:
        """Leave out the time since the end of the last fit, and count its choice as training of what follows."""
        self.began = time.process_time() - self.whole


def scores(task: Task, labels: Tensor, batch: GraphBatch, names: list[str]) -> dict[str, float]:
    """The metrics of a task, as fractions."""
    node, graph = node_accuracy(labels[0], batch.y), graph_accuracy(labels[0], batch.y, batch.topology)
    if task.name != "wnut":
        return dict(zip(task.metrics, (float(node), float(graph)), strict=True))
    sizes = torch.bincount(batch.topology.graph).tolist()
    ours, theirs = ([[names[state] for state in own.tolist()] for own in y.split(sizes)] for y in (labels[0], batch.y))
    return {"entity F1": entity_scores(ours, theirs).f1, "token": float(node)}


# The table


INTRODUCTION = """# Sequence labelling

Written by `python benchmarks/structures/sequences.py results/sequences`, on one core: {device}, torch {torch}.
The same bidirectional LSTM with softmax, with the CRF of pytorch-crf, with Accord's CRF (exact likelihood, start and
end scores), with an SPN, and with an SPN that is refined by exact likelihood. Test scores in percent, mean ± standard
deviation over seeds; on OCR letters each seed is the mean over the folds that are listed. *Difference*: to softmax and
to pytorch-crf, paired by seed and fold, mean ± standard error, of the first metric. Folds of OCR letters share test
data, so their standard errors are too small. *Training*, *whole fit*: processor seconds as ratios to the training of
pytorch-crf with the same seed and fold in the same run, medians; a whole fit also chooses how an SPN's networks
combine, and calibrates probabilities. An SPN trains about as fast as pytorch-crf's CRF, not clearly faster: that CRF
has one table for all steps, an SPN computes one for each. On OCR letters, its scorer multiplies 2 x 128 numbers by 676
columns for each step, 173,000 products beside the 98,000 of the LSTM. A refined SPN has more epochs.

Encoder, batches, learning rate and epochs are the same for all (the refined SPN has some more). They were set by hand
after trials on validation data, which also choose the epoch and the combination of an SPN. Test data chose nothing, but
were read more than once: the run on OCR letters was started twice, and its first start had printed test scores. WNUT-17
with seed 1 and UD EWT with seed 2, whose methods had been measured in two runs each, were measured again in one, with
the same test scores.

UD EWT: UPOS; words by GloVe (100 channels) and a convolution over characters. WNUT-17: the same; Accord's methods know
the BIO scheme, pytorch-crf has no such option. OCR letters: train on four fifths of one fold, validate on the rest of
it, test on the nine other folds.

A CRF here has one table for all steps. The tables of an SPN come from the encoder, step by step. Rows appear once all
methods have finished with a seed and fold.

"""


def table(records: list[dict]) -> str:
    known = records[-1]["provenance"]
    text = INTRODUCTION.format(device=known["device"], torch=known["torch"])
    for task in TASKS.values():
        own = [record for record in records if record["task"] == task.name]
        cells = {(r["fold"], r["seed"], r["method"]): r for r in own}
        # Only folds and seeds that every method has finished.
        places = [p for p in sorted({k[:2] for k in cells}) if all((*p, method) in cells for method in METHODS)]
        if not places:
            continue
        seeds = sorted({seed for _, seed in places})
        folds = {seed: [fold for fold, own_seed in places if own_seed == seed] for seed in seeds}
        rows = []
        for method in METHODS:
            row = [TITLES[method]]
            for metric in task.metrics:
                tested = {key: 100 * cell["test"][metric] for key, cell in cells.items()}
                values = [mean(tested[fold, seed, method] for fold in folds[seed]) for seed in seeds]
                row.append(f"{mean(values):.2f}" + (f" ± {stdev(values):.2f}" if len(values) > 1 else ""))
            for other in ("softmax", "pytorch-crf"):
                row.append("" if other == method else difference(cells, places, method, other, task.metrics[0]))
            for time_of in ("training_seconds", "fit_seconds"):
                row.append(ratio(cells, places, method, time_of))
            rows.append(row)
        head = ["", *task.metrics, "to softmax", "to pytorch-crf", "training", "whole fit"]
        count = f"{len(seeds)} of 5 seeds" + (f", {len(places)} of 50 folds and seeds" if task.folds > 1 else "")
        text += f"## {task.title}: {count}\n\n{markdown_table(head, rows)}\n\n"
        text += f"{by_run(cells, places)}\n\n"
    return text.rstrip() + "\n"


def run_of(record: dict) -> tuple[str, str]:
    """Date and commit: all methods of a seed and fold are measured one after the other by one process."""
    return record["provenance"]["date"], record["provenance"]["commit"]


def by_run(cells: dict, places: list) -> str:
    """When seeds and folds were measured, and the times of SPNs in each run, as their code changes."""
    runs = sorted({run_of(cells[(*p, "pytorch-crf")]) for p in places})
    rows = []
    for run in runs:
        own = [p for p in places if run_of(cells[(*p, "pytorch-crf")]) == run]
        ratios = [ratio(cells, own, method, "training_seconds") for method in ("crf", "spn", "refined")]
        rows.append([*run, str(len(own)), *ratios])
    return markdown_table(["measured", "commit", "cells", "CRF: training", "SPN", "refined SPN"], rows)


def ratio(cells: dict, places: list, method: str, time_of: str) -> str:
    """Median ratio to the training of pytorch-crf in the same run."""
    pairs = [(cells[(*p, method)], cells[(*p, "pytorch-crf")]) for p in places]
    ratios = [own[time_of] / base["training_seconds"] for own, base in pairs if run_of(own) == run_of(base)]
    return f"{median(ratios):.2f}" if ratios else ""


def difference(cells: dict, places: list, method: str, other: str, metric: str) -> str:
    gains = [100 * (cells[(*p, method)]["test"][metric] - cells[(*p, other)]["test"][metric]) for p in places]
    error = f" ± {stdev(gains) / len(gains) ** 0.5:.2f}" if len(gains) > 1 else ""
    return f"{mean(gains):+.2f}{error}"


def read_records(out: Path) -> list[dict]:
    paths = [out / f"{name}.jsonl" for name in TASKS]
    return [json.loads(line) for path in paths if path.is_file() for line in path.read_text().splitlines()]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out", type=Path)
    parser.add_argument("--tasks", nargs="+", default=list(TASKS), choices=list(TASKS))
    parser.add_argument("--seeds", nargs="+", type=int, default=list(range(5)))
    parser.add_argument("--folds", nargs="+", type=int, default=list(range(10)))
    parser.add_argument("--methods", nargs="+", default=list(METHODS), choices=list(METHODS))
    parser.add_argument("--pilot", action="store_true", help="validation data only; nothing is written")
    parser.add_argument("--separate", action="store_true", help="pilot: an SPN with two encoders")
    given = parser.parse_args()
    global PILOT, SHARED
    PILOT, SHARED = given.pilot, not given.separate
    torch.set_num_threads(1)

    def report(row: dict) -> None:
        print(json.dumps({key: value for key, value in row.items() if key != "provenance"}), flush=True)
        if PILOT:
            return
        given.out.mkdir(parents=True, exist_ok=True)
        with (given.out / f"{row['task']}.jsonl").open("a") as file:
            file.write(json.dumps(row) + "\n")
        write_text(given.out / "README.md", table(read_records(given.out)))

    for seed, name in product(given.seeds, given.tasks):
        task = TASKS[name]
        for fold in given.folds[: task.folds]:
            done = {(r["task"], r["fold"], r["seed"], r["method"]) for r in read_records(given.out)}
            missing = [method for method in given.methods if PILOT or (name, fold, seed, method) not in done]
            if missing:
                run_cells(task, fold, seed, missing, report)


PILOT, SHARED = False, True

if __name__ == "__main__":
    main()
