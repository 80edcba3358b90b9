"""One large graph trained on clusters of its nodes, beside training on the whole graph.

    python benchmarks/learning/clusters.py results/clusters

The Amazon photo graph as the suite of defaults has it (task photo-parts: parts of 40, 20 and 40 % of the nodes, each a
graph). A GCN with the rates of the default model, a fixed number of updates, the parameters kept that are best on the
validation graph. Test nodes are read after each training, for the table alone.
"""

import argparse
import json
import time
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from statistics import mean, stdev

import torch

from accord import NodeClassifier
from accord._files import write_json, write_text
from accord.bench.defaults import load_task
from accord.evaluation import score_answers
from accord.experiments import provenance
from accord.experiments._results import markdown_table
from accord.graphs import cluster_nodes
from accord.methods import GNNRecipe

TASK = "photo-parts"
EVALUATED_UPDATES = 10  # between evaluations, as far as epochs allow

HEAD = """# Training on clusters of one large graph

Written by `python benchmarks/learning/clusters.py results/clusters`: {device}, {threads} thread, {versions}.
Amazon photo (task photo-parts of `accord bench defaults`), GCN as node network, mean ± standard deviation over seeds
{seeds}. *Gap*: to the whole graph, seed by seed. Validation and test use whole graphs.

{table}
"""


@dataclass(frozen=True)
class Setting:
    """How the training nodes are divided."""

    clusters: int | None
    batch: int  # clusters an update
    updates: int


SETTINGS = (Setting(None, 1, 200), Setting(32, 8, 200), Setting(32, 8, 400), Setting(32, 2, 192))


def run(setting: Setting, seed: int) -> dict:
    """Train a node network once."""
    task = load_task(TASK, seed)
    known = {"method": "gnn", "encoder": "gcn", "seed": seed, "num_states": task.num_states, "accelerator": "cpu"}
    recipe = NodeClassifier(**known).resolve_recipe(task.train)
    assert isinstance(recipe, GNNRecipe)
    each = 1 if setting.clusters is None else setting.clusters // setting.batch  # updates of an epoch
    training = replace(
        recipe.training,
        clusters=setting.clusters,
        batch_clusters=setting.batch,
        max_epochs=setting.updates // each,
        evaluate_every=max(1, EVALUATED_UPDATES // each),
        patience=None,
    )
    began = time.perf_counter()
    model = NodeClassifier(**known, recipe=replace(recipe, training=training)).fit(task.train, task.val)
    seconds = time.perf_counter() - began
    scores = score_answers(model.answers(task.test))["gnn"]
    return {
        **asdict(setting),
        "seed": seed,
        "node accuracy": scores["node_accuracy"],
        "seconds": seconds,
        "cut": cut_edges(task.train[0], setting.clusters),
        "threads": torch.get_num_threads(),
        "provenance": provenance(),
    }


def cut_edges(graph, clusters: int | None) -> float:
    """The share of a graph's edges that join different clusters."""
    if clusters is None:
        return 0.0
    cluster = cluster_nodes(graph.edge_index, graph.num_nodes, clusters)
    source, target = graph.edge_index
    return float((cluster[source] != cluster[target]).double().mean())


def page(records: list[dict]) -> str:
    """The table: a row for each setting, and its gap to the whole graph seed by seed."""
    whole = {own["seed"]: own["node accuracy"] for own in records if own["clusters"] is None}
    where = records[0]["provenance"]
    lines = []
    for setting in SETTINGS:
        own = [record for record in records if {**record, **asdict(setting)} == record]
        if own:
            gap = [record["node accuracy"] - whole[record["seed"]] for record in own if record["seed"] in whole]
            name = "whole graph" if setting.clusters is None else f"{setting.batch} of {setting.clusters} clusters"
            accuracy = _spread([100 * record["node accuracy"] for record in own])
            cells = ["" if setting.clusters is None else _spread([100 * value for value in gap], "+.1f")]
            cells.append(_spread([record["seconds"] for record in own]))
            cells.append("" if setting.clusters is None else f"{100 * mean(record['cut'] for record in own):.0f}")
            lines.append([name, str(setting.updates), accuracy, *cells])
    head = ["an update takes", "updates", "test nodes right, %", "gap, points", "seconds", "edges between clusters, %"]
    seeds = sorted({own["seed"] for own in records})
    return HEAD.format(
        device=where["device"],
        threads=records[0]["threads"],
        versions=f"torch {where['torch']}, commit {where['commit']}, {where['date']}",
        seeds=", ".join(map(str, seeds)),
        table=markdown_table(head, lines),
    )


def _spread(values: list[float], form: str = ".1f") -> str:
    return f"{mean(values):{form}}" + (f" ± {stdev(values):.1f}" if len(values) > 1 else "")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out", type=Path)
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2])
    given = parser.parse_args()
    path = given.out / "records.json"
    records = json.loads(path.read_text()) if path.is_file() else []
    for seed in given.seeds:
        for setting in SETTINGS:
            if not any({**own, **asdict(setting), "seed": seed} == own for own in records):
                records.append(run(setting, seed))
                write_json(path, records)
                print(records[-1], flush=True)
    write_text(given.out / "README.md", page(records))
    print(page(records))


if __name__ == "__main__":
    main()
