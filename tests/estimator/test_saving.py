"""Saved models: what is read is what was written, or it is refused."""

import json
import os
import resource
from itertools import product

import pytest
import torch
from safetensors.torch import load_file, save_file
from support.command_line import make_graph

from accord import NodeClassifier
from accord._files import file_checksum, sealed
from accord.encoders import MLP
from accord.errors import InputError

GRAPHS = [make_graph(number) for number in range(6)]


@pytest.fixture(scope="module")
def fitted():
    model = NodeClassifier(encoder=MLP(hidden=4), features="standardised", max_epochs=2, accelerator="cpu")
    return model.fit(GRAPHS[:4], GRAPHS[4:])


@pytest.fixture
def saved(fitted, tmp_path):
    fitted.save(tmp_path)
    return tmp_path


def rewrite(folder, tensors, checked):
    """Replace the weights, with fitting checksums or, as older versions did, with none."""
    weights, path = folder / "model.safetensors", folder / "model.json"
    save_file(tensors, weights, metadata={"accord": json.dumps({"format": 2})})
    config = json.loads(path.read_text())
    config = {key: value for key, value in config.items() if key not in ("files", "sha256")}
    if checked:
        config = sealed({**config, "files": {weights.name: file_checksum(weights)}})
    path.write_text(json.dumps(config))


def test_models_without_checksums_stay_readable(fitted, saved):
    rewrite(saved, load_file(saved / "model.safetensors"), checked=False)
    assert torch.equal(NodeClassifier.load(saved).predict_proba(GRAPHS[0]), fitted.predict_proba(GRAPHS[0]))


@pytest.mark.parametrize("checked", [True, False])
def test_tensors_of_other_shapes_types_or_names_are_refused(saved, checked):
    whole = load_file(saved / "model.safetensors")
    for name in whole:
        short, more = torch.ones(1, dtype=whole[name].dtype), torch.cat([whole[name]] * 2)
        for broken in (short, more, whole[name].long(), whole[name].half()):
            rewrite(saved, whole | {name: broken}, checked)
            with pytest.raises(InputError, match=f"tensors do not fit the model .{name} is .* instead of"):
                NodeClassifier.load(saved)
    rewrite(saved, whole | {"node/extra": torch.ones(2)}, checked)
    with pytest.raises(InputError, match="node/extra is not part of the model"):
        NodeClassifier.load(saved)


def test_the_weights_of_another_model_are_refused(saved, tmp_path):
    other = NodeClassifier(encoder=MLP(hidden=4), features="standardised", max_epochs=1, seed=1, accelerator="cpu")
    other.fit(GRAPHS[:4], GRAPHS[4:]).save(tmp_path / "other")
    (saved / "model.safetensors").write_bytes((tmp_path / "other" / "model.safetensors").read_bytes())
    with pytest.raises(InputError, match="is not the file that model.json belongs to: its checksum differs"):
        NodeClassifier.load(saved)


@pytest.mark.parametrize("stops", [(1,), (2,), (3,), (4,), (1, 2), (2, 1), (2, 2), (3, 1), (3, 3)])
def test_a_save_that_is_stopped_leaves_a_model_that_can_be_loaded(fitted, saved, monkeypatch, stops):
    """Each save ends right before its change number `stop` to the folder, as if its process were killed there."""
    loaded = probabilities(saved)
    expected = [loaded]
    for number, stop in enumerate(stops):
        other = NodeClassifier(encoder=MLP(hidden=4), max_epochs=2, accelerator="cpu", seed=number + 1)
        expected.append(other.fit(GRAPHS[:4], GRAPHS[4:]).predict_proba(GRAPHS[0]))
        with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
            patch.setattr(os, "replace", stop_before(stop))
            other.save(saved)
        loaded = probabilities(saved)
        assert any(torch.equal(loaded, one) for one in expected[-2:])
        expected = [loaded]
    fitted.save(saved)
    assert sorted(path.name for path in saved.iterdir()) == ["README.md", "model.json", "model.safetensors"]
    assert torch.equal(probabilities(saved), fitted.predict_proba(GRAPHS[0]))


