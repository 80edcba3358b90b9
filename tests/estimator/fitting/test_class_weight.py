"""`class_weight`: what users may give, what it does to rare states, and that it is saved."""

import json

import numpy as np
import pytest
import torch
from support.made_graphs import made_trees
from torch_geometric.data import Data

from accord import NodeClassifier
from accord.encoders import MLP
from accord.errors import InputTypeError, OptionError
from accord.learning import CombinationGrid, PartOptions
from accord.methods import SPNRecipe

NAMES = ["good", "fraud"]
RATE = PartOptions(learning_rate=2e-2)
GRID = CombinationGrid(sharpness=(1.0,), power=(1.0,), node_weight=(1.0,))
RECIPE = SPNRecipe(encoder=MLP(hidden=8), edge_encoder=MLP(hidden=8), node=RATE, edge=RATE, grid=GRID)


def rare_graphs(count, seed):
    """Trees in which few nodes have state 1, and features say little."""
    generator = torch.Generator().manual_seed(seed)
    graphs = []
    for graph in made_trees(count, seed):
        y = (graph.y == 1) & (torch.rand(graph.num_nodes, generator=generator) < 0.25)
        x = torch.randn(graph.num_nodes, 2, generator=generator)
        x[:, 0] += y
        graphs.append(Data(x=x, edge_index=graph.edge_index, y=y.long()))
    return graphs


TRAIN, VAL, TEST = rare_graphs(80, 0), rare_graphs(30, 1), rare_graphs(60, 2)


def fit(class_weight, train=TRAIN, val=VAL, **changes):
    options = {
        "recipe": RECIPE,
        "max_epochs": 25,
        "accelerator": "cpu",
        "label_names": NAMES,
        "features": "raw",
    } | changes
    return NodeClassifier(**options, class_weight=class_weight).fit(train, val)


def recall(model):
    truth = torch.cat([graph.y for graph in TEST])
    return float((torch.cat(model.predict(TEST))[truth == 1] == 1).double().mean())


def test_balanced_weights_find_more_of_a_rare_state():
    plain, balanced = fit(None, level="node"), fit("balanced", level="node")
    assert recall(balanced) > recall(plain) + 0.2
    assert torch.cat(balanced.predict_proba(TEST))[:, 1].mean() > torch.cat(plain.predict_proba(TEST))[:, 1].mean()


def test_all_ways_to_give_numbers_are_the_same(tmp_path):
    expected = fit([1.0, 5.0], max_epochs=5)
    ways = ({"fraud": 5}, {1: 5.0, 0: 1.0}, np.array([2.0, 10.0]), torch.tensor([0.5, 2.5]), (1, 5))
    for given in ways:
        torch.testing.assert_close(fit(given, max_epochs=5).predict_proba(TEST[0]), expected.predict_proba(TEST[0]))


@pytest.mark.parametrize(("given", "kept"), [("balanced", "balanced"), ({"fraud": 5}, [1.0, 5.0]), (None, None)])
def test_weights_are_saved_with_the_model(tmp_path, given, kept):
    fit(given, max_epochs=1).save(tmp_path)
    assert NodeClassifier.load(tmp_path).class_weight == kept
    config = json.loads((tmp_path / "model.json").read_text())
    del config["class_weight"], config["sha256"]  # as an earlier version wrote it
    (tmp_path / "model.json").write_text(json.dumps(config))
    assert NodeClassifier.load(tmp_path).class_weight is None


@pytest.mark.parametrize("method", ["gnn", "smooth", "gmnn"])
def test_other_methods_take_weights(method):
    options = {"method": method, "encoder": "mlp", "recipe": None, "max_epochs": 3}
    plain, weighted = (fit(w, **options) for w in (None, "balanced"))
    assert not torch.equal(plain.predict_proba(TEST[0]), weighted.predict_proba(TEST[0]))


@pytest.mark.parametrize(
    ("given", "changes", "error", "message"),
    [
        ("even", {}, OptionError, "class_weight 'even' is unknown. Give 'balanced'"),
        (3.0, {}, InputTypeError, "class_weight is a float"),
        ([1.0, 2.0, 3.0], {}, OptionError, "3 numbers for 2 states"),
        ([1.0, 0.0], {}, OptionError, "class_weight holds 0;"),
        ([1.0, float("nan")], {}, OptionError, "class_weight holds nan"),
        ([1.0, "a"], {}, InputTypeError, "class_weight holds 'a'"),
        ({"frog": 2.0}, {}, OptionError, "class_weight names the state 'frog'.*'good', 'fraud'"),
        ("balanced", {"method": "crf", "recipe": None}, OptionError, "no meaning for method 'crf'"),
        ("balanced", {"refine": True}, OptionError, "no meaning for refinement"),
    ],
)
def test_weights_that_cannot_be_used_are_refused(given, changes, error, message):
    with pytest.raises(error, match=message):
        fit(given, max_epochs=1, **changes)
