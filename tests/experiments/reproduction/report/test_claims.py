"""Verdicts: computed from records by the stated rule, with corrected significance."""

import pytest

from accord.experiments.reproduction import Cell, Record, Results
from accord.experiments.reproduction._cells import Source
from accord.experiments.reproduction._plan import cell_code
from accord.experiments.reproduction.report import CLAIMS, Claim, Comparison, judge
from accord.experiments.reproduction.report._claims import holm

CELLS = [Cell("training", data, "spn", "gcn", "authors") for data in ("cora*", "citeseer*", "pubmed*")]


def comparisons(preset):
    for cell in CELLS:
        yield Comparison(cell.data, Source(cell, "spn", "graph"), Source(cell, "gnn", "graph"))


CLAIM = Claim("better", "here", comparisons)


def results(*gains, seeds=5, shortened=False):
    """Records in which the SPN of each data set is better by so much, give or take a little."""
    records = [
        Record(
            cell=cell,
            seed=seed,
            epochs=200,
            recipe=cell_code(cell),
            context="c",
            shortened=shortened,
            metrics={"gnn": {"graph": 0.5 + 0.01 * seed}, "spn": {"graph": 0.5 + 0.011 * seed + gain}},
        )
        for cell, gain in zip(CELLS, gains, strict=False)
        for seed in range(1, seeds + 1)
    ]
    return Results(records, {})


@pytest.mark.parametrize(
    ("gains", "verdict", "evidence"),
    [
        ((0.05, 0.04, 0.03), "holds", "3 of 3 as claimed, 3 significantly; from +3.3 (pubmed*) to +5.3 (cora*)"),
        ((0.05, 0.05, -0.05), "holds in part", "2 of 3 as claimed, 2 significantly; from -4.7 (pubmed*)"),
        ((0.05, -0.05, -0.05), "does not hold", "1 of 3 as claimed"),
        ((), "not measured", ""),
    ],
)
def test_the_rule(gains, verdict, evidence):
    found = judge(results(*gains), CLAIM, "authors")
    assert found.verdict == verdict and found.evidence.startswith(evidence)
    assert judge(results(*gains), CLAIM, "paper").verdict in (verdict, "holds", "holds in part", "does not hold")


def test_a_verdict_on_few_of_the_comparisons_says_so():
    few = judge(results(0.05), CLAIM, "authors")
    assert (few.verdict, few.measured) == ("holds so far", "1 of 3")
    most = judge(results(0.05, 0.04), CLAIM, "authors")
    assert (most.verdict, most.measured) == ("holds", "2 of 3")


def test_shortened_trainings_prove_nothing():
    assert judge(results(0.1, 0.1, 0.1, shortened=True), CLAIM, "authors").verdict == "not measured"


def test_one_seed_is_never_significant():
    assert "0 significantly" in judge(results(0.05, seeds=1), CLAIM, "authors").evidence


def test_times_are_factors():
    cell = Cell("run-time", "ppi-1", "spn", "gat", "accord")
    times = {"spn": {"seconds": 20.0}, "crf": {"seconds": 50.0}}
    record = Record(cell=cell, seed=1, epochs=40, recipe="imported", context="c", metrics=times)
    slower = next(claim for claim in CLAIMS if claim.times)
    found = judge(Results([record], {}), slower, "accord")
    assert found.verdict == "holds so far" and "2.5 times (gat ppi-1)" in found.evidence


@pytest.mark.parametrize(("seconds", "verdict"), [(20.0, "holds so far"), (14.0, "does not hold so far")])
def test_about_twice_has_a_lower_bound_too(seconds, verdict):
    times = {"gnn": {"seconds": 10.0}, "spn": {"seconds": seconds}}
    cell = Cell("run-time", "ppi-1", "spn", "gat", "accord")
    record = Record(cell=cell, seed=1, epochs=40, recipe="imported", context="c", metrics=times)
    twice = next(claim for claim in CLAIMS if claim.between)
    assert judge(Results([record], {}), twice, "accord").verdict == verdict


def compared(text):
    (claim,) = (claim for claim in CLAIMS if claim.text.startswith(text))
    return {comparison.name: comparison for comparison in claim.comparisons("authors")}


def test_spns_are_compared_with_linear_crfs_too():
    found = compared("SPNs are better than CRFs")
    linear = found["gat pubmed* over CRF-linear"]
    assert (linear.worse.cell.encoder, linear.worse.way) == ("linear", "crf") and linear.better.cell.encoder == "gat"
    assert {name for name in found if "cora*" in name} == {
        f"{encoder} cora*{over}" for encoder in ("gat", "unet", "gcnii") for over in ("", " over CRF-linear")
    }


def test_the_papers_best_spn_is_compared_with_every_other_row():
    found = compared("SPNs achieve the best result")
    mine = {name for name in found if "citeseer*" in name}
    assert len(mine) == 5 + 4 + 1 and all(name.startswith("gat citeseer* over ") for name in mine)  # GNNs, CRFs, GMNN


def test_counts_of_one_label_are_compared_by_micro_f1():
    counts = {"right": 6, "known": 10, "hits": 3, "marked": 4, "true": 5}
    cell = Cell("backbones", "ppi-1", "spn", "gat+sage", "authors")
    record = Record(cell=cell, seed=1, epochs=400, recipe=cell_code(cell), context="c", metrics={"spn": counts})
    assert Results([record], {}).summary(Source(cell, "spn", "f1")).mean == pytest.approx(2 * 3 / 9)


def test_holms_correction_by_hand():
    assert holm([0.01, 0.04, 0.03]) == pytest.approx([0.03, 0.06, 0.06])
    assert holm([0.5, 0.9]) == [1.0, 1.0] and holm([]) == []


def test_every_claim_compares_cells_of_its_preset():
    for claim in CLAIMS:
        compared = list(claim.comparisons("authors"))
        assert compared and len({c.name for c in compared}) == len(compared)
        assert all(c.better.cell.preset == c.worse.cell.preset == "authors" for c in compared)
