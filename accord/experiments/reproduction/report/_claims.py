"""Verdicts on the paper's claims, computed from records by stated rules.

A claim is a set of comparisons, each of two numbers over the same seeds. It *holds* if every measured comparison goes
the claimed way, *holds in part* if at least half do, and otherwise *does not hold*, *so far* if fewer than half of the
comparisons are measured; without a measured comparison it is *not measured*. The evidence says how many comparisons go
the claimed way, and for how many a paired t-test is below 0.05 after Holm's correction over the claim's comparisons.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from math import isnan
from statistics import mean

from scipy.stats import ttest_rel

from accord.experiments.reproduction._cells import Source
from accord.experiments.reproduction._results import Results, Summary

LEVEL = 0.05
HOLDS, IN_PART, FAILS, UNKNOWN = "holds", "holds in part", "does not hold", "not measured"
SO_FAR = " so far"  # of verdicts on fewer than half of the comparisons


@dataclass(frozen=True)
class Comparison:
    """One number against another; `better` should be above `worse`."""

    name: str
    better: Source
    worse: Source


@dataclass(frozen=True)
class Claim:
    """A claim of the paper.

    Attributes:
        text: what is claimed.
        where: tables and figures behind it.
        comparisons: what is compared, given a preset.
        times: whether seconds are compared, which are shown as factors; the rest are fractions.
        between: the factors that are claimed; None for any above 1.
    """

    text: str
    where: str
    comparisons: Callable[[str], Iterator[Comparison]]
    times: bool = False
    between: tuple[float, float] | None = None

    def is_met(self, gain: float) -> bool:
        """Whether a gain, or a factor less 1, is what is claimed."""
        return gain > 0 if self.between is None else self.between[0] <= 1.0 + gain <= self.between[1]


@dataclass(frozen=True)
class Verdict:
    """What records say about a claim under a preset; `measured` is "3 of 12" comparisons."""

    verdict: str
    measured: str
    evidence: str


def judge(results: Results, claim: Claim, preset: str) -> Verdict:
    """The verdict on a claim, by the rule above."""
    gains, chances, possible = [], [], 0
    for comparison in claim.comparisons(preset):
        possible += 1
        pair = [results.summary(source) for source in (comparison.better, comparison.worse)]
        if pair[0] is None or pair[1] is None or pair[0].shortened or pair[1].shortened:
            continue
        gain, chance = compare(pair[0], pair[1])
        shown = f"{100 * gain:+.1f}"
        if claim.times:
            gain = pair[0].mean / pair[1].mean - 1.0
            shown = f"{1.0 + gain:.1f} times"
        gains.append((gain, f"{shown} ({comparison.name})"))
        chances.append(chance)
    measured = f"{len(gains)} of {possible}"
    if not gains:
        return Verdict(UNKNOWN, measured, "")
    met = [claim.is_met(gain) for gain, _ in gains]
    significant = sum(p < LEVEL and good for p, good in zip(holm(chances), met, strict=True))
    verdict = HOLDS if all(met) else IN_PART if 2 * sum(met) >= len(met) else FAILS
    tested = "" if claim.times else f", {significant} significantly"
    evidence = f"{sum(met)} of {len(met)} as claimed{tested}; from {min(gains)[1]} to {max(gains)[1]}"
    return Verdict(verdict + SO_FAR * (2 * len(gains) < possible), measured, evidence)


def compare(better: Summary, worse: Summary) -> tuple[float, float]:
    """Mean gain and the chance of it: over the seeds of both, by a paired test; 1 where it cannot be tested."""
    seeds = sorted(set(better.values) & set(worse.values))
    if not seeds:
        return better.mean - worse.mean, 1.0
    ours, theirs = ([summary.values[seed] for seed in seeds] for summary in (better, worse))
    gains = [a - b for a, b in zip(ours, theirs, strict=True)]
    if len(set(gains)) < 2:
        return mean(gains), 1.0
    chance = float(ttest_rel(ours, theirs).pvalue)
    return mean(gains), 1.0 if isnan(chance) else chance


def holm(chances: Sequence[float]) -> list[float]:
    """p-values corrected for their number (Holm 1979)."""
    order = sorted(range(len(chances)), key=lambda place: chances[place])
    corrected, highest = [1.0] * len(chances), 0.0
    for rank, place in enumerate(order):
        highest = max(highest, min(1.0, (len(chances) - rank) * chances[place]))
        corrected[place] = highest
    return corrected
