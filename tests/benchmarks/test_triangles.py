"""The study of order 3: what it counts, and what a cell holds."""

import importlib.util
import json
import re
from pathlib import Path
from statistics import mean

import pytest

from accord.datasets import TriplesOptions, make_triples

PATH = Path(__file__).parents[2] / "benchmarks" / "triangles.py"


@pytest.fixture(scope="module")
def study():
    spec = importlib.util.spec_from_file_location("benchmark_triangles", PATH)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_pairs_leave_unexplained_what_triples_decide(study, monkeypatch):
    for faithful, expected in ((0.97, 0.94), (1 / 3, 0.0)):  # log 3 less the entropy of the third label; no rule
        made = make_triples(300, 1, 1, options=TriplesOptions(faithful=faithful))
        monkeypatch.setattr(study, "load", lambda name, seed, made=made: (made, {}))
        assert study.beyond_pairs("triples") == pytest.approx(expected, abs=0.03)


def test_a_cell_compares_both_orders_and_the_report_shows_it(study, monkeypatch):
    small = TriplesOptions(min_triangles=3, max_triangles=5)
    made = make_triples(10, 12, 6, options=small)
    monkeypatch.setattr(study, "load", lambda name, seed: (made, {"max_epochs": 2}))
    monkeypatch.setattr(study, "others", lambda bench, seed: {})
    record = study.measure_cell("triples", 0)
    assert set(record["test"]) == {"gnn", "order 2", "order 3", "always"}
    assert record["solved"]["solved exactly"] == 12 and record["triangles"]["train"]["graphs"] == 10
    text = study.report([record])
    assert "| triples | order 3 | node |" in text


def test_the_guide_has_the_figures_of_the_cells():
    root = PATH.parent.parent
    cells = [json.loads(path.read_text()) for path in sorted((root / "results/triangles/cells").glob("triples-*.json"))]
    ways = ("gnn", "order 2", "order 2, sage", "order 3", "order 3, refined", "ceiling")
    figures = [f"{100 * mean(cell['test'][way]['node'] for cell in cells):.2f}" for way in ways]
    table = (root / "docs" / "triangles.md").read_text().split("## What it gains")[1]
    assert re.findall(r"\| (\d+\.\d+) \|", table) == figures
    for cell in cells:  # what the study is for
        assert cell["test"]["ceiling"]["node"] - cell["test"]["order 3"]["node"] < 0.02
        assert cell["test"]["ceiling"]["node"] - cell["test"]["order 2, sage"]["node"] > 0.07
