"""Which networks the default model should try: validation scores of candidates on the tasks of `accord bench defaults`.

    python benchmarks/defaults/default_candidates.py OUT --tasks letters digits --seeds 10 11 --jobs 8

Every candidate is a node or an edge network, trained by itself with the schedule and the features of the default model,
with two weight decays side by side. Only validation labels are read. Records go to OUT/records.json as they come, and
OUT/README.md is the table.
"""

import argparse
import json
import multiprocessing
import warnings
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import replace
from pathlib import Path
from statistics import mean

import torch

from accord._files import write_json, write_text
from accord.bench.defaults import TASKS, load_task
from accord.encoders import EncoderSpec
from accord.estimator.fitting._automatic import treatment_for
from accord.experiments import provenance
from accord.experiments._results import markdown_table
from accord.graphs import fit_treatment
from accord.learning import PartOptions, Replicas, TrainingRun
from accord.methods import Shape, preset_recipe
from accord.tuning import fit_schedule
from accord.tuning._candidates import EDGES_OF_DENSE, EDGES_OF_SPARSE, NODES_OF_DENSE, NODES_OF_SPARSE
from accord.tuning._parts import train_edge_part, train_node_part

DECAYS = (5e-4, 5e-3)
RATE = 5e-3


def changed(kind: str, **values) -> EncoderSpec:
    return replace(preset_recipe("accord", kind).encoder, **values)


NODES = {
    "gcnii": changed("gcnii"),
    "gcnii-shallow": changed("gcnii", layers=2, alpha=0.1, theta=0.5, dropout=0.6),
    "gcnii-wide": changed("gcnii", hidden=256),
    "gcnii-deep": changed("gcnii", layers=8, alpha=0.2, theta=0.5, dropout=0.6),
    "gcn": changed("gcn"),
    "gcn-skip": changed("gcn", hidden=256, dropout=0.3, input_dropout=0.0, skip=True),
    "gcn-strong": changed("gcn", hidden=256, dropout=0.7, input_dropout=0.6),
    "sage": changed("sage"),
    "sage-wide": changed("sage", hidden=256),
    "sage-strong": changed("sage", hidden=256, dropout=0.7, input_dropout=0.6),
    "sage-one": changed("sage", layers=1),
    "mlp": changed("mlp"),
    "mlp-wide": changed("mlp", hidden=256),
    "mlp-strong": changed("mlp", hidden=256, dropout=0.6, input_dropout=0.5),
    "gat": changed("gat"),
    "gcn-skip-128": changed("gcn", hidden=128, dropout=0.3, input_dropout=0.0, skip=True),
    "sage-strong-128": changed("sage", hidden=128, dropout=0.7, input_dropout=0.6),
    "mlp-strong-128": changed("mlp", hidden=128, dropout=0.6, input_dropout=0.5),
}
EDGES = {
    "mlp": changed("mlp"),
    "mlp-wide": changed("mlp", hidden=256),
    "mlp-strong": changed("mlp", hidden=256, dropout=0.7, input_dropout=0.5),
    "sage": changed("sage"),
    "sage-strong": changed("sage", hidden=256, dropout=0.7, input_dropout=0.6),
    "gcn-skip": changed("gcn", hidden=256, dropout=0.6, input_dropout=0.0, skip=True),
    "gcnii": changed("gcnii"),
    "mlp-strong-128": changed("mlp", hidden=128, dropout=0.7, input_dropout=0.5),
    "sage-strong-128": changed("sage", hidden=128, dropout=0.7, input_dropout=0.6),
    "gcn-skip-128": changed("gcn", hidden=128, dropout=0.6, input_dropout=0.0, skip=True),
}


