"""Comparisons: stored whole, and blind to test labels until the end."""

import json
from dataclasses import replace

import pytest
import torch

from accord.datasets import make_digits
from accord.experiments import Comparison, _comparison, compare, comparison_table, read_comparisons


@pytest.fixture
def digits(monkeypatch):
    """`compare` on a small made set whose test labels can be shifted."""

    def load(shift):
        bench = make_digits(num_train=20, num_val=10, num_test=10, seed=0)
        for graph in bench.test:
            graph.y = (graph.y + shift) % bench.num_states
        monkeypatch.setattr(_comparison, "load_benchmark", lambda name, features: replace(bench, name=name))
        return compare("digits", "mlp", seeds=(0, 1), max_epochs=6, accelerator="cpu")

    return load


def test_permuting_test_labels_changes_nothing_but_the_final_score(digits):
    plain, shifted = digits(0), digits(3)
    assert plain.chosen == shifted.chosen
    assert plain.recipe == shifted.recipe
    assert plain.spn["node"] != shifted.spn["node"] and plain.gnn["node"] != shifted.gnn["node"]


def test_results_are_stored_with_all_that_led_to_them(digits, tmp_path):
    result = digits(0)
    path = result.write(tmp_path)
    (again,) = read_comparisons(tmp_path)
    assert json.loads(path.read_text())["provenance"]["torch"] == torch.__version__
    assert again.spn == result.spn and list(again.seeds) == [0, 1]
    table = comparison_table([again])
    assert "| digits | mlp | accord | 2 |" in table and "- / -" in table


def test_paired_test_needs_differences():
    entry = Comparison(
        benchmark="b", features="raw", encoder="gcn", preset="accord", seeds=(1, 2, 3), seconds=0.0, recipe={},
        provenance={}, chosen=[], gnn={"graph": [0.5, 0.5, 0.6]}, spn={"graph": [0.6, 0.61, 0.7]},
    )  # fmt: skip
    assert entry.p_value("graph") < 0.05
    assert entry.p_value("graph") == pytest.approx(0.00109, abs=2e-4)
    same = replace(entry, spn=entry.gnn)
    assert same.p_value("graph") != same.p_value("graph")
