"""Results of experiments: test scores for each seed with everything that produced them, stored as json files."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from statistics import mean, stdev
from typing import Any

from scipy.stats import ttest_rel

from accord._files import sealed, write_json

Scores = dict[str, list[float]]  # fractions by measure, one for each seed


@dataclass(frozen=True, kw_only=True)
class Result:
    """One or several ways to label the same test graphs after the same training.

    Attributes:
        benchmark: name of the data set.
        encoder: name of the node network's encoder.
        preset: "accord", "authors" or "paper".
        features: treatment of the features.
        seeds: the trained seeds.
        scores: scores on test data by way of labelling, for instance "gnn" and "spn".
        chosen: the chosen combination of networks and its validation score for each seed, where there is a choice.
        picked_from: candidate combinations of way "picked".
        seconds: training and selection of all seeds together; None if it was not measured.
        recipe: the recipe as json values.
        provenance: versions, hardware and commit; one entry for each run, in which all or some seeds were trained.
    """

    benchmark: str
    encoder: str
    preset: str
    features: str
    seeds: tuple[int, ...]
    scores: dict[str, Scores]
    recipe: dict[str, Any]
    provenance: list[dict[str, str]]
    chosen: list[dict[str, float]] = field(default_factory=list)
    picked_from: dict[str, Any] = field(default_factory=dict)
    seconds: float | None = None

    def write(self, path: Path) -> Path:
        """Store it with a checksum; returns the path."""
        return write_json(path, sealed(asdict(self)))

    def with_more_seeds(self, other: "Result") -> "Result":
        """This result with the seeds of another run of the same experiment."""
        scores = {
            way: {name: values + other.scores[way][name] for name, values in own.items()}
            for way, own in self.scores.items()
        }
        return replace(
            other,
            seeds=(*self.seeds, *other.seeds),
            scores=scores,
            chosen=self.chosen + other.chosen,
            seconds=None if self.seconds is None or other.seconds is None else self.seconds + other.seconds,
            provenance=self.provenance + other.provenance,
        )

    def p_value(self, first: str, second: str, measure: str) -> float:
        """Two-sided paired t-test of two ways of labelling over seeds; NaN where all differences are the same."""
        pairs = list(zip(self.scores[first][measure], self.scores[second][measure], strict=True))
        if len({a - b for a, b in pairs}) < 2:
            return float("nan")
        return float(ttest_rel([a for a, _ in pairs], [b for _, b in pairs]).pvalue)


def file_stem(preset: str, benchmark: str, *parts: str) -> str:
    """Name of a result's file, without its ending."""
    return "-".join([preset, benchmark.rstrip("*"), *parts])


def percent(values: Sequence[float], digits: int = 1) -> str:
    """Mean and standard deviation over seeds in percent."""
    spread = f" ± {100 * stdev(values):.{digits}f}" if len(values) > 1 else ""
    return f"{100 * mean(values):.{digits}f}{spread}"


def markdown_table(head: Sequence[str], lines: Sequence[Sequence[str]]) -> str:
    """A Markdown table."""
    return "\n".join("| " + " | ".join(line) + " |" for line in [head, ["---"] * len(head), *lines])
