"""How should the evidence of an ensemble's members be averaged? Decided on validation data.

    python benchmarks/defaults/ensemble_averages.py results/ensembles

Thirty seeds are trained as replicas and divided into ensembles of ten. Their log-probabilities of nodes and of edges
are averaged in either of two ways: the log of the mean probability, or the mean of the logs. The combination is chosen
on one half of the validation graphs and scored on the other, and the other way round. Test graphs are not read. Writes
OUT/averaging.md.
"""

import argparse
import math
from dataclasses import replace
from pathlib import Path

import torch
from torch import Tensor

from accord._files import write_text
from accord.datasets import load_benchmark, make_digits
from accord.evaluation import graph_accuracy
from accord.experiments import provenance
from accord.experiments._results import markdown_table
from accord.graphs import GraphBatch
from accord.learning import Replicas, TrainingRun
from accord.learning.selection import choose_combination
from accord.methods import Shape, StructuredProxyNetwork, preset_features, preset_recipe

SETS = {"cora*": "gcn", "digits": "mlp"}
FIRST_SEED, MEMBERS = 300, 10
RULES = {  # of nodes, of edges
    "single members": (None, None),
    "log of the mean probability": ("mean", "mean"),
    "mean of the log-probabilities": ("logs", "logs"),
    "nodes by mean probability, edges by mean log": ("mean", "logs"),
    "nodes by mean log, edges by mean probability": ("logs", "mean"),
}


def load(name: str) -> tuple[list, list, Shape]:
    """Training graphs, validation graphs and sizes."""
    if name == "digits":
        made = make_digits(200, 100, 200, 0)
        return made.train, made.val, Shape(made.train[0].x.shape[1], made.num_states)
    bench = load_benchmark(name, features=preset_features("accord", name))
    return bench.train, bench.val, Shape(bench.num_features, bench.num_states)


def average(logits: Tensor, axes: int, rule: str | None) -> Tensor:
    """Scores [ensembles x members, ...], of which the last axes are states, averaged over members."""
    if rule is None:
        return logits
    logs = logits.flatten(-axes).log_softmax(-1).view_as(logits).unflatten(0, (-1, MEMBERS))
    return logs.mean(1) if rule == "logs" else logs.logsumexp(1) - math.log(MEMBERS)


def run_set(name: str, seeds: int, device: str, max_epochs: int | None) -> list[list[str]]:
    """Rows of the table for one set."""
    train, validation, shape = load(name)
    recipe = preset_recipe("accord", SETS[name], benchmark=name)
    epochs = recipe.training.max_epochs if max_epochs is None else max_epochs
    recipe = replace(recipe, training=replace(recipe.training, accelerator=device, max_epochs=epochs))
    method = StructuredProxyNetwork(recipe, "graph")
    replicas = Replicas(tuple(range(FIRST_SEED, FIRST_SEED + seeds)))
    model = method.fit(TrainingRun(train, validation), shape, replicas)
    halves = [GraphBatch.collate(part).to(model.device, torch.float32) for part in (validation[::2], validation[1::2])]
    rows = []
    for title, rules in RULES.items():
        found = [score(method, model, own, other, rules) for own, other in (halves, halves[::-1])]
        values = torch.stack([torch.stack(one) for one in found]).mean((0, 2)).tolist()
        rows.append([name.replace("*", "\\*"), title, *(f"{100 * v:.1f}" for v in values[:2]), f"{values[2]:.2f}"])
        print(*rows[-1], sep="  ", flush=True)
    return rows


def score(method, model, own: GraphBatch, other: GraphBatch, rules: tuple) -> tuple[Tensor, Tensor, Tensor]:
    """Graph accuracy of node network and SPN, and the SPN's mean negative log-likelihood, on the other half."""
    recipe = method.recipe
    evidence = []
    for batch in (own, other):
        node, edge = model.logits(batch)
        evidence.append((average(node, 1, rules[0]), average(edge, 2, rules[1])))
    count = len(evidence[0][0])
    chosen = choose_combination(
        *evidence[0], own.y.expand(count, -1), own.topology, "graph", recipe.grid, recipe.damping
    )
    truth, field = other.y.expand(count, -1), chosen.field(*evidence[1], other.topology)
    marginals = chosen.beliefs(field, "sum", recipe.damping).node
    return (
        graph_accuracy(evidence[1][0].argmax(-1), truth, other.topology),
        graph_accuracy(chosen.labels(field, recipe.damping), truth, other.topology),
        -marginals.gather(-1, truth[..., None])[..., 0].mean(-1),
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out", type=Path)
    parser.add_argument("--sets", nargs="+", default=list(SETS), choices=list(SETS))
    parser.add_argument("--seeds", type=int, default=30)
    parser.add_argument("--max-epochs", type=int)
    parser.add_argument("--device", default="auto", choices=["auto", "cpu", "cuda"])
    given = parser.parse_args()
    rows = [row for name in given.sets for row in run_set(name, given.seeds, given.device, given.max_epochs)]
    where = provenance(torch.device("cuda" if torch.cuda.is_available() else "cpu"))
    head = ["set", "average", "GNN graph", "SPN graph", "SPN negative log-likelihood"]
    text = (
        "# How the evidence of members is averaged\n\n"
        f"Written by `python benchmarks/defaults/ensemble_averages.py results/ensembles`: {where['device']}, torch "
        f"{where['torch']}, {where['date']}.\n"
        f"Validation graphs only: combination chosen on one half, scored on the other. {given.seeds} seeds from "
        f"{FIRST_SEED}, ensembles of {MEMBERS}, graph accuracy in percent.\n\n"
    )
    write_text(given.out / "averaging.md", text + markdown_table(head, rows) + "\n")


if __name__ == "__main__":
    main()
