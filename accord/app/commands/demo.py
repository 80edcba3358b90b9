"""`accord demo`: handwritten digits on graphs, labelled one by one and jointly.

Neighbours in these graphs tend to show equal or successive digits, so the neighbours of an unreadable digit often
determine it. The labels are drawn from a known field: solved exactly with the node network's evidence, it bounds what
joint labelling can reach.
"""

from dataclasses import replace
from pathlib import Path
from typing import Any

import torch
from rich.console import Console
from torch_geometric.data import Batch, Data

from accord._files import locked
from accord.app.commands.fit import ExtraRows, fit_run, show_run
from accord.app.progress import TENSORBOARD_FOLDER
from accord.app.runs import (
    CARD_FILE,
    CASES_FILE,
    CHECKPOINT_FILE,
    CONFIG_FILE,
    CURVES_FILE,
    METRICS_FILE,
    MODEL_CONFIG_FILE,
    MODEL_FILE,
    REPORT_FILE,
    RESULTS_FILE,
    SEEN_NODES_FILE,
    is_empty,
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
FEATURES = "raw"  # all pixels have one scale
DEMO_KEY = "demo"  # key of config.json that distinguishes a demo from a user's run on the same digits
DEMO_FILES = (
    CARD_FILE,
    CASES_FILE,
    CHECKPOINT_FILE,
    CURVES_FILE,
    METRICS_FILE,
    MODEL_CONFIG_FILE,
    MODEL_FILE,
    REPORT_FILE,
    RESULTS_FILE,
    SEEN_NODES_FILE,
)
# Chosen on validation graphs of other seeds than the demo's. The networks see one image at a time, so any gain from the
# graph comes from the field, and the true field can be given the same evidence.
RECIPE: dict[str, Any] = {
    "encoder": {"hidden": 256, "dropout": 0.5, "input_dropout": 0.2},
    "edge_encoder": {"hidden": 256, "dropout": 0.5, "input_dropout": 0.2},
    "scorer": {"kind": "linear", "hidden": 128, "dropout": 0.1},
    "node": {"learning_rate": 5e-3, "weight_decay": 1e-3},
    "edge": {"learning_rate": 5e-3, "weight_decay": 1e-4},
}
# For comparison: a graph neural network, which sees its neighbours' images but not their labels.
GNN_ENCODER = GCNII(hidden=128, layers=4, alpha=0.5, theta=1.5, dropout=0.5, input_dropout=0.2)
GNN_NODE = PartOptions(learning_rate=5e-3, weight_decay=1e-4)
EVIDENCE_WEIGHTS = (
    1.0,
    0.7,
    0.5,
    1.4,
    2.0,
)  # below 1 for an overconfident node network, above 1 for an underconfident one
CEILING = "ceiling"
ROW_TITLES = {
    NODE: "node network (MLP)",
    "gcnii": "GNN (GCNII)",
    EDGE: "edge network (MLP)",
    "spn": "SPN",
    CEILING: "ceiling: true field",
}
NOTE = (
    "The SPN combines two networks that see single images, one for nodes and one for edges, in one field. GCNII, for "
    "comparison, is a graph neural network that also sees the neighbours' images but labels each node on its own. "
    "Ceiling: the field from which the labels were drawn, solved exactly with the node network's evidence."
)


def run_demo(path: Path, seed: int, messages: Console, output: Console) -> None:
    """Train, evaluate, write the report and print the table."""
    digits = make_digits(TRAIN, VAL, TEST, seed)
    settings = FitSettings(
        encoder="mlp",
        level="graph",
        max_epochs=EPOCHS,
        seed=seed,
        features=FEATURES,
        accelerator="cpu",
        recipe=RECIPE,
    )
    check_demo(path)

    def compare(model: NodeClassifier) -> dict[str, Scores]:
        messages.print("[dim]For comparison: training a graph neural network alone, and solving the true field.[/]")
        return gnn_row(digits, seed) | ceiling_row(model, digits)

    threads = torch.get_num_threads()
    # The matrices are small: more threads help little, and slow each other down on a busy machine.
    torch.set_num_threads(1)
    try:
        with locked(path):
            clear_demo(path)
            run = fit_run(digits, settings, path, messages, ExtraRows(compare, ROW_TITLES, NOTE), {DEMO_KEY: True})
    finally:
        torch.set_num_threads(threads)
    show_run(run, output)


def check_demo(path: Path) -> None:
    """Refuse a folder that contains anything but a demo; nothing is written."""
    if not path.exists() or (path.is_dir() and is_empty(path)):
        return
    config = read_json(path / CONFIG_FILE) if (path / CONFIG_FILE).is_file() else None
    if not isinstance(config, dict) or config.get(DEMO_KEY) is not True:
        raise InputError(f"{path}: is not the folder of an earlier demo. Choose another folder with --run.")


def clear_demo(path: Path) -> None:
    """Remove the files of an earlier demo."""
    check_demo(path)
    for name in DEMO_FILES:  # config.json stays until it is replaced: it marks the folder as a demo
        (path / name).unlink(missing_ok=True)
    for events in (path / TENSORBOARD_FOLDER).glob("events.out.tfevents.*"):
        events.unlink()


def gnn_row(digits: DigitsBenchmark, seed: int) -> dict[str, Scores]:
    """Scores of a graph neural network alone, trained on the same graphs."""
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
        features=FEATURES,
    )
    return {"gcnii": score_answers(model.fit(digits.train, digits.val).answers(digits.test))[NODE]}


def ceiling_row(model: NodeClassifier, digits: DigitsBenchmark) -> dict[str, Scores]:
    """Scores of the field from which the labels were drawn, with the model's own evidence for each node."""
    held_out = model.answers(digits.val)
    assert held_out.truth is not None
    scored = []
    for weight in EVIDENCE_WEIGHTS:
        labels = solve_true_field(digits, digits.val, held_out, weight).labels[CEILING]
        scored.append((float(graph_accuracy(labels, held_out.truth, held_out.topology)), weight))
    weight = max(scored, key=lambda entry: entry[0])[1]
    return score_answers(solve_true_field(digits, digits.test, model.answers(digits.test), weight))


def solve_true_field(digits: DigitsBenchmark, graphs: list[Data], answers: Answers, weight: float) -> Answers:
    """Exact labels and marginals of the true field.

    Args:
        digits: has the true field.
        graphs: graphs to label.
        answers: predictions of a model for these graphs; its node network is the evidence.
        weight: of the evidence.
    """
    # All digits are equally frequent, so a posterior is a likelihood up to a constant.
    posterior = answers.probabilities[NODE][0]
    evidence = weight * posterior.clamp_min(torch.finfo(posterior.dtype).tiny).log()
    field = digits.truth.field(Batch.from_data_list(graphs), evidence)
    labels = eliminate_beliefs(field, semiring="max").decode()
    marginals = eliminate_beliefs(field, semiring="sum").node.exp()
    return Answers(answers.topology, answers.truth, {CEILING: labels[None]}, {CEILING: marginals[None]})
