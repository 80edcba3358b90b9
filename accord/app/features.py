"""Treatment of features: learned from the training graphs, kept with the run, applied to graphs of users' files."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from torch import Tensor
from torch_geometric.data import Data

from accord.datasets import Benchmark, load_benchmark
from accord.errors import GraphError, OptionError

FILE = "features.npz"
TREATMENTS = ("raw", "row-normalised", "standardised")


@dataclass(frozen=True, eq=False)
class FeatureScaling:
    """What is done to features before a model sees them."""

    treatment: str
    mean: Tensor  # [features], float64; empty unless standardised
    deviation: Tensor

    def apply(self, graph: Data) -> Data:
        """The same graph with treated features."""
        x = graph.x
        if self.treatment == "row-normalised":
            total = x.abs().sum(1, keepdim=True)
            treated = x / total.masked_fill(total == 0, 1)
        else:
            if x.shape[1] != len(self.mean):
                raise GraphError(
                    f"the graph has {x.shape[1]} features a node, the model was trained on {len(self.mean)}. "
                    "Prepare the graph as the training graphs were."
                )
            treated = ((x - self.mean) / self.deviation).to(x.dtype)  # as load_benchmark does, to the last digit
        copy = graph.clone()
        copy.x = treated
        return copy

    def apply_all(self, graphs: Sequence[Data]) -> list[Data]:
        """Every graph treated alike."""
        return [self.apply(graph) for graph in graphs]

    def save(self, folder: Path) -> None:
        """Leave it in a run folder."""
        np.savez(
            folder / FILE,
            treatment=np.array(self.treatment),
            mean=self.mean.numpy(),
            deviation=self.deviation.numpy(),
        )


def fit_scaling(treatment: str, train: Sequence[Data]) -> FeatureScaling | None:
    """The treatment of that name, with means and deviations over the nodes of the training graphs; None for raw."""
    if treatment not in TREATMENTS:
        raise OptionError(f"--features {treatment!r} is unknown. Choose one of {', '.join(TREATMENTS)}.")
    if treatment == "raw":
        return None
    if treatment == "row-normalised":
        return FeatureScaling(treatment, torch.empty(0), torch.empty(0))
    rows = torch.cat([graph.x for graph in train]).double()
    deviation = rows.std(0, correction=0)
    # A column that never changes in training cannot be scaled. Comparing values is exact; a variance is not.
    deviation = deviation.masked_fill(rows.amin(0) == rows.amax(0), 1.0)
    return FeatureScaling(treatment, rows.mean(0), deviation)


def benchmark_scaling(bench: Benchmark) -> FeatureScaling | None:
    """The treatment that a benchmark was loaded with, for graphs that come from elsewhere; None for raw."""
    if bench.features != "standardised":
        return fit_scaling(bench.features, bench.train)
    raw = load_benchmark(bench.name, "raw").train
    if all("node_id" in graph for graph in raw):  # training graphs overlap, and each node counts once
        node_id = torch.cat([graph.node_id for graph in raw])
        first = np.unique(node_id.numpy(), return_index=True)[1]
        raw = [Data(x=torch.cat([graph.x for graph in raw])[torch.from_numpy(first)])]
    return fit_scaling(bench.features, raw)


def load_scaling(folder: Path) -> FeatureScaling | None:
    """What a run folder says has to be done; None where features stay as they are."""
    path = folder / FILE
    if not path.is_file():
        return None
    with np.load(path, allow_pickle=False) as archive:
        return FeatureScaling(
            str(archive["treatment"]), torch.from_numpy(archive["mean"]), torch.from_numpy(archive["deviation"])
        )
