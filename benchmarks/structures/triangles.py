"""Order 3 beside order 2: the made set of triples, Cora*, Citeseer*, Pubmed* and some labels of PPI-1.

    python benchmarks/structures/triangles.py results/triangles
    python benchmarks/structures/triangles.py OUT --sets triples --seeds 0

Each cell (a set and a seed) is one fit of order 3. Its networks of nodes and edges, and how they combine, are those of
order 2 with the same seed, so both orders come from one training and differ in the triangles alone. Everything is
chosen on validation data; test labels are read once, at the end of a cell. "Always" is a field with the triangle
network at full weight where validation data leave it out. A finished cell is kept in a file and not repeated. Of PPI-1,
every twentieth of 121 labels is trained: a candidate for all of them takes seconds even on a GPU, where propagation on
triangles is plain torch.
"""

import argparse
import json
import time
import warnings
from dataclasses import replace
from itertools import permutations
from pathlib import Path
from statistics import mean, median, stdev
from typing import Any

import torch
from torch import Tensor
from torch_geometric.data import Batch, Data

from accord._files import write_json, write_text
from accord.datasets import Benchmark, TriplesBenchmark, load_benchmark, make_triples
from accord.errors import AccordError, TooLargeError
from accord.estimator import NodeClassifier
from accord.evaluation import graph_accuracy, node_accuracy
from accord.experiments import provenance
from accord.experiments._results import markdown_table
from accord.graphs import GraphBatch, topology_triangles
from accord.inference import eliminate_beliefs
from accord.inference.triangles import solve_triangles
from accord.inference.triangles._solve import _by_factors, _by_regions, graph_kinds
from accord.learning.objectives import triangle_loss, triple_numbers
from accord.methods import TriangleModel, preset_features

ENCODERS = {"triples": "mlp", "cora*": "gcn", "citeseer*": "gcn", "pubmed*": "gcn", "ppi-1": "sage"}
PPI_LABELS = list(range(0, 121, 20))
# Of the made set: a network that sees neighbours, and the default, which tries several, for order 2 at its best.
ORDER_2_ENCODERS = ("sage", "auto")


def load(name: str, seed: int, every_label: bool = False) -> tuple[Benchmark, dict[str, Any]]:
    """A set, and parameters of the classifier for it; of PPI-1 the labels that are trained, or every label."""
    if name == "triples":
        return make_triples(seed=seed), {}
    bench = load_benchmark(name, features=preset_features("accord", name))
    parameters: dict[str, Any] = {"benchmark": name}
    if name == "ppi-1":
        for graph in () if every_label else (*bench.train, *bench.val, *bench.test):
            graph.y = graph.y[:, PPI_LABELS]
        recipe = NodeClassifier(encoder=ENCODERS[name], order=3, **parameters).resolve_recipe(bench.train)
        training = replace(recipe.training, evaluate_every=10)  # scoring takes in all triangles
        parameters["recipe"] = replace(recipe, training=training)
    return bench, parameters


def measure_cell(name: str, seed: int) -> dict[str, Any]:
    """Fit order 3 of one set and seed, and compare it with order 2."""
    began = time.perf_counter()
    bench, parameters = load(name, seed)
    model = NodeClassifier(encoder=ENCODERS[name], level=bench.level, order=3, seed=seed, **parameters)
    model.fit(bench.train, bench.val)
    seconds = time.perf_counter() - began
    own = model.model_
    assert isinstance(own, TriangleModel)
    val, test = (model.collate(graphs) for graphs in (bench.val, bench.test))
    record: dict[str, Any] = {
        "set": name,
        "seed": seed,
        "encoder": ENCODERS[name],
        "level": bench.level,
        "seconds": round(seconds, 1),
        "triangles": {part: count(model, getattr(bench, part)) for part in ("train", "val", "test")},
        "chosen": {key: value for key, value in own.combination().items() if "shrinkage" not in key},
        "validation": validation(model, own, val),
        "solved": solvers(own, val),
        "test": scores(model, labellings(own, test), test),
    }
    if isinstance(bench, TriplesBenchmark):
        record["test"] |= others(bench, seed)
    return record | {"total_seconds": round(time.perf_counter() - began, 1), **provenance(own.device)}


