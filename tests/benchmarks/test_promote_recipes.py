"""Promoting a tuned recipe changes its own row of the preset's table and no other."""

import importlib.util
import json
from dataclasses import replace
from pathlib import Path

import pytest

from accord.learning import PartOptions
from accord.methods import preset_recipe, recipe_from_config, recipe_to_config
from accord.tuning import TunedRecipe, write_recipe

SCRIPT = Path(__file__).parents[2] / "benchmarks" / "defaults" / "promote_recipes.py"


@pytest.fixture(scope="module")
def script():
    spec = importlib.util.spec_from_file_location("promote_recipes", SCRIPT)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_one_row_changes_and_reads_back(script, tmp_path):
    table = json.loads(script.TABLE.read_text())
    before = preset_recipe("accord", "gcn", benchmark="cora*")
    tuned = replace(before, node=PartOptions(learning_rate=0.123))
    write_recipe(tmp_path / "recipe.json", TunedRecipe("spn", "raw", tuned))
    after = script.promote(table, "cora*", "GCN", tmp_path / "recipe.json")
    assert {k: v for k, v in after["gcn"].items() if k != "cora*"} == {
        k: v for k, v in table["gcn"].items() if k != "cora*"
    }
    assert {k: v for k, v in after.items() if k != "gcn"} == {k: v for k, v in table.items() if k != "gcn"}
    plain = replace(preset_recipe("accord", "gcn"), rule=before.rule, shrinkage=before.shrinkage)
    assert recipe_from_config({**recipe_to_config(plain), **after["gcn"]["cora*"]}) == tuned


def test_other_features_are_refused(script, tmp_path):
    recipe = preset_recipe("accord", "gcn", benchmark="cora*")
    write_recipe(tmp_path / "recipe.json", TunedRecipe("spn", "standardised", recipe))
    with pytest.raises(SystemExit, match="raw features are needed"):
        script.promote({}, "cora*", "gcn", tmp_path / "recipe.json")


def test_another_table_starts_as_a_copy_and_the_preset_stays(script, tmp_path, monkeypatch):
    committed = script.TABLE.read_text()
    recipe = replace(preset_recipe("accord", "gcn", benchmark="cora*"), node=PartOptions(learning_rate=0.123))
    write_recipe(tmp_path / "recipe.json", TunedRecipe("spn", "raw", recipe))
    table = tmp_path / "table.json"
    for encoder, benchmark in (("gcn", "cora*"), ("gcn", "citeseer*")):
        given = ["promote", benchmark, encoder, str(tmp_path / "recipe.json"), "--table", str(table)]
        monkeypatch.setattr("sys.argv", given)
        script.main()
    found = json.loads(table.read_text())
    assert [found["gcn"][name]["node"]["learning_rate"] for name in ("cora*", "citeseer*")] == [0.123, 0.123]
    assert found["gat"] == json.loads(committed)["gat"] and script.TABLE.read_text() == committed