def run(name: str, seed: int, network: str, candidate: str) -> dict:
    """Train one candidate on one task."""
    warnings.simplefilter("ignore")
    task = load_task(name, seed)
    features = treatment_for(task.train)
    treatment = fit_treatment(features, task.train)
    train, held_out = ([treatment.apply(graph) for graph in part] for part in (task.train, task.val))
    recipe = preset_recipe("accord", "sage")
    recipe = replace(recipe, training=fit_schedule(recipe.training, train))
    shape = Shape(train[0].x.shape[1], task.num_states)
    replicas = Replicas((seed,) * len(DECAYS))
    options = [PartOptions(learning_rate=RATE, weight_decay=decay) for decay in DECAYS]
    if network == "node":
        recipe = replace(recipe, encoder=NODES[candidate], node=options[0])
        part = train_node_part(recipe, TrainingRun(train, held_out), shape, replicas, "node", options)
    else:
        recipe = replace(recipe, edge_encoder=EDGES[candidate], edge=options[0])
        part = train_edge_part(recipe, TrainingRun(train, held_out), shape, replicas, options)
    scores = {"score": part.score.tolist(), "loss": part.loss.tolist(), "kept": part.kept.tolist()}
    return {
        "task": name,
        "seed": seed,
        "features": features,
        "network": network,
        "candidate": candidate,
        **scores,
        "seconds": part.seconds,
    }


def table(records: list[dict]) -> str:
    """Mean validation score of every candidate and weight decay, one column for each task."""
    text = (
        "# Candidates for the default model\n\n"
        "Written by `python benchmarks/defaults/default_candidates.py results/candidates`. "
        "Validation data only, mean over seeds.\nBehind each name: the weight decay. Bold: the networks of the default "
        "model, by sparse or dense features.\n"
    )
    chosen = {
        ("node", True): NODES_OF_SPARSE,
        ("node", False): NODES_OF_DENSE,
        ("edge", True): EDGES_OF_SPARSE,
        ("edge", False): EDGES_OF_DENSE,
    }
    for network, key, title in (
        ("node", "score", "Node networks: nodes right, %"),
        ("edge", "loss", "Edge networks: cross-entropy of pairs of labels, nats"),
    ):
        for sparse in (True, False):
            values: dict[tuple[str, float], dict[str, list[float]]] = {}
            for row in records:
                if row["network"] == network and (row["features"] == "raw") == sparse:
                    for decay, value in zip(DECAYS, row[key], strict=True):
                        own = values.setdefault((row["candidate"], decay), {})
                        own.setdefault(row["task"], []).append(value)
            tasks = list(dict.fromkeys(task for own in values.values() for task in own))
            scale = 100 if key == "score" else 1
            lines = []
            for (name, decay), own in sorted(values.items()):
                encoder = (NODES if network == "node" else EDGES)[name]
                used = any(c.encoder == encoder and c.options.weight_decay == decay for c in chosen[network, sparse])
                cells = [
                    f"{scale * mean(own[task]):.{1 if scale > 1 else 2}f}" if task in own else "" for task in tasks
                ]
                lines.append([f"**{name}, {decay:g}**" if used else f"{name}, {decay:g}", *cells])
            heading = f"\n## {title}, {'sparse' if sparse else 'dense'} features\n\n"
            text += heading + markdown_table(["network", *(task.replace("*", "\\*") for task in tasks)], lines) + "\n"
    return text


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out", type=Path)
    parser.add_argument("--tasks", nargs="+", default=list(TASKS), choices=list(TASKS))
    parser.add_argument("--candidates", nargs="+", default=list(NODES | EDGES), choices=list(NODES | EDGES))
    parser.add_argument("--seeds", nargs="+", type=int, default=[10, 11])
    parser.add_argument("--jobs", type=int, default=1)
    given = parser.parse_args()
    path = given.out / "records.json"
    records = json.loads(path.read_text())["records"] if path.is_file() else []
    done = {(row["task"], row["seed"], row["network"], row["candidate"]) for row in records}
    wanted = [
        (task, seed, network, candidate)
        for seed in given.seeds
        for task in given.tasks
        for network, candidates in (("node", NODES), ("edge", EDGES))
        for candidate in candidates
        if candidate in given.candidates
    ]
    spawn = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(given.jobs, spawn, initializer=torch.set_num_threads, initargs=(1,)) as pool:
        for future in as_completed([pool.submit(run, *one) for one in wanted if one not in done]):
            records.append(future.result())
            write_json(path, {"records": records, "provenance": provenance()})
            print({k: v for k, v in records[-1].items() if k != "kept"}, flush=True)
    write_text(given.out / "README.md", table(records))


if __name__ == "__main__":
    main()
