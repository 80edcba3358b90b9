"""The study of order 3: what it counts, and what a cell holds."""

import importlib.util
import json
import re
from pathlib import Path
from statistics import mean

import pytest

from accord.datasets import TriplesOptions, make_triples

ROOT = Path(__file__).parents[2]
PATH = ROOT / "benchmarks" / "structures" / "triangles.py"
RESULTS = ROOT / "results" / "triangles"
COUNTS = ("none", "one", "two", "three")


@pytest.fixture(scope="module")
def study():
    spec = importlib.util.spec_from_file_location("benchmark_triangles", PATH)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_pairs_leave_unexplained_what_triples_decide(study, monkeypatch):
    for faithful, expected in ((0.97, 0.94), (1 / 3, 0.0)):  # log 3 less the entropy of the third label; no rule
        made = make_triples(300, 1, 1, options=TriplesOptions(faithful=faithful))
        monkeypatch.setattr(study, "load", lambda name, seed, every_label, made=made: (made, {}))
        assert study.beyond_pairs("triples")[0] == pytest.approx(expected, abs=0.03)


def test_a_cell_compares_both_orders_and_the_report_shows_it(study, monkeypatch):
    small = TriplesOptions(min_triangles=3, max_triangles=5)
    made = make_triples(10, 12, 6, options=small)
    monkeypatch.setattr(study, "load", lambda name, seed, every_label=False: (made, {"max_epochs": 2}))
    monkeypatch.setattr(study, "others", lambda bench, seed: {})
    record = study.measure_cell("triples", 0)
    assert set(record["test"]) == {"gnn", "order 2", "order 3", "always"}
    assert record["solved"]["solved exactly"] == 12 and record["triangles"]["train"]["graphs"] == 10
    text = study.report([record])
    assert "| triples | order 3 | node |" in text


def cells_of(name):
    return [json.loads(path.read_text()) for path in sorted((RESULTS / "cells").glob(f"{name}-*.json"))]


def mean_of(cells, way, level):
    return 100 * mean(cell["test"][way][level] for cell in cells)


def guide():
    """What the guide says of gains, in one line."""
    return " ".join((ROOT / "docs" / "triangles.md").read_text().split("## What it gains")[1].split())


def test_the_guide_has_the_figures_of_the_made_set():
    cells = cells_of("triples")
    ways = ("gnn", "order 2", "order 2, sage", "order 2, auto", "order 3", "order 3, refined", "ceiling")
    assert re.findall(r"\| (\d+\.\d+) \|", guide()) == [f"{mean_of(cells, way, 'node'):.2f}" for way in ways]
    for cell in cells:  # what the study is for
        gaps = {way: cell["test"]["ceiling"]["node"] - cell["test"][way]["node"] for way in ways}
        assert gaps["order 3"] < 0.02 and gaps["order 2, sage"] > 0.07


def test_the_guide_has_the_figures_of_the_citation_sets():
    sets = {name: cells_of(name) for name in ("cora", "citeseer", "pubmed")}
    chosen = sum(any(cell["chosen"]["triangle_weight"]) for cells in sets.values() for cell in cells)
    assert f"chose triangles in {COUNTS[chosen]} of fifteen fits there" in guide()
    two, three = (mean_of(sets["cora"], way, "graph") for way in ("order 2", "order 3"))
    assert f"(Cora\\*: {three:.2f} % of graphs right, order 2 has {two:.2f})" in guide()
    lost = [mean_of(cells, "order 2", "graph") - mean_of(cells, "always", "graph") for cells in sets.values()]
    assert f"would lose {min(lost):.1f} to {max(lost):.1f} points of graph accuracy" in guide()


def test_the_guide_has_the_figures_of_ppi():
    cells = cells_of("ppi-1")
    weights = [weight for cell in cells for weight in cell["chosen"]["triangle_weight"]]
    chosen = sum(weight > 0 for weight in weights)
    assert f"seven labels were trained, they chose triangles {chosen} times of {len(weights)}" in guide()
    two, three, always = (mean_of(cells, way, "node") for way in ("order 2", "order 3", "always"))
    assert f"{three:.2f} % of nodes, order 2 has {two:.2f}" in guide()
    assert f"and {two - always:.1f} of node accuracy on PPI-1" in guide()


def test_the_guide_says_how_much_pairs_leave_unexplained():
    page = (RESULTS / "README.md").read_text()
    rows = (row.split(" | ") for row in page.split("\n## Why\n")[1].split("\n## ")[0].splitlines() if row[:2] == "| ")
    nats = {row[0].removeprefix("| "): float(row[3]) for row in list(rows)[2:]}
    assert (
        f"{nats['triples']:.2f} nats on the made set, but {nats['cora*']:.2f} on Cora\\*, {nats['citeseer*']:.2f} on "
        f"Citeseer\\*, {nats['pubmed*']:.3f} on Pubmed\\*"
    ) in guide()
    over_all = re.search(
        r"Over all 121 labels of PPI-1, \*beyond pairs\* is (\S+) in the mean.* and (\S+) at most", page
    )
    assert f"on PPI-1 {over_all[1]} in the mean of its 121 labels and {over_all[2]} at most" in guide()
