"""Recipes: each method has its own, and a field that a method does not have cannot be set."""

import json
from dataclasses import fields, replace

import pytest

from accord.encoders import GCN, MLP
from accord.errors import InputTypeError, OptionError
from accord.methods import (
    METHODS,
    CRFRecipe,
    GMNNRecipe,
    GNNRecipe,
    SPNRecipe,
    preset_recipe,
    recipe_from_config,
    recipe_to_config,
)

TYPES = {"crf": CRFRecipe, "gmnn": GMNNRecipe, "gnn": GNNRecipe, "smooth": GNNRecipe, "spn": SPNRecipe}


def test_every_method_names_its_recipe():
    assert {name: method.recipe_type for name, method in METHODS.items()} == TYPES
    assert {name: METHODS[name].name for name in METHODS} == {name: name for name in TYPES}


@pytest.mark.parametrize("method", TYPES)
def test_presets_give_the_methods_own_recipe(method):
    assert type(preset_recipe("accord", "gcn", method=method)) is TYPES[method]


@pytest.mark.parametrize("method", TYPES)
def test_recipes_survive_json(method):
    recipe = preset_recipe("accord", "gcnii", benchmark="cora*", method=method, refine=method == "spn")
    config = json.loads(json.dumps(recipe_to_config(recipe)))
    assert METHODS[config["method"]].recipe_type is type(recipe)
    assert recipe_from_config(config) == recipe


@pytest.mark.parametrize("method", TYPES)
@pytest.mark.parametrize("other", TYPES)
def test_a_recipe_of_another_method_is_refused(method, other):
    recipe, needed = preset_recipe("accord", "gcn", method=other), TYPES[method]
    if TYPES[other] is needed:
        assert METHODS[method](recipe).recipe is recipe
    else:
        with pytest.raises(InputTypeError, match=f"is a {TYPES[other].__name__}, but a {needed.__name__} is needed"):
            METHODS[method](recipe)


def test_fields_of_other_methods_are_refused():
    for method, field in (("gnn", "edge_encoder"), ("crf", "grid"), ("spn", "objective"), ("gmnn", "scorer")):
        recipe = preset_recipe("accord", "gcn", method=method)
        with pytest.raises(TypeError, match=field):
            replace(recipe, **{field: None})
        with pytest.raises(OptionError, match=f"the key '{field}' is unknown. Known keys: encoder, node, training"):
            recipe_from_config(recipe_to_config(recipe) | {field: None})
    with pytest.raises(OptionError, match=r"recipe.node: the key 'rate' is unknown. Known keys: learning_rate"):
        recipe_from_config(recipe_to_config(preset_recipe()) | {"node": {"rate": 1.0}})


def test_configurations_without_a_method_are_refused():
    config = recipe_to_config(preset_recipe())
    del config["method"]
    with pytest.raises(OptionError, match='has no "method"'):
        recipe_from_config(config)
    with pytest.raises(OptionError, match="method 'guess' is unknown"):
        recipe_from_config(config | {"method": "guess"})


def test_presets_refuse_what_a_method_does_not_have():
    with pytest.raises(OptionError, match="method 'crf' has no refinement"):
        preset_recipe("accord", "gcn", method="crf", refine=True)


def test_the_second_encoder_goes_to_the_network_that_a_method_has():
    assert preset_recipe("accord", "gcn", MLP(hidden=3), method="gmnn").label_encoder == MLP(hidden=3)
    for method in ("spn", "crf"):
        assert preset_recipe("accord", "gcn", MLP(hidden=3), method=method).edge_encoder == MLP(hidden=3)
    assert preset_recipe("accord", "gcn", MLP(hidden=3), method="gnn") == preset_recipe("accord", "gcn", method="gnn")


def test_what_methods_share_has_one_value_in_a_preset():
    found = {method: preset_recipe("accord", "gat", benchmark="cora*", method=method) for method in TYPES}
    for recipe in found.values():
        shared = {entry.name for entry in fields(recipe)} & {entry.name for entry in fields(SPNRecipe)} - {"training"}
        assert {"encoder", "node"} <= shared
        assert all(getattr(recipe, name) == getattr(found["spn"], name) for name in shared)
    assert found["gmnn"].label_encoder == found["spn"].edge_encoder
    assert found["gmnn"].label == found["spn"].edge


def test_an_encoder_object_keeps_its_sizes():
    assert preset_recipe("accord", GCN(hidden=5)).encoder == GCN(hidden=5)
