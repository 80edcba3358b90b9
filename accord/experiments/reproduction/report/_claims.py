"""The paper's claims with a verdict each, computed from records by stated rules.

A claim is a set of comparisons, each of two numbers over the same seeds. It *holds* if every measured comparison goes
the claimed way, *holds in part* if at least half do, and otherwise *does not hold*; without a measured comparison it is
*not measured*. The evidence says how many comparisons there are, how many go the claimed way, and for how many a paired
t-test is below 0.05 after Holm's correction over the claim's comparisons.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from math import isnan
from statistics import mean

from scipy.stats import ttest_rel

from accord.experiments._paper import CITATION_SETS, PPI_SETS
from accord.experiments.reproduction._cells import (
    CONVERGENCE,
    DBLP_STAND_IN,
    RATES,
    RUN_TIME,
    TRAINING,
    Cell,
    Source,
)
from accord.experiments.reproduction._results import Results, Summary

ENCODERS = ("gcn", "sage", "gat", "unet", "gcnii")
SETS = (*CITATION_SETS, DBLP_STAND_IN, *PPI_SETS)
LEVEL = 0.05
HOLDS, IN_PART, FAILS, UNKNOWN = "holds", "holds in part", "does not hold", "not measured"


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
    """

    text: str
    where: str
    comparisons: Callable[[str], Iterator[Comparison]]
    times: bool = False


@dataclass(frozen=True)
class Verdict:
    """What records say about a claim under a preset."""

    verdict: str
    evidence: str


def judge(results: Results, claim: Claim, preset: str) -> Verdict:
    """The verdict on a claim, by the rule above."""
    gains, chances = [], []
    for comparison in claim.comparisons(preset):
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
    if not gains:
        return Verdict(UNKNOWN, "")
    good = sum(gain > 0 for gain, _ in gains)
    significant = sum(p < LEVEL and gain > 0 for p, (gain, _) in zip(holm(chances), gains, strict=True))
    verdict = HOLDS if good == len(gains) else IN_PART if 2 * good >= len(gains) else FAILS
    tested = "" if claim.times else f", {significant} significant"
    evidence = f"{good} of {len(gains)} comparisons{tested}; from {min(gains)[1]} to {max(gains)[1]}"
    return Verdict(verdict, evidence)


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


# The comparisons of each claim.


def measure_of(data: str) -> str:
    """What the paper reports on a data set: graphs, nodes, or accuracy over labels."""
    return "graph" if data in CITATION_SETS else "accuracy" if data in PPI_SETS else "node"


def _source(
    data: str, method: str, encoder: str, preset: str, way: str, measure: str | None = None, variant: str = ""
) -> Source:
    return Source(Cell(TRAINING, data, method, encoder, preset, variant), way, measure or measure_of(data))


def _spn_above_gnn(preset: str) -> Iterator[Comparison]:
    for data in SETS:
        for encoder in ENCODERS:
            spn, gnn = (_source(data, "spn", encoder, preset, way) for way in ("spn", "gnn"))
            yield Comparison(f"{encoder} {data}", spn, gnn)


def _spn_above_gnn_nodes(preset: str) -> Iterator[Comparison]:
    for data in CITATION_SETS:
        for encoder in ENCODERS:
            spn, gnn = (_source(data, "spn", encoder, preset, way, "node") for way in ("spn", "gnn"))
            yield Comparison(f"{encoder} {data}", spn, gnn)


def _spn_above_gnn_unseen(preset: str) -> Iterator[Comparison]:
    for data in CITATION_SETS:
        for encoder in ENCODERS:
            spn, gnn = (_source(data, "spn", encoder, preset, way, "node_unseen") for way in ("spn", "gnn"))
            yield Comparison(f"{encoder} {data}", spn, gnn)


