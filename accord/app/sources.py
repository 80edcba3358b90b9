"""What DATA on the command line means: a benchmark, the made digits, or a folder of graphs."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import torch
from torch_geometric.data import Data

from accord.app.features import FeatureScaling, benchmark_scaling, fit_scaling
from accord.datasets import (
    Benchmark,
    DigitsBenchmark,
    FolderBenchmark,
    list_benchmarks,
    load_benchmark,
    make_digits,
    read_folder,
)
from accord.errors import DataNotFoundError, OptionError
from accord.methods import preset_features

DIGITS = "digits"
# Planetoid numbers its topics without saying which is which; how many papers each has tells them apart.
TOPICS = {
    "cora*": [
        "theory",
        "reinforcement learning",
        "genetic algorithms",
        "neural networks",
        "probabilistic methods",
        "case-based",
        "rule learning",
    ],
    "citeseer*": [
        "artificial intelligence",
        "machine learning",
        "information retrieval",
        "databases",
        "agents",
        "human-computer interaction",
    ],
}


@dataclass(frozen=True)
class Source:
    """Graphs to learn from, and what has to be kept with a model that was trained on them."""

    bench: Benchmark
    preset_row: str | None  # name under which presets may have values of their own
    label_names: list[str] | None
    task_names: list[str] | None
    scaling: FeatureScaling | None  # what was done to the features, and has to be done to those of new graphs

    @property
    def has_images(self) -> bool:
        """Whether features are the pixels of a small square image."""
        return isinstance(self.bench, DigitsBenchmark)


def load_source(name: str, features: str | None = None, seed: int = 0, preset: str | None = None) -> Source:
    """Find the data that a name stands for.

    Args:
        name: a benchmark ("cora*", or "cora"), "digits", or a folder with train/ in it.
        features: treatment of the features; None for the preset's or else the benchmark's own, raw for folders.
        seed: of made data; benchmarks and folders are what they are.
        preset: whose treatment of a benchmark's features is taken where none is given.
    """
    if Path(name).is_dir():
        return _from_folder(read_folder(name), features)
    if name.strip().lower() == DIGITS:
        if features not in (None, "raw"):
            raise OptionError(f"digits: features are pixels and stay so; leave out --features {features}.")
        bench = make_digits(seed=seed)
        return Source(bench, None, [str(state) for state in range(bench.num_states)], None, None)
    known = [row.name for row in list_benchmarks()]
    key = name.strip().lower()
    wanted = f"{key}*" if f"{key}*" in known else key
    if wanted not in (*known, "ppi"):
        raise DataNotFoundError(
            f"{name}: is neither a folder nor a benchmark. Give a folder with train/ in it, or one of "
            f"{', '.join([*known, DIGITS])}."
        )
    if features is None and preset is not None:
        features = preset_features(preset, wanted)
    benchmark = load_benchmark(wanted, features)
    return Source(benchmark, benchmark.name, TOPICS.get(benchmark.name), None, benchmark_scaling(benchmark))


def _from_folder(bench: FolderBenchmark, features: str | None) -> Source:
    scaling = fit_scaling(features or "raw", bench.train)
    if scaling is not None:
        splits = {name: scaling.apply_all(getattr(bench, name)) for name in ("train", "val", "test")}
        bench = replace(
            bench, train=splits["train"], val=splits["val"], test=splits["test"], features=scaling.treatment
        )
    return Source(bench, None, bench.label_names, bench.task_names, scaling)


def widest_scale(graphs: Sequence[Data]) -> float:
    """How many times larger the widest feature column spreads than the narrowest that spreads at all."""
    x = torch.cat([graph.x for graph in graphs]).double()
    spread = x.std(0, correction=0) if len(x) else torch.zeros(1)
    spread = spread[spread > 0]
    return float(spread.max() / spread.min()) if spread.numel() else 1.0
