"""Records of the suite: what came of one model on one task and seed, and where they are stored."""

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from accord.evaluation import NODE, Scores

PEERS = ("logistic", "gcn", "sage")
TITLES = {"logistic": "logistic", "gcn": "plain GCN", "sage": "plain SAGE", NODE: "our GNN", "spn": "our SPN"}
MEASURES = {
    "node_accuracy": "Nodes right, %",
    "graph_accuracy": "Graphs with every node right, %",
    "ece": "Calibration error, points",
}


@dataclass(frozen=True)
class Record:
    """What came of one model on one task and seed."""

    task: str
    model: str
    seed: int
    scores: dict[str, Scores]  # by part of the model
    seconds: float
    details: dict[str, Any] = field(default_factory=dict)
    provenance: dict[str, str] = field(default_factory=dict)  # where and when it was run, and by which versions


def read_records(path: Path) -> list[Record]:
    """What a store holds. Stores of older versions have one provenance, that of their last run, for all records."""
    stored = json.loads(path.read_text())
    return [Record(**{"provenance": stored.get("provenance", {}), **row}) for row in stored["records"]]
