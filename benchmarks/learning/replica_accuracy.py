"""Accuracy of replica training compared with one label at a time, by precision and by graphs per update.

    python benchmarks/learning/replica_accuracy.py OUT [--device cuda]

On PPI (labels rebuilt), the paper's networks. Written to OUT/replicas.json and OUT/README.md:
1. Six labels of PPI-1 with SAGE, among all 121 and each alone with the same seed: losses of the first updates, then
   test accuracy, compared with another seed.
2. Precision: all labels of PPI-1, test accuracy and loss in float32, tf32 and bfloat16.
3. Larger updates: PPI-10 with one graph per update, and with all ten: updates, test accuracy.
"""

import argparse
from dataclasses import replace
from pathlib import Path
from statistics import mean

import torch

from accord._files import write_json, write_text
from accord.datasets import load_benchmark
from accord.evaluation import node_accuracy
from accord.experiments import provenance
from accord.experiments._results import markdown_table
from accord.graphs import GraphBatch
from accord.learning import Replicas, TrainingRun
from accord.methods import Shape, StructuredProxyNetwork, preset_recipe

LABELS = (0, 20, 40, 60, 80, 100)
EARLY = 10  # updates
ALL = 121
PRECISION_EPOCHS = 200
HOW = ("among all", "alone", "among all, seed 2")


def train(benchmark, encoder, replicas, device, epochs=400, every=10, **training) -> dict:
    """Train; returns losses at each evaluation, and test accuracy of node network and SPN for each replica."""
    bench = load_benchmark(benchmark)
    recipe = preset_recipe("paper", encoder, benchmark=benchmark)
    options = {"max_epochs": epochs, "evaluate_every": every, "accelerator": device, "precision": "tf32", **training}
    recipe = replace(recipe, training=replace(recipe.training, **options))
    shape = Shape(bench.num_features, bench.num_states, ALL)
    model = StructuredProxyNetwork(recipe, "node").fit(TrainingRun(bench.train, bench.val), shape, replicas)
    test = GraphBatch.collate(bench.test).to(model.chosen.sharpness.device, torch.float32)
    truth = replicas.targets(test.y)
    return {
        "history": model.history,
        "gnn": node_accuracy(model.node_logits(test).argmax(-1), truth).tolist(),
        "spn": node_accuracy(model.labels(test), truth).tolist(),
    }


def losses(found: dict) -> list[list[float]]:
    return [[row["node_loss"], row["edge_loss"]] for row in found["history"] if "node_loss" in row]


def early_gap(encoder: str, device: str) -> float:
    """Largest relative gap of losses in the first updates between six labels at once and each alone, in float32."""
    options = {"epochs": EARLY, "every": 1, "precision": "32-true"}
    together = losses(train("ppi-1", encoder, Replicas((1,), ALL, LABELS), device, **options))
    apart = [losses(train("ppi-1", encoder, Replicas((1,), ALL, (label,)), device, **options)) for label in LABELS]
    average = torch.tensor(apart, dtype=torch.float64).mean(0)  # histories hold means over replicas
    gap = (torch.tensor(together, dtype=torch.float64) - average).abs() / average
    return float(gap.max())


def six_labels(device: str) -> dict:
    """Test accuracy of six labels among all, each alone, and among all with another seed."""
    whole = {seed: train("ppi-1", "sage", Replicas((seed,), ALL), device) for seed in (1, 2)}
    alone = [train("ppi-1", "sage", Replicas((1,), ALL, (label,)), device) for label in LABELS]
    rows = []
    for label, single in zip(LABELS, alone, strict=True):
        rows.append(
            {"label": label}
            | {f"{way} among all": whole[1][way][label] for way in ("gnn", "spn")}
            | {f"{way} alone": single[way][0] for way in ("gnn", "spn")}
            | {f"{way} among all, seed 2": whole[2][way][label] for way in ("gnn", "spn")}
        )
    return {"early": {name: early_gap(name, device) for name in ("sage", "gcn")}, "rows": rows}


