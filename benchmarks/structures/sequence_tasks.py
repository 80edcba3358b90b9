"""Tasks of `sequences.py`: data, encoders, and how all methods are trained on them."""

import os
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from torch_geometric.data import Data

from accord.datasets import read_sentences
from accord.encoders import BiLSTM
from accord.graphs import path_edges


@dataclass(frozen=True)
class Task:
    """A data set, and how all methods are trained on it."""

    name: str
    title: str
    epochs: int
    refining: int  # further epochs of the refined SPN
    encoder: BiLSTM
    learning_rate: float
    batch: int
    level: str  # of the choices on validation data
    words: bool
    metrics: tuple[str, ...]
    folds: int = 1


TASKS = {
    task.name: task
    for task in (
        Task("ocr", "OCR letters", 25, 6, BiLSTM(64, 1, 0.3, 0.2), 5e-3, 16, "node", False, ("letter", "word"), 10),
        Task("wnut", "WNUT-17", 10, 3, BiLSTM(100, 1, 0.5, 0.3), 2e-3, 32, "f1", True, ("entity F1", "token")),
        Task("ewt", "UD EWT", 5, 2, BiLSTM(100, 1, 0.5, 0.3), 2e-3, 32, "node", True, ("token", "sentence")),
    )
}


@dataclass(frozen=True, eq=False)
class Split:
    """Graphs of a task, with states as labels."""

    train: list[Data]
    validation: list[Data]
    test: list[Data]
    names: list[str]


def folder() -> Path:
    return Path(os.environ["ACCORD_DATA"])


def load_tagged(prefix: str) -> Split:
    """Sentences with the label in the second column; labels are those of the training sentences."""
    paths = [folder() / f"{prefix}_{part}.tsv.gz" for part in ("train", "dev", "test")]
    train = read_sentences(paths[0], label_column=1)
    names = train[0].label_names
    return Split(train, *(read_sentences(path, 1, names) for path in paths[1:]), names)


def load_letters(fold: int) -> Split:
    """Train on four fifths of a fold, validate on the other fifth, test on the nine other folds."""
    with np.load(folder() / "ocr_letters.npz") as archive:
        x, y, ptr, folds = np.unpackbits(archive["x"], axis=1), archive["y"], archive["ptr"], archive["fold"]
    words = [
        Data(
            x=torch.from_numpy(x[start:end]).float(),
            y=torch.from_numpy(y[start:end]).long(),
            edge_index=path_edges(int(end - start)),
        )
        for start, end in zip(ptr[:-1], ptr[1:], strict=True)
    ]
    own = [word for word, number in zip(words, folds.tolist(), strict=True) if number == fold]
    test = [word for word, number in zip(words, folds.tolist(), strict=True) if number != fold]
    order = torch.randperm(len(own), generator=torch.Generator().manual_seed(fold)).tolist()
    cut = len(own) // 5
    held_out, train = [own[i] for i in order[:cut]], [own[i] for i in order[cut:]]
    return Split(train, held_out, test, [chr(ord("a") + state) for state in range(26)])


def load(task: Task, fold: int) -> Split:
    return load_letters(fold) if task.name == "ocr" else load_tagged({"wnut": "wnut17", "ewt": "ud_ewt"}[task.name])
