import json

import pytest

from accord.app.runs import (
    CHECKPOINT_FILE,
    CONFIG_FILE,
    METRICS_FILE,
    MODEL_FILE,
    differences,
    flatten,
    open_model,
    open_run,
    start_run,
)
from accord.errors import DataNotFoundError, InputError

CONFIG = {"settings": {"seed": 0, "accelerator": "cpu"}, "versions": {"torch": "2"}, "data": {"name": "fruit"}}


def test_flat_keys_have_dots_and_values_are_those_of_json():
    values = {"a": {"b": (1, 2), "c": {}}, "d": None}
    assert flatten(values) == {"a.b": [1, 2], "d": None} == flatten(json.loads(json.dumps(values)))


def test_device_versions_and_place_of_the_data_may_differ():
    now = {"settings": {"seed": 0, "accelerator": "cuda"}, "versions": {"torch": "3"}, "data": {"name": "moved"}}
    assert differences(CONFIG, now) == []
    assert differences(CONFIG, now | {"settings": {"seed": 1}}) == ["settings.seed is 0 there, 1 here"]
    assert differences(CONFIG, {}) == ["settings.seed is 0 there, None here"]


@pytest.mark.parametrize("file", [MODEL_FILE, CHECKPOINT_FILE, f"stage-1/{CHECKPOINT_FILE}"])
def test_a_run_with_weights_is_not_replaced_by_another(tmp_path, file):
    start_run(tmp_path / "run", CONFIG)
    (tmp_path / "run" / file).parent.mkdir(exist_ok=True)
    (tmp_path / "run" / file).touch()
    (tmp_path / "run" / METRICS_FILE).touch()
    assert start_run(tmp_path / "run", CONFIG).config == CONFIG
    assert (tmp_path / "run" / METRICS_FILE).exists()
    with pytest.raises(InputError, match="contains a run with other settings .settings.seed is 0 there, 1 here"):
        start_run(tmp_path / "run", CONFIG | {"settings": {"seed": 1}})


def test_a_run_without_weights_is_replaced(tmp_path):
    start_run(tmp_path, CONFIG)
    (tmp_path / METRICS_FILE).touch()
    start_run(tmp_path, CONFIG | {"settings": {"seed": 1}})
    assert json.loads((tmp_path / CONFIG_FILE).read_text())["settings"] == {"seed": 1}
    assert not (tmp_path / METRICS_FILE).exists()


def test_a_damaged_configuration_is_refused_when_a_run_continues(tmp_path):
    start_run(tmp_path, CONFIG)
    (tmp_path / MODEL_FILE).touch()
    text = (tmp_path / CONFIG_FILE).read_text()
    (tmp_path / CONFIG_FILE).write_text(text.replace("fruit", "fruiT"))
    with pytest.raises(InputError, match="config.json: is damaged: its content does not match its checksum"):
        start_run(tmp_path, CONFIG)
    (tmp_path / CONFIG_FILE).write_text(json.dumps(CONFIG))  # older runs have no checksum
    assert start_run(tmp_path, CONFIG).config == CONFIG


def test_a_saved_model_is_not_a_run_but_can_be_opened(tmp_path):
    (tmp_path / MODEL_FILE).touch()
    assert open_model(tmp_path).config == {}
    with pytest.raises(DataNotFoundError, match="has no config.json, so it is not a run"):
        open_run(tmp_path)