def probabilities(folder):
    return NodeClassifier.load(folder).predict_proba(GRAPHS[0])


def stop_before(number):
    """A stand-in for os.replace that stops before its call of this number."""
    replace, calls = os.replace, []

    def stop(*paths):
        calls.append(paths)
        if len(calls) == number:
            raise KeyboardInterrupt
        replace(*paths)

    return stop


def test_changed_bytes_are_found(fitted, saved):
    for name in ("model.safetensors", "model.json"):
        whole = (saved / name).read_bytes()
        for place in range(0, len(whole), len(whole) // 60):
            (saved / name).write_bytes(whole[:place] + bytes([whole[place] ^ 4]) + whole[place + 1 :])
            try:
                model = NodeClassifier.load(saved)
            except InputError:
                continue
            # A changed space, for instance; or the name of the key that holds the checksum.
            assert torch.equal(model.predict_proba(GRAPHS[0]), fitted.predict_proba(GRAPHS[0])), (name, place)
        (saved / name).write_bytes(whole)


def test_an_edited_configuration_can_be_used_once_its_checksum_is_removed(saved):
    config = json.loads((saved / "model.json").read_text())
    config["labels"]["names"] = ["a", "b", "c"]
    (saved / "model.json").write_text(json.dumps(config))
    with pytest.raises(InputError, match='edited on purpose, remove the key "sha256"'):
        NodeClassifier.load(saved)
    del config["sha256"]
    (saved / "model.json").write_text(json.dumps(config))
    assert NodeClassifier.load(saved).label_names == ["a", "b", "c"]


ABSURD = (10**9, 10**12, 10**30, 10**400)


@pytest.mark.parametrize(
    ("key", "value"),
    [
        *product(("shape__num_states", "shape__num_features", "shape__num_tasks", "recipe__encoder__hidden"), ABSURD),
        *product(("recipe__encoder__layers", "recipe__edge_encoder__hidden"), ABSURD[:2]),
        ("recipe__edge_channels", 10**6),
        ("shape__num_states", 0),
        ("shape__num_tasks", 2.5),
        ("shape__edge_attributes", -1),
        ("shape__edge_attributes", None),
        ("labels__names", ["a"]),
        ("features__names", ["a"]),
        ("labels", None),
        ("choice", {}),
    ],
    ids=lambda value: str(value)[:30],
)
def test_absurd_values_are_refused_before_memory_is_taken(saved, key, value):
    config = json.loads((saved / "model.json").read_text())
    *places, last = key.split("__")
    inside = config
    for place in places:
        inside = inside[place]
    inside[last] = value
    del config["sha256"]
    (saved / "model.json").write_text(json.dumps(config))
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    with pytest.raises(InputError):
        NodeClassifier.load(saved)
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss < before + 100_000  # kilobytes


def test_json_that_cannot_be_read_is_refused(saved):
    for text in ("[" * 100_000, '{"format": ' + "9" * 5000 + "}", '{"format": 2, "files": 7, "shape": []}'):
        (saved / "model.json").write_text(text)
        with pytest.raises(InputError):
            NodeClassifier.load(saved)


@pytest.mark.parametrize("method", ["spn", "smooth"])
def test_torch_may_be_set_otherwise(method, tmp_path):
    def fit(graphs=GRAPHS):
        return NodeClassifier(method, encoder="gat", max_epochs=4, accelerator="cpu").fit(graphs[:4], graphs[4:])

    wanted = fit()
    wanted.save(tmp_path)
    expected = wanted.predict_proba(GRAPHS[0])
    with torch.no_grad():
        assert torch.equal(fit().predict_proba(GRAPHS[0]), expected)
    with torch.inference_mode():
        assert torch.equal(fit([graph.clone() for graph in GRAPHS]).predict_proba(GRAPHS[0]), expected)
    torch.set_default_dtype(torch.float64)
    try:
        for model in (fit(), NodeClassifier.load(tmp_path)):
            assert torch.equal(model.predict_proba(GRAPHS[0]), expected)
        assert torch.get_default_dtype() == torch.float64
    finally:
        torch.set_default_dtype(torch.float32)
