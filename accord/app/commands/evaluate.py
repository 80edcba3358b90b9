"""`accord evaluate`: scores of a trained model on labelled graphs."""

import zipfile
from pathlib import Path

import numpy as np
import torch
from torch import Tensor
from torch_geometric.data import Data

from accord.app.runs import RESULTS_FILE, SEEN_NODES_FILE, Run
from accord.app.scores import part_titles
from accord.app.sources import load_data
from accord.datasets import TableMapping, corpus_file, read_graphs
from accord.errors import DataNotFoundError, GraphError, InputError, OptionError
from accord.estimator import NodeClassifier
from accord.evaluation import Scores, node_ids, score_answers

SPLITS = ("train", "val", "test")


def evaluate_run(
    run: Run, data: str, split: str = "test", mapping: TableMapping | None = None
) -> tuple[dict[str, Scores], dict[str, str], int]:
    """Scores of each part of the model, the titles of the parts, and the number of graphs.

    Args:
        run: a finished run, or the folder of a saved model.
        data: a benchmark, "digits", a data folder, a folder of graphs, or one graph.
        split: which part of a benchmark or data folder.
        mapping: which tables and columns hold what.
    """
    if split not in SPLITS:
        raise OptionError(f"--split {split!r} is unknown. Choose one of {', '.join(SPLITS)}.")
    model = NodeClassifier.load(run.path)
    graphs = load_graphs(model, data, split, mapping)
    titles = part_titles(model.method) | (run.read(RESULTS_FILE) or {}).get("titles", {})
    scores = score_answers(model.answers(graphs), _unseen(run, graphs), model.label_names_)
    return scores, titles, len(graphs)


def load_graphs(model: NodeClassifier, data: str, split: str, mapping: TableMapping | None = None) -> list[Data]:
    """Load the graphs of DATA, with raw features and labels numbered as in training."""
    path = Path(data)
    if not path.exists() and not path.suffix:
        graphs: list[Data] = getattr(load_data(data, model.seed), split)
        return graphs
    if (path / "train").is_dir() or (path / split).is_dir():
        path = path / split
        if not path.is_dir():
            raise DataNotFoundError(f"{data}: has no folder {split}/. Choose another split with --split.")
    elif path.is_dir() and corpus_file(path, split) is not None:
        path = corpus_file(path, split) or path
    graphs = read_graphs(path, model.label_names, mapping=mapping, columns=model.columns_)
    named = next((graph for graph in graphs if "label_names" in graph), None)
    if named is not None:
        raise GraphError(
            f"{path}: labels are names ({', '.join(named.label_names[:3])}, ..), but the model was trained on numbers, "
            f"0 to {model.shape_.num_states - 1}. Write the labels as numbers."
        )
    return graphs


def _unseen(run: Run, graphs: list[Data]) -> Tensor | None:
    """Which nodes occur in no training graph; None if nodes have no `node_id`."""
    path, found = run.path / SEEN_NODES_FILE, node_ids(graphs)
    if not path.is_file() or found is None:
        return None
    try:
        with path.open("rb") as file, np.load(file, allow_pickle=False) as archive:
            seen = torch.from_numpy(archive["node_id"])
        return ~torch.isin(found, seen)
    except (LookupError, TypeError, ValueError, AttributeError, EOFError, RuntimeError, zipfile.BadZipFile) as error:
        raise InputError(
            f"{path}: is damaged ({error}). Remove it to evaluate without scores of unseen nodes, or restore it."
        ) from error
