"""The citation table: results are stored whole, and test labels are not seen before the end."""

import json
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from accord.datasets import make_digits
from accord.experiments import Result, _runner, citation_table, compare, read_result, read_results

STORED = Path(__file__).parents[2] / "results"


@pytest.fixture
def digits(monkeypatch):
    """`compare` on a small made set whose test labels can be shifted."""

    def run(shift):
        bench = make_digits(num_train=20, num_val=10, num_test=10, seed=0)
        for graph in bench.test:
            graph.y = (graph.y + shift) % bench.num_states
        monkeypatch.setattr(_runner, "load_benchmark", lambda name, features: replace(bench, name=name))
        return compare("digits", "mlp", seeds=(0, 1), max_epochs=6, accelerator="cpu")

    return run


def test_test_labels_change_only_the_final_score(digits):
    plain, shifted = digits(0), digits(3)
    assert plain.chosen == shifted.chosen and len(plain.chosen) == 2
    assert plain.recipe == shifted.recipe
    assert all(plain.scores[way]["node"] != shifted.scores[way]["node"] for way in ("gnn", "spn"))


def test_results_are_stored_with_everything_that_produced_them(digits, tmp_path):
    result = digits(0)
    path = result.write(tmp_path / "one.json")
    (again,) = read_results(tmp_path)
    assert json.loads(path.read_text())["provenance"][0]["torch"] == torch.__version__
    assert (again.scores, again.seeds, again.chosen) == (result.scores, (0, 1), result.chosen)
    table = citation_table([again])
    assert "| digits | mlp | accord | 2 |" in table and "- / -" in table


def made_result(**changes):
    scores = {"gnn": {"graph": [0.5, 0.5, 0.6]}, "spn": {"graph": [0.6, 0.61, 0.7]}}
    values = {"benchmark": "b", "features": "raw", "encoder": "gcn", "preset": "accord", "seeds": (1, 2, 3)}
    return Result(**values, recipe={}, provenance=[{}], **{"scores": scores, **changes})


def test_the_paired_test_needs_differences():
    result = made_result()
    assert result.p_value("spn", "gnn", "graph") == pytest.approx(0.00109, abs=2e-4)
    same = replace(result, scores={"gnn": result.scores["gnn"], "spn": result.scores["gnn"]})
    assert same.p_value("spn", "gnn", "graph") != same.p_value("spn", "gnn", "graph")


def test_seeds_of_two_runs_are_joined():
    first = made_result(seconds=1.0)
    both = first.with_more_seeds(replace(first, seeds=(4, 5, 6), provenance=[{"date": "later"}]))
    assert both.seeds == (1, 2, 3, 4, 5, 6) and both.seconds == 2.0 and both.provenance == [{}, {"date": "later"}]
    assert both.scores["spn"]["graph"] == [0.6, 0.61, 0.7] * 2


@pytest.mark.parametrize("folder", ["citation", "methods", "ppi", "paper_preset/crf_full_batch"])
def test_committed_results_are_readable(folder):
    paths = sorted((STORED / folder).glob("*.json"))
    assert paths
    for path in paths:
        result = read_result(path)
        assert all(len(values) == len(result.seeds) for way in result.scores.values() for values in way.values()), path
