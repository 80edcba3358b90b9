from dataclasses import replace

import pytest

from accord.app.settings import FitSettings, by_state, class_weight, override_recipe, read_settings, threshold
from accord.encoders import BilinearScorer
from accord.errors import AccordError, DataNotFoundError, OptionError
from accord.methods import preset_recipe


def config(tmp_path, text):
    path = tmp_path / "fit.toml"
    path.write_text(text)
    return path


def test_flags_replace_the_file_and_the_file_replaces_defaults(tmp_path):
    path = config(tmp_path, 'encoder = "gat"\nseed = 3\n[recipe.node]\nlearning_rate = 0.5\n')
    settings = read_settings(path, {"seed": 4, "level": None}, ["node.weight_decay=0.1", "training.batch_graphs=8"])
    recipe = {"node": {"learning_rate": 0.5, "weight_decay": 0.1}, "training": {"batch_graphs": 8}}
    assert settings == FitSettings(encoder="gat", seed=4, recipe=recipe)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("sede = 1", "'sede' is unknown. Known keys: method, encoder, edge_encoder, refine, level, max_epochs, seed"),
        ("seed = true", "seed is True, but a whole number is needed"),
        ("encoder = 2", "encoder is 2, but text in quotes is needed"),
        ("recipe = 2", "recipe is 2, but a table is needed"),
        ("seed = ", "is not valid TOML"),
    ],
)
def test_a_bad_file_is_refused(tmp_path, text, message):
    with pytest.raises(OptionError, match=message):
        read_settings(config(tmp_path, text), {})


def test_a_missing_file_is_refused(tmp_path):
    with pytest.raises(DataNotFoundError, match="there is no such file"):
        read_settings(tmp_path / "none.toml", {})


def test_single_values_of_the_recipe_are_replaced():
    recipe = preset_recipe("accord", "gcn")
    overrides = read_settings(
        None, {}, ["encoder.hidden=8", "grid.sharpness=[1.0, 0.5]", "training.patience=none", "edge_channels=16"]
    ).recipe
    changed = override_recipe(recipe, overrides)
    assert changed.encoder.hidden == 8 and changed.encoder.dropout == recipe.encoder.dropout
    assert changed.grid.sharpness == (1.0, 0.5)
    assert changed.training.patience is None
    assert changed.edge_channels == 16
    assert changed.node == recipe.node


@pytest.mark.parametrize(
    "overrides", [["scorer=linear"], ["scorer.kind=linear"], ["scorer=linear", "scorer.dropout=0.25"]]
)
def test_scorers_are_replaced_by_name(overrides):
    recipe = replace(preset_recipe(), scorer=BilinearScorer(dropout=0.5))
    changed = override_recipe(recipe, read_settings(None, {}, overrides).recipe)
    assert changed.scorer.kind == "linear"
    assert changed.scorer.dropout == (0.25 if len(overrides) > 1 else 0.0)


@pytest.mark.parametrize("override", ["encoder=SAGE", "encoder=GraphSAGE", "encoder.kind=sage"])
def test_the_name_of_the_same_encoder_changes_nothing(override):
    recipe = preset_recipe("accord", "sage")
    recipe = replace(recipe, encoder=replace(recipe.encoder, hidden=24))
    assert override_recipe(recipe, read_settings(None, {}, [override]).recipe) == recipe


@pytest.mark.parametrize(
    ("override", "message"),
    [
        ("nodes.learning_rate=1", "the key 'nodes' is unknown. Known keys: encoder, node, training, edge_encoder"),
        ("node.rate=1", "recipe.node: the key 'rate' is unknown"),
        ("node=1", "recipe.node: is 1, but has parts: learning_rate"),
        ("node.learning_rate=fast", "wrong type"),
        ("node.learning_rate=-1", "learning_rate is -1"),
        ("encoder=7", "recipe.encoder: is 7, but a name is needed. Give one"),
        ("scorer=none", "recipe.scorer: is None, but a name"),
        ("scorer.kind=7", "scorer is a int"),
        ("shared=5", "shared is a int"),
        ("grid.sharpness=3", "sharpness is 3"),
        ("grid.sharpness=abc", "sharpness is 'abc'"),
        ("consistency=abc", "consistency is 'abc'"),
        ("edge_channels=abc", "edge_channels is 'abc'"),
        ("encoder=resnet", "'resnet' is unknown"),
        ("a.b.c=1", "at most two parts"),
        ("=1", "write key=value"),
    ],
)
def test_bad_overrides_are_refused(override, message):
    with pytest.raises(AccordError, match=message):
        override_recipe(preset_recipe(), read_settings(None, {}, [override]).recipe)


def test_a_value_and_its_part_cannot_both_be_set():
    with pytest.raises(OptionError, match="recipe.encoder: is 7, which has no part 'hidden'"):
        read_settings(None, {}, ["encoder=7", "encoder.hidden=3"])


@pytest.mark.parametrize(("method", "key"), [("gnn", "scorer"), ("crf", "grid"), ("gmnn", "shared"), ("spn", "method")])
def test_fields_that_a_method_does_not_have_cannot_be_set(method, key):
    with pytest.raises(OptionError, match=f"recipe of method '{method}': the key '{key}' is unknown. Known keys: enc"):
        override_recipe(preset_recipe("accord", "gcn", method=method), {key: "linear"})


def test_numbers_by_state_are_read_by_name_or_place():
    assert by_state("fraud=20, ok=1", ["fraud", "ok"], "x") == {"fraud": 20.0, "ok": 1.0}
    assert by_state("1=20", None, "x") == {1: 20.0} and by_state("1=20", ["0", "1"], "x") == {"1": 20.0}
    assert by_state("1,20", None, "x") == [1.0, 20.0]
    assert by_state("a=b=2", ["a=b"], "x") == {"a=b": 2.0}
    assert threshold("0.3", None) == 0.3 and class_weight("balanced", None) == "balanced"


def test_a_field_that_is_written_only_where_it_is_set_can_be_set():
    assert override_recipe(preset_recipe("accord", "mlp"), {"edge_inputs": True}).edge_inputs