def _spn_above_crf(preset: str) -> Iterator[Comparison]:
    for data in SETS:
        for encoder in ENCODERS:
            spn = _source(data, "spn", encoder, preset, "spn")
            yield Comparison(f"{encoder} {data}", spn, _source(data, "crf", encoder, preset, "crf"))


def _spn_above_gmnn(preset: str) -> Iterator[Comparison]:
    for data in SETS:
        for encoder in ("gat", "gcnii"):
            spn = _source(data, "spn", encoder, preset, "spn")
            yield Comparison(f"{encoder} {data}", spn, _source(data, "gmnn", encoder, preset, "gmnn"))


def _refinement(preset: str) -> Iterator[Comparison]:
    for data in ("ppi-10", "ppi-20"):
        for encoder in ("gat", "sage"):
            after = _source(data, "spn", encoder, preset, "spn", "f1", "refined")
            yield Comparison(f"{encoder} {data}", after, _source(data, "spn", encoder, preset, "spn", "f1"))


def _shared(preset: str) -> Iterator[Comparison]:
    for data in (*CITATION_SETS, "ppi-1", "ppi-2", "ppi-10"):
        shared = _source(data, "spn", "gat", preset, "spn", variant="shared")
        yield Comparison(data, shared, _source(data, "spn", "gat", preset, "gnn"))


def _constraint(preset: str) -> Iterator[Comparison]:
    for data in CITATION_SETS:
        for encoder in ("gat", "gcnii"):
            free = _source(data, "spn", encoder, preset, "spn")
            bound = _source(data, "spn", encoder, preset, "spn", variant="constrained")
            yield Comparison(f"{encoder} {data}", free, bound)


def _max_above_sum(preset: str) -> Iterator[Comparison]:
    for data in SETS:
        for encoder in ENCODERS:
            measure = "node" if data in CITATION_SETS else None
            best, other = (_source(data, "spn", encoder, preset, way, measure) for way in ("spn", "sum"))
            yield Comparison(f"{encoder} {data}", best, other)


def _proxy_start(preset: str) -> Iterator[Comparison]:
    for data in (DBLP_STAND_IN, "cora*"):
        for encoder in ("gat", "gcn"):
            for rate in RATES:
                cell = Cell(CONVERGENCE, data, "spn", encoder, preset, f"rate {rate}")
                start, reached = Source(cell, "spn", "start"), Source(cell, "crf", "best")
                yield Comparison(f"{encoder} {data} at {rate}", start, reached)


def _crf_slower(preset: str) -> Iterator[Comparison]:
    for data in (DBLP_STAND_IN, "cora*", "ppi-1", "ppi-20"):
        for encoder in ("gat", "gcn", "gcnii"):
            cell = Cell(RUN_TIME, data, "spn", encoder, preset)
            yield Comparison(f"{encoder} {data}", Source(cell, "crf", "seconds"), Source(cell, "spn", "seconds"))


CLAIMS = (
    Claim("SPNs improve on the GNNs that they are built from", "Tables 1 and 2", _spn_above_gnn),
    Claim("They improve node accuracy on the citation sets too", "Table 12", _spn_above_gnn_nodes),
    Claim("They do so on nodes that occur in no training graph (our question)", "fair play", _spn_above_gnn_unseen),
    Claim("SPNs are better than CRFs trained by the maximin game", "Tables 1, 2 and 5", _spn_above_crf),
    Claim("SPNs are better than GMNN", "Tables 1, 2 and 5", _spn_above_gmnn),
    Claim("Refinement helps where labels are many", "Table 4", _refinement),
    Claim("One shared GNN improves on the GNN too", "Table 6", _shared),
    Claim("Constrained optimisation does not help", "Table 7", _constraint),
    Claim("Max-product gives better labels than sum-product", "Table 13", _max_above_sum),
    Claim("The proxy's solution starts above what the game alone reaches", "Figure 2", _proxy_start),
    Claim("CRFs take longer to train than SPNs", "Table 3", _crf_slower, times=True),
)
