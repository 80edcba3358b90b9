"""What was chosen on validation data is saved as names and numbers, not as positions in tables of the source."""

import json

import pytest
import torch
from support.made_graphs import made_trees
from support.made_recipes import recipe_for

import accord
from accord.encoders import GCN, MLP, LinearScorer
from accord.errors import InputError
from accord.graphs import GraphBatch
from accord.learning import CombinationGrid, PartOptions, Replicas, TrainingOptions, TrainingRun
from accord.learning.selection import FieldChoice, _combination, _grid
from accord.methods import METHODS, Shape, _gmnn, _smoothing

TRAIN, VAL = made_trees(40, 0, states=3), made_trees(20, 1, states=3)
RUN, SHAPE, REPLICAS = TrainingRun(TRAIN, VAL), Shape(3, 3), Replicas((0, 1, 2))
VALUES = {
    "encoder": MLP(hidden=8),
    "edge_encoder": GCN(hidden=8),
    "edge_channels": 8,
    "scorer": LinearScorer(),
    "node": PartOptions(learning_rate=2e-2),
    "edge": PartOptions(learning_rate=2e-2),
    "training": TrainingOptions(max_epochs=10, accelerator="cpu"),
    "grid": CombinationGrid(
        sharpness=(1.0, 0.5), power=(1.0,), node_weight=(1.0, 0.7), semiring=("sum",), appearance=("spanning", 0.3)
    ),
}


def reorder_tables(monkeypatch):
    for module in (_combination, _grid):
        monkeypatch.setattr(module, "DECODED_FROM", ("sum", "max"))
    monkeypatch.setattr(_smoothing, "CANDIDATES", _smoothing.CANDIDATES[::-1])
    monkeypatch.setattr(_gmnn, "PASSES", (1, 3))


@pytest.mark.parametrize("method", METHODS)
def test_a_saved_model_survives_reordered_tables(method, tmp_path, monkeypatch):
    recipe = recipe_for(METHODS[method], VALUES)
    model = accord.NodeClassifier(method, recipe=recipe, accelerator="cpu").fit(TRAIN, VAL)
    model.save(tmp_path)
    choice = model.model_.choice()
    expected = [(model.predict(graph), model.predict_proba(graph)) for graph in VAL]
    reorder_tables(monkeypatch)
    again = accord.NodeClassifier.load(tmp_path)
    assert again.model_.choice() == choice
    for graph, (labels, probabilities) in zip(VAL, expected, strict=True):
        assert torch.equal(again.predict(graph), labels)
        assert torch.equal(again.predict_proba(graph), probabilities)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("selection", ["grid", "likelihood"])
def test_choices_survive_json_to_the_bit(method, selection):
    """Fitted numbers use every bit of a float32."""
    way = METHODS[method](recipe_for(METHODS[method], VALUES | {"selection": selection}))
    model, again = way.fit(RUN, SHAPE, REPLICAS), way.build(SHAPE, REPLICAS)
    again.load(model.tensors(), json.loads(json.dumps(model.choice(), allow_nan=False)))
    batch = GraphBatch.collate(VAL)
    assert torch.equal(again.labels(batch), model.labels(batch))
    assert torch.equal(again.field(batch).edge, model.field(batch).edge)
    if method == "spn":
        assert all(torch.equal(again.chosen.tensors()[name], v) for name, v in model.chosen.tensors().items())
        assert set(model.choice()["semiring"]) == {"sum"}


def test_nothing_chosen_has_no_score():
    choice = FieldChoice.default(VALUES["grid"].candidates()[0], 2)
    assert choice.to_config()["score"] == [None, None]
    assert FieldChoice.from_config(choice.to_config()).score.isnan().all()


def test_damaged_choices_are_refused(tmp_path):
    model = accord.NodeClassifier(recipe=recipe_for(METHODS["spn"], VALUES), accelerator="cpu").fit(TRAIN, VAL)
    model.save(tmp_path)
    config = json.loads((tmp_path / "model.json").read_text())
    del config["sha256"]  # as after an edit on purpose
    for change, message in (
        ({"semiring": ["min"]}, "semiring 'min' is unknown"),
        ({"power": []}, "saved choice"),
        ({"extra": [1.0]}, "saved choice"),
    ):
        (tmp_path / "model.json").write_text(json.dumps(config | {"choice": config["choice"] | change}))
        with pytest.raises(InputError, match=message):
            accord.NodeClassifier.load(tmp_path)