def count(model: NodeClassifier, graphs: list[Data]) -> dict[str, Any]:
    """Graphs, triangles, and the share of triangles with three equal labels, two equal ones and none."""
    batch = GraphBatch.collate(graphs)
    targets = model.replicas_.targets(batch.y)
    states = model.shape_.num_states
    triples = triple_numbers(targets, batch.topology, states)
    labels = torch.stack([triples // states**2, triples // states % states, triples % states], -1)[triples >= 0]
    equal = sum((labels[:, one] == labels[:, two]).long() for one, two in ((0, 1), (0, 2), (1, 2)))
    shares = [round(float((equal == pairs).double().mean()), 4) for pairs in (3, 1, 0)]
    return {"graphs": len(graphs), "nodes": batch.num_nodes, "triangles": triples.shape[1], "equal": shares}


def beyond_pairs(name: str, every_label: bool = False) -> list[float]:
    """Nats of a triple's labels that pairs do not explain, by counts of training and validation labels, task by task.

    The divergence of the distribution of triples from the one of largest entropy with the same pairs (iterative
    proportional fitting). Corners have no order, so all of them are averaged. With few triangles it is too large.
    """
    bench, _ = load(name, 0, every_label)
    batch = GraphBatch.collate([*bench.train, *bench.val])
    tasks = batch.y[:, None] if batch.y.dim() == 1 else batch.y
    corner = topology_triangles(batch.topology).corner
    found = []
    for labels in tasks.t():
        states = bench.num_states
        first, second, third = labels[corner].unbind(1)
        counts = torch.bincount((first * states + second) * states + third, minlength=states**3).double()
        table = counts.reshape((states,) * 3)
        table = sum(table.permute(order) for order in permutations(range(3))) / (6 * len(corner))
        fitted = torch.full_like(table, 1 / states**3)
        for _ in range(300):
            for axis in range(3):
                fitted = fitted * (table.sum(axis, keepdim=True) / fitted.sum(axis, keepdim=True)).nan_to_num(0.0)
        found.append(float(torch.special.xlogy(table, table / fitted.clamp(min=1e-300)).sum()))
    return found


@torch.no_grad()
def validation(model: NodeClassifier, own: TriangleModel, batch: GraphBatch) -> dict[str, float]:
    """Mean log-likelihood of validation triples, in nats: by node networks, by the triangle network, by both fields."""
    targets = model.replicas_.targets(batch.y)
    node, edge = own.logits(batch)
    triangle = own.triangle_logits(batch)
    full = with_weight(own, 1.0)
    field = full.field(node, edge, triangle, batch.topology)
    corner = node.log_softmax(-1)[:, field.triangles.corner].unbind(2)
    alone = corner[0][..., :, None, None] + corner[1][..., None, :, None] + corner[2][..., None, None, :]
    pairs = field.with_potentials(triangle=torch.zeros_like(field.triangle))
    tables = {
        "node network": alone,
        "triangle network": triangle,
        "order 2": solve_triangles(pairs, "sum", own.damping, 50).triangle,
        "order 3, full weight": solve_triangles(field, "sum", own.damping, 50).triangle,
    }
    return {name: -float(triangle_loss(table, targets, batch.topology).mean()) for name, table in tables.items()}


def with_weight(own: TriangleModel, weight: float) -> Any:
    """The choice with triangles at this weight, by their own sums, if it leaves them out."""
    chosen = own.triangle_choice
    return replace(chosen, triangle_weight=torch.where(chosen.triangle_weight == 0, weight, chosen.triangle_weight))


@torch.no_grad()
def solvers(own: TriangleModel, batch: GraphBatch) -> dict[str, Any]:
    """How far propagation of regions, and of factors, is from exact marginals on the validation graphs."""
    field = with_weight(own, 1.0).field(*own.logits(batch), own.triangle_logits(batch), batch.topology)
    kinds = torch.bincount(graph_kinds(field), minlength=3).tolist()
    found: dict[str, Any] = dict(zip(("solved exactly", "by regions", "by factors"), kinds, strict=True))
    began = time.perf_counter()
    try:
        exact = eliminate_beliefs(field)
    except TooLargeError:
        return found
    found["exact_seconds"] = round(time.perf_counter() - began, 2)
    for name, solver in (("regions", _by_regions), ("factors", _by_factors)):
        began = time.perf_counter()
        beliefs = solver(field, "sum", own.damping, None)
        found[f"{name}_seconds"] = round(time.perf_counter() - began, 2)
        found[f"{name}_converged"] = float(beliefs.converged.double().mean())
        gap = (beliefs.node.exp() - exact.node.exp()).abs()
        found |= {f"{name}_largest_error": float(gap.max()), f"{name}_mean_error": float(gap.mean())}
    return found


@torch.no_grad()
def labellings(own: TriangleModel, batch: GraphBatch) -> dict[str, Tensor]:
    """Labels [tasks, nodes] by each way, from one run of the networks."""
    node, edge = own.logits(batch)
    chosen = own.triangle_choice
    always = with_weight(own, 1.0)
    triangle = own.triangle_logits(batch)
    field = always.field(node, edge, triangle, batch.topology)
    order_3 = own.labels_of(own.field(batch))
    return {
        "gnn": node.argmax(-1),
        "order 2": chosen.pairs.labels(chosen.pairs.field(node, edge, batch.topology), own.damping),
        "order 3": order_3,
        "always": always.labels(field, own.damping) if bool((chosen.triangle_weight == 0).any()) else order_3,
    }


def scores(model: NodeClassifier, labels: dict[str, Tensor], batch: GraphBatch) -> dict[str, dict[str, float]]:
    """Accuracy of nodes and of whole graphs, averaged over tasks."""
    truth = model.replicas_.targets(batch.y)
    return {
        name: {
            "node": float(node_accuracy(found, truth).double().mean()),
            "graph": float(graph_accuracy(found, truth, batch.topology).double().mean()),
        }
        for name, found in labels.items()
    }


def others(bench: TriplesBenchmark, seed: int) -> dict[str, dict[str, float]]:
    """The ceiling of the made set, and order 2 with networks that see neighbours."""
    whole = Batch.from_data_list(bench.test)
    exact = eliminate_beliefs(bench.truth.field(whole))
    found = {
        "ceiling": {"node": float((exact.node.argmax(-1) == whole.y).double().mean())},
        "ceiling, most likely labels": {"node": float((exact.labels == whole.y).double().mean())},
    }
    for encoder in ORDER_2_ENCODERS:
        seeing = NodeClassifier(encoder=encoder, seed=seed).fit(bench.train, bench.val).answers(bench.test)
        found[f"gnn, {encoder}"] = {"node": float(node_accuracy(seeing.labels["gnn"], seeing.truth).mean())}
        found[f"order 2, {encoder}"] = {"node": float(node_accuracy(seeing.labels["spn"], seeing.truth).mean())}
    refined = NodeClassifier(encoder=ENCODERS["triples"], seed=seed, order=3, refine=True).fit(bench.train, bench.val)
    answers = refined.answers(bench.test)
    found["order 3, refined"] = {"node": float(node_accuracy(answers.labels["spn"], answers.truth).mean())}
    return found


def report(records: list[dict[str, Any]]) -> str:
    """The tables of all finished cells."""
    text = ["# Order 3 beside order 2\n", __doc__.split("\n\n", 2)[2].strip() + "\n"]
    sets = [name for name in ENCODERS if any(record["set"] == name for record in records)]
    rows, reasons, solved = [], [], []
    for name in sets:
        own = [record for record in records if record["set"] == name]
        level = own[0]["level"]
        for way in own[0]["test"]:
            values = [100 * record["test"][way].get(level, record["test"][way]["node"]) for record in own]
            nodes = [100 * record["test"][way]["node"] for record in own]
            against = [100 * (r["test"][way]["node"] - r["test"]["order 2"]["node"]) for r in own]
            rows.append([name, way, level, spread(values), spread(nodes), f"{mean(against):+.2f}", str(len(own))])
        train, val = own[0]["triangles"]["train"], own[0]["triangles"]["val"]
        counted = [w for record in own for w in record["chosen"]["triangle_weight"]]
        likely = {key: mean(record["validation"][key] for record in own) for key in own[0]["validation"]}
        reasons.append(
            [
                name,
                f"{train['triangles']} / {val['triangles']}",
                " / ".join(f"{100 * share:.0f}" for share in train["equal"]),
                f"{mean(beyond_pairs(name)):.4f}",
                *(f"{value:.3f}" for value in likely.values()),
                f"{sum(w > 0 for w in counted)} of {len(counted)}",
            ]
        )
        first = own[0]["solved"]
        kinds = [str(first[key]) for key in ("solved exactly", "by regions", "by factors")]
        cells = [""] * 6
        if "regions_mean_error" in first:
            cells = []
            for way in ("regions", "factors"):
                cells.append(f"{100 * first[f'{way}_converged']:.1f} %")
                cells += [f"{first[f'{way}_{size}_error']:.1e}" for size in ("largest", "mean")]
        solved.append([name, *kinds, *cells])
    text += ["## Test accuracy, %\n", "Mean and standard deviation over seeds. `gain` is in nodes, against order 2.\n"]
    text.append(markdown_table(["set", "way", "level", "at the level", "nodes", "gain", "seeds"], rows))
    text += [
        "\n## Why\n",
        "*Beyond pairs*: nats of a triple's labels that pairs of labels do not explain, by counts of",
    ]
    text.append("training and validation labels. Then the mean log-likelihood of validation triples in nats, by the")
    text.append("networks and by fields that were chosen for accuracy, and in how many cells triangles were chosen.\n")
    equal = "3 / 2 / 0 equal training labels, %"
    head = ["set", "triangles, train / val", equal, "beyond pairs", *likely, "triangles chosen"]
    text.append(markdown_table(head, reasons))
    if "ppi-1" in sets:
        every = beyond_pairs("ppi-1", every_label=True)
        found = f"{mean(every):.4f} in the mean, {median(every):.4f} in the median and {max(every):.4f} at most"
        text.append(f"\nOver all {len(every)} labels of PPI-1, *beyond pairs* is {found}.")
    text += ["\n## How graphs are solved\n", "Validation graphs of the first seed, and errors of marginals if all of"]
    text.append("them were solved by propagation of regions, or of factors.\n")
    head = ["set", "exactly", "by regions", "by factors"]
    told = ("converged", "largest error", "mean error")
    head += [f"{way}: {what}" for way in ("regions", "factors") for what in told]
    text.append(markdown_table(head, solved))
    text.append("\n## When\n")
    known = [sorted({(r["date"], r["commit"]) for r in records if r["set"] == name}) for name in sets]
    told = [", ".join(f"{date} ({commit})" for date, commit in own) for own in known]
    text.append(markdown_table(["set", "measured (commit)"], [list(row) for row in zip(sets, told, strict=True)]))
    return "\n".join(text) + "\n"


def spread(values: list[float]) -> str:
    """Mean and standard deviation."""
    return f"{mean(values):.2f}" + (f" ± {stdev(values):.2f}" if len(values) > 1 else "")


def main() -> None:
    """Measure the cells that are missing, and write the report."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("out", type=Path)
    parser.add_argument("--sets", nargs="+", default=list(ENCODERS), choices=list(ENCODERS))
    parser.add_argument("--seeds", nargs="+", type=int, default=list(range(5)))
    arguments = parser.parse_args()
    warnings.simplefilter("ignore")
    cells = arguments.out / "cells"
    for seed in arguments.seeds:
        for name in arguments.sets:
            path = cells / f"{name.rstrip('*')}-{seed}.json"
            if path.is_file():
                continue
            try:
                record = measure_cell(name, seed)
            except AccordError as error:
                print(f"{name}, seed {seed}: {error}", flush=True)
                continue
            cells.mkdir(parents=True, exist_ok=True)
            write_json(path, record)
            print(f"{name}, seed {seed}: {record['total_seconds']} s", flush=True)
    records = [json.loads(path.read_text()) for path in sorted(cells.glob("*.json"))]
    write_text(arguments.out / "README.md", report(records))


if __name__ == "__main__":
    main()
