"""Candidates of equal score: the likeliest of those that change least, or the one that changes least.

    python benchmarks/defaults/equal_scores.py results/equal_scores

Default models of a few tasks. Validation graphs are halved at random ten times: each rule chooses a combination by one
half and is scored on the other. No test graph is read.
"""

import argparse
import json
from pathlib import Path
from statistics import mean

import torch

from accord import NodeClassifier
from accord._files import write_json, write_text
from accord.bench.defaults import load_task
from accord.evaluation import graph_accuracy, mean_log_likelihood, node_accuracy
from accord.experiments import provenance
from accord.experiments._results import markdown_table
from accord.learning.selection import _careful, choose_carefully

TASKS = ("grids", "signed-edges", "digits", "cora*", "citeseer*", "pubmed*", "photo-egos")
LEVELS = ("node", "graph")
HALVINGS = 10
LIKELIEST, FEWEST = "likeliest", "fewest changes"
RULES = {
    LIKELIEST: _careful.least_changing,
    FEWEST: lambda tied, changes: tied[changes == changes.min()],  # likelihood decides only between these
}
HEAD = """# Combinations of equal score

Written by `python benchmarks/defaults/equal_scores.py results/equal_scores`: {where}.
Default models, seed {seeds}; validation graphs only: {halvings} random halvings, chosen by one half and scored on the
other, both ways. *Likeliest*: of the eight candidates of equal score that change least, the likeliest (what the default
does). *Fewest changes*: the one that changes least, likelihood only between equal changes. *Differ*: choices in which
the rules disagree. Then, over the choices in which they differ: likeliest minus fewest changes, in points of accuracy
and in thousandths of a nat of mean log-likelihood, with the standard error over choices.

{table}

Halves overlap from one halving to the next, so standard errors are somewhat too small.
"""


def run(name: str, seed: int) -> list[dict]:
    """Choices of one task, by level and halving."""
    task = load_task(name, seed)
    model = NodeClassifier(seed=seed, num_states=task.num_states, level=task.level, accelerator="cpu")
    model.fit(task.train, task.val)
    generator = torch.Generator().manual_seed(seed)
    rows = []
    for number in range(HALVINGS):
        order = torch.randperm(len(task.val), generator=generator).tolist()
        halves = [[task.val[place] for place in order[part::2]] for part in (0, 1)]
        for own, other in (halves, halves[::-1]):
            for level in LEVELS:
                found = {rule: choose(model, own, other, level, RULES[rule]) for rule in RULES}
                rows.append({"task": name, "seed": seed, "halving": number, "level": level, **found})
    return rows


@torch.no_grad()
def choose(model: NodeClassifier, own: list, other: list, level: str, rule) -> dict:
    """What one rule chooses by some graphs, and its scores on others."""
    usual, _careful.least_changing = _careful.least_changing, rule
    try:
        first, second = (model.collate(graphs) for graphs in (own, other))
        recipe, before = model.recipe_, model.model_.chosen
        shrinkage = before.node_shrinkage, before.edge_shrinkage
        node, edge = model.model_.logits(first)
        targets = model.replicas_.targets(first.y)
        chosen = choose_carefully(node, edge, targets, first.topology, level, recipe.grid, recipe.damping, shrinkage)
    finally:
        _careful.least_changing = usual
    node, edge = model.model_.logits(second)
    truth, field = model.replicas_.targets(second.y), chosen.field(node, edge, second.topology)
    labels, logs = chosen.labels(field, recipe.damping), chosen.beliefs(field, "sum", recipe.damping).node
    settings = {key: value[0] for key, value in chosen.to_config().items() if key != "score"}
    return {
        "settings": settings,
        "nodes": float(node_accuracy(labels, truth)[0]),
        "graphs": float(graph_accuracy(labels, truth, second.topology)[0]),
        "likelihood": float(mean_log_likelihood(logs, truth)[0]),
    }


def page(records: list[dict]) -> str:
    """A row for each task and level, and for all of them."""
    lines = []
    groups = [(task, level) for task in dict.fromkeys(own["task"] for own in records) for level in LEVELS]
    for task, level in [*groups, ("all", "node"), ("all", "graph")]:
        own = [row for row in records if task in ("all", row["task"]) and row["level"] == level]
        differ = [row for row in own if row[LIKELIEST]["settings"] != row[FEWEST]["settings"]]
        cells = [task.replace("*", "\\*"), level, str(len(own)), str(len(differ))]
        for key, scale in (("nodes", 100), ("graphs", 100), ("likelihood", 1000)):
            gains = torch.tensor([scale * (row[LIKELIEST][key] - row[FEWEST][key]) for row in differ])
            error = f" ± {gains.std() / len(gains) ** 0.5:.2f}" if len(gains) > 1 else ""
            cells.append(f"{mean(gains.tolist()):+.2f}{error}" if len(gains) else "")
        lines.append(cells)
    head = ["task", "level", "choices", "differ", "nodes", "graphs", "likelihood"]
    where = records[0]["provenance"]
    return HEAD.format(
        where=f"{where['device']}, torch {where['torch']}, commit {where['commit']}, {where['date']}",
        seeds=", ".join(map(str, sorted({own["seed"] for own in records}))),
        halvings=HALVINGS,
        table=markdown_table(head, lines),
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out", type=Path)
    parser.add_argument("--tasks", nargs="*", default=list(TASKS), choices=list(TASKS))
    parser.add_argument("--seeds", type=int, nargs="+", default=[0])
    given = parser.parse_args()
    path = given.out / "records.json"
    records = json.loads(path.read_text()) if path.is_file() else []
    for seed in given.seeds:
        for name in given.tasks:
            if not any((own["task"], own["seed"]) == (name, seed) for own in records):
                records += [{**row, "provenance": provenance()} for row in run(name, seed)]
                write_json(path, records)
                print(name, seed, flush=True)
    write_text(given.out / "README.md", page(records))
    print(page(records))


if __name__ == "__main__":
    main()