def by_precision(encoder: str, kinds: tuple[str, ...], device: str) -> dict:
    found = {
        kind: train("ppi-1", encoder, Replicas((1,), ALL), device, epochs=PRECISION_EPOCHS, precision=kind)
        for kind in kinds
    }
    return {
        kind: {"gnn": mean(one["gnn"]), "spn": mean(one["spn"]), "loss": losses(one)[-1]} for kind, one in found.items()
    }


def by_portion(device: str, epochs: int) -> dict:
    found = {}
    for graphs in (1, 10):
        one = train("ppi-10", "sage", Replicas((1,), ALL), device, epochs=epochs, every=20, batch_graphs=graphs)
        updates = epochs * 10 // graphs
        found[graphs] = {name: mean(one[name]) for name in ("gnn", "spn")}
        found[graphs] |= {"updates": updates, "epochs": epochs}
    return found


def markdown(results: dict) -> str:
    where = results["provenance"]
    parts = [
        "# Replicas against one label at a time",
        "Written by `benchmarks/learning/replica_accuracy.py`: "
        f"{where['device']}, torch {where['torch']}, {where['date']}. "
        "PPI with rebuilt labels, the paper's networks, test accuracy in percent.",
    ]
    sections = {"six": six_labels_section, "precision": precision_section, "portions": portions_section}
    parts += [section(results[name]) for name, section in sections.items() if name in results]
    return "\n\n".join(parts) + "\n"


def six_labels_section(six: dict) -> str:
    early = ", ".join(f"{name} {gap:.1e}" for name, gap in six["early"].items())
    head = ["label", "GNN among all 121", "alone", "among all, seed 2", "SPN among all 121", "alone", "seed 2"]
    rows = [
        [str(row["label"]), *(f"{100 * row[f'{way} {how}']:.2f}" for way in ("gnn", "spn") for how in HOW)]
        for row in six["rows"]
    ]
    gaps = []
    for way in ("gnn", "spn"):
        apart, seeds = (
            100 * mean(abs(row[f"{way} among all"] - row[f"{way} {how}"]) for row in six["rows"]) for how in HOW[1:]
        )
        gaps.append(f"{way.upper()}: mean gap {apart:.2f} points to the same label alone, {seeds:.2f} to another seed.")
    return "\n\n".join(
        [
            "## Six labels of PPI-1",
            f"Largest relative gap of the losses of the first {EARLY} updates between six labels at once and each "
            f"alone, float32: {early}. After 400 updates (SAGE, tf32):",
            markdown_table(head, rows),
            *gaps,
        ]
    )


def precision_section(found: dict) -> str:
    rows = [
        [
            encoder,
            kind,
            *(f"{100 * one[way]:.2f}" for way in ("gnn", "spn")),
            ", ".join(f"{x:.4f}" for x in one["loss"]),
        ]
        for encoder, kinds in found.items()
        for kind, one in kinds.items()
    ]
    title = f"## Precision, all labels of PPI-1, {PRECISION_EPOCHS} updates"
    return f"{title}\n\n{markdown_table(['encoder', 'precision', 'GNN', 'SPN', 'node, edge loss'], rows)}"


def portions_section(found: dict) -> str:
    rows = [
        [str(graphs), str(one["epochs"]), str(one["updates"]), *(f"{100 * one[way]:.2f}" for way in ("gnn", "spn"))]
        for graphs, one in found.items()
    ]
    title = "## Larger updates, PPI-10, SAGE"
    return f"{title}\n\n{markdown_table(['graphs per update', 'epochs', 'updates', 'GNN', 'SPN'], rows)}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out", type=Path)
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--portion-epochs", type=int, default=200)
    given = parser.parse_args()
    results: dict = {"provenance": provenance(torch.device(given.device))}
    steps = {
        "six": lambda: six_labels(given.device),
        "precision": lambda: {
            "sage": by_precision("sage", ("32-true", "tf32", "bf16-mixed"), given.device),
            "gat": by_precision("gat", ("tf32", "bf16-mixed"), given.device),
        },
        "portions": lambda: by_portion(given.device, given.portion_epochs),
    }
    for name, run in steps.items():
        results[name] = run()
        write_json(given.out / "replicas.json", results)
        write_text(given.out / "README.md", markdown(results))
        print(f"{name} done", flush=True)
    print(markdown(results))


if __name__ == "__main__":
    main()
