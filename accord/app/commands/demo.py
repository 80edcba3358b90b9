"""`accord demo`: handwritten digits on graphs, read one by one, and then jointly.

Neighbours in these graphs tend to show equal or successive digits, so digits that cannot be read alone can often be
told from their neighbours. The field that drew the labels is known: with the same evidence for each node it shows how
far joint labelling could go.
"""

from dataclasses import replace
from pathlib import Path
from typing import Any

import torch
from rich.console import Console
from torch import Tensor
from torch_geometric.data import Batch, Data

from accord.app.commands.fit import ExtraRows, fit_run, show_run
from accord.app.progress import TENSORBOARD
from accord.app.runs import (
    CARD,
    CASES,
    CHECKPOINT,
    CONFIG,
    CURVES,
    METRICS,
    MODEL,
    MODEL_CONFIG,
    REPORT,
    RESULTS,
    SEEN,
    read_json,
)
from accord.app.settings import FitSettings
from accord.datasets import DigitsBenchmark, make_digits
from accord.encoders import GCNII
from accord.errors import InputError
from accord.estimator import NodeClassifier
from accord.evaluation import EDGE, NODE, Answers, Scores, graph_accuracy, score_answers
from accord.inference import eliminate_beliefs
from accord.learning import PartOptions
from accord.methods import preset_recipe

TRAIN, VAL, TEST = 400, 200, 400  # graphs
EPOCHS = 150
MARK = "demo"  # key in config.json that tells a demo from a user's run on the same digits
MADE = (RESULTS, METRICS, CASES, CURVES, REPORT, CARD, MODEL, MODEL_CONFIG, CHECKPOINT, SEEN)
# Found on validation graphs of other seeds than the demo's. Nodes are read one by one, so that all that the graph adds
# is the field's doing, and the true field can be given the same evidence.
RECIPE: dict[str, Any] = {
    "encoder": {"hidden": 256, "dropout": 0.5, "input_dropout": 0.2},
    "edge_encoder": {"hidden": 256, "dropout": 0.5, "input_dropout": 0.2},
    "scorer": {"kind": "linear", "hidden": 128, "dropout": 0.1},
    "node": {"learning_rate": 5e-3, "weight_decay": 1e-3},
    "edge": {"learning_rate": 5e-3, "weight_decay": 1e-4},
}
# The strongest comparison: a graph neural network that sees its neighbours' images, but not their labels.
GNN_ENCODER = GCNII(hidden=128, layers=4, alpha=0.5, theta=1.5, dropout=0.5, input_dropout=0.2)
GNN_NODE = PartOptions(learning_rate=5e-3, weight_decay=1e-4)
EVIDENCE_WEIGHTS = (1.0, 0.7, 0.5, 1.4, 2.0)  # the node network may be too sure of itself, or not sure enough
CEILING = "ceiling"
ROW_TITLES = {
    NODE: "node network (MLP)",
    "gcnii": "GNN (GCNII)",
    EDGE: "edge network (MLP)",
    "spn": "SPN",
    CEILING: "ceiling: true field",
}
NOTE = (
    "The SPN combines two networks that look at single images, one for nodes and one for edges, into one field. GCNII, "
    "for comparison, is a graph neural network that looks at neighbours' images too, but labels each node by itself. "
    "Ceiling: the field that the labels were drawn from, with the node network's evidence, solved exactly."
)


def run_demo(path: Path, seed: int, messages: Console, output: Console) -> None:
    """Train, evaluate, write the report."""
    digits = make_digits(TRAIN, VAL, TEST, seed)
    settings = FitSettings(encoder="mlp", level="graph", max_epochs=EPOCHS, seed=seed, accelerator="cpu", recipe=RECIPE)
    clear_demo(path)

    def compare(model: NodeClassifier) -> dict[str, Scores]:
        messages.print("[dim]Now a graph neural network alone, and the true field, for comparison.[/]")
        return gnn_row(digits, seed) | ceiling_row(model, digits)

    threads = torch.get_num_threads()
    # The matrices are small: more threads save little, and cost much where cores are shared.
    torch.set_num_threads(1)
    try:
        run = fit_run(digits, settings, path, messages, ExtraRows(compare, ROW_TITLES, NOTE), {MARK: True})
    finally:
        torch.set_num_threads(threads)
    show_run(run, output)


def clear_demo(path: Path) -> None:
    """Remove what an earlier demo made; anything else is left alone."""
    if not path.exists() or (path.is_dir() and not any(path.iterdir())):
        return
    config = read_json(path / CONFIG) if (path / CONFIG).is_file() else None
    if not isinstance(config, dict) or config.get(MARK) is not True:
        raise InputError(f"{path}: holds something else than an earlier demo. Choose another folder with --run.")
    for name in MADE:  # the configuration stays until the new one replaces it: it says whose folder this is
        (path / name).unlink(missing_ok=True)
    for events in (path / TENSORBOARD).glob("events.out.tfevents.*"):
        events.unlink()


def gnn_row(digits: DigitsBenchmark, seed: int) -> dict[str, Scores]:
    """A graph neural network by itself, trained on the same graphs."""
    recipe = preset_recipe("accord", GNN_ENCODER, method="gnn")
    recipe = replace(recipe, node=GNN_NODE)
    model = NodeClassifier(
        "gnn",
        recipe=recipe,
        level="graph",
        max_epochs=EPOCHS,
        seed=seed,
        num_states=digits.num_states,
        accelerator="cpu",
    )
    return {"gcnii": score_answers(model.fit(digits.train, digits.val).answers(digits.test))[NODE]}


def ceiling_row(model: NodeClassifier, digits: DigitsBenchmark) -> dict[str, Scores]:
    """What the field that drew the labels gives with the model's own evidence for each node."""
    scored = []
    for weight in EVIDENCE_WEIGHTS:
        held_out = solve_truth(model, digits, digits.val, weight)
        assert held_out.truth is not None
        score = graph_accuracy(held_out.labels[CEILING], held_out.truth, held_out.topology)
        scored.append((float(score), weight))
    weight = max(scored, key=lambda entry: entry[0])[1]
    return score_answers(solve_truth(model, digits, digits.test, weight))


def solve_truth(model: NodeClassifier, digits: DigitsBenchmark, graphs: list[Data], weight: float) -> Answers:
    """Graphs labelled by the true field, exactly."""
    batch = model.collate(graphs)
    evidence: Tensor = weight * model.model_.node_logits(batch)[0].log_softmax(-1).cpu()
    # All digits are equally frequent, so a posterior is a likelihood up to a constant.
    field = digits.truth.field(Batch.from_data_list(graphs), evidence)
    labels = eliminate_beliefs(field, semiring="max").decode()
    marginals = eliminate_beliefs(field, semiring="sum").node.exp()
    assert batch.y is not None
    return Answers(batch.topology, batch.y[None], {CEILING: labels[None]}, {CEILING: marginals[None]})
