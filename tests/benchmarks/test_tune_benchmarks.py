"""Searches of benchmark recipes: the preset's recipe is among the trials, and what is found can be promoted."""

import importlib.util
import json
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest
from support.made_graphs import made_trees

from accord.tuning import SearchBudget

FOLDER = Path(__file__).parents[2] / "benchmarks" / "defaults"


@pytest.fixture
def script(monkeypatch):
    monkeypatch.syspath_prepend(FOLDER)  # it imports promote_recipes
    spec = importlib.util.spec_from_file_location("tune_benchmarks", FOLDER / "tune_benchmarks.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    yield module
    sys.modules.pop("promote_recipes")


def test_a_search_judges_the_preset_and_writes_a_recipe_that_can_be_promoted(script, monkeypatch, tmp_path):
    made = SimpleNamespace(train=made_trees(6, 0), val=made_trees(4, 1), level="graph", num_states=2)
    monkeypatch.setattr(script, "load_benchmark", lambda name, features: made)
    budget = SearchBudget(trials=4, max_epochs=2, train_winner=False)
    record = script.tune("citeseer*", "gcnii", tmp_path / "run", budget, "cpu", 0)
    assert record["preset"] is not None and record["found"] >= record["preset"]
    assert record["trials"][:2] == [2, 2]
    table = json.loads(script.TABLE.read_text())
    after = script.promote(table, "citeseer*", "gcnii", Path(record["file"]))
    assert after["gcnii"]["citeseer*"]["training"]["max_epochs"] == 2
    assert "| citeseer\\* | gcnii | 2 | 2 |" in script.summary([record])


def test_only_what_is_better_than_the_preset_counts(script):
    assert script.is_better({"preset": 0.6, "found": 0.61})
    assert not script.is_better({"preset": 0.6, "found": 0.6})
    assert not script.is_better({"preset": None, "found": 0.9}), "the preset's recipe was not judged"
