"""Checkpoints: runs that were stopped or killed resume to the same result."""

import json
import os
import resource
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from learning.training_cases import LEAVING, RECIPE, SEEDS, TRAIN, fit, presence, same, with_training
from safetensors import safe_open
from torch_geometric.data import Data

from accord.errors import InputError
from accord.learning import PartOptions
from accord.learning.training import _checkpoint, read_checkpoint, write_checkpoint

TESTS = str(Path(__file__).parents[2])


def test_interrupted_runs_resume_to_the_same_result(tmp_path):
    whole = fit(seeds=(0, 1))
    fit(with_training(max_epochs=20), seeds=(0, 1), folder=tmp_path)
    resumed = fit(seeds=(0, 1), folder=tmp_path)
    same(resumed.tensors(), whole.tensors(), rtol=0, atol=0)
    assert resumed.history == whole.history


def test_killed_runs_resume_to_the_same_result(tmp_path):
    script = (
        "import sys, time, json; from pathlib import Path; sys.path[:0] = json.loads(sys.argv[2])\n"
        "from learning.training_cases import StructuredProxyNetwork, TRAIN, VAL, SHAPE, with_training\n"
        "from accord.learning import Replicas, TrainingRun\n"
        "method = StructuredProxyNetwork(with_training(checkpoint_every=1), 'graph')\n"
        "run = TrainingRun(TRAIN, VAL, Path(sys.argv[1]), lambda row: time.sleep(0.3))\n"
        "method.fit(run, SHAPE, Replicas((0,)))\n"
    )
    paths = json.dumps([TESTS])
    process = subprocess.Popen([sys.executable, "-c", script, str(tmp_path), paths])
    checkpoint = tmp_path / "checkpoint.safetensors"
    deadline = time.time() + 120
    while time.time() < deadline and process.poll() is None:
        if checkpoint.exists() and read_checkpoint(checkpoint).values["epoch"] >= 7:
            break
        time.sleep(0.05)
    process.send_signal(signal.SIGKILL)
    process.wait()
    assert 7 <= read_checkpoint(checkpoint).values["epoch"] < 30, "the run must be killed before it ends"
    resumed = fit(with_training(checkpoint_every=1), folder=tmp_path)
    whole = fit()
    assert resumed.history == whole.history
    same(resumed.tensors(), whole.tensors(), rtol=0, atol=0)


def test_checkpoints_of_other_runs_are_refused(tmp_path):
    fit(with_training(max_epochs=10), folder=tmp_path)
    with pytest.raises(InputError, match="other seeds"):
        fit(seeds=(1,), folder=tmp_path)
    (tmp_path / "checkpoint.safetensors").write_bytes(b"not a checkpoint")
    with pytest.raises(InputError, match="not a checkpoint"):
        fit(folder=tmp_path)


def test_a_checkpoint_that_is_replaced_while_it_is_read_is_read_again(tmp_path, monkeypatch):
    path = tmp_path / "c.safetensors"
    write_checkpoint(path, {"a": torch.zeros(2)}, {"epoch": 1})

    class Replaced:
        """Header of the old file, tensors of the new one, once."""

        def __init__(self, path, framework):
            self.file, self.options = safe_open(path, framework=framework), (path, framework)

        def __enter__(self):
            return self

        def __exit__(self, *_):
            return None

        def metadata(self):
            header = self.file.metadata()
            monkeypatch.setattr(_checkpoint, "safe_open", safe_open)
            write_checkpoint(path, {"a": torch.ones(2)}, {"epoch": 2})
            self.file = safe_open(self.options[0], framework=self.options[1])
            return header

        def keys(self):
            return self.file.keys()

        def get_tensor(self, name):
            return self.file.get_tensor(name)

    monkeypatch.setattr(_checkpoint, "safe_open", Replaced)
    found = read_checkpoint(path)
    assert found.values["epoch"] == 2
    assert found.tensors["a"].tolist() == [1.0, 1.0]


def test_a_failed_write_leaves_the_old_checkpoint(tmp_path, monkeypatch):
    path = tmp_path / "c.safetensors"
    write_checkpoint(path, {"a": torch.ones(2)}, {"epoch": 1})
    monkeypatch.setattr(os, "replace", lambda *_: (_ for _ in ()).throw(OSError("disk gone")))
    with pytest.raises(OSError):
        write_checkpoint(path, {"a": torch.zeros(2)}, {"epoch": 2})
    assert read_checkpoint(path).values == {"epoch": 1} and read_checkpoint(path).tensors["a"].eq(1).all()


def test_a_full_disk_leaves_the_old_checkpoint_and_names_it(tmp_path):
    path = tmp_path / "c.safetensors"
    write_checkpoint(path, {"a": torch.ones(2)}, {"epoch": 1})
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1000, hard))  # the system refuses longer files
    try:
        with pytest.raises(OSError, match="File too large; the file was not written") as caught:
            write_checkpoint(path, {"a": torch.zeros(2000)}, {"epoch": 2})
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert caught.value.filename == str(path)
    assert read_checkpoint(path).values == {"epoch": 1} and os.listdir(tmp_path) == ["c.safetensors"]


def test_no_flipped_byte_of_a_checkpoint_changes_what_is_read(tmp_path):
    path = tmp_path / "c.safetensors"
    tensors = {"a": torch.randn(2, 3), "b": torch.tensor(True), "c": torch.ones(2, dtype=torch.bfloat16)}
    tensors["none"] = torch.ones(0, 3)
    write_checkpoint(path, tensors, {"epoch": 1, "history": [{"loss": float("nan")}]})
    whole, refused = path.read_bytes(), 0
    for place in range(len(whole)):
        path.write_bytes(whole[:place] + bytes([whole[place] ^ 1]) + whole[place + 1 :])
        try:
            saved = read_checkpoint(path)
        except InputError:
            refused += 1
            continue
        # The name of the checksum itself, for instance: nothing else was damaged.
        same(saved.tensors, tensors, rtol=0, atol=0)
        assert saved.values["epoch"] == 1 and str(saved.values["history"]) == "[{'loss': nan}]"
    assert refused > len(whole) - 20


def test_checkpoints_that_do_not_fit_the_networks_are_refused(tmp_path):
    path = tmp_path / "checkpoint.safetensors"
    fit(with_training(max_epochs=10), folder=tmp_path)
    saved = read_checkpoint(path)
    weight = next(name for name in saved.tensors if "/now/" in name)
    for broken, message in (
        (torch.ones(1), "float32 .1. instead of float32"),
        (saved.tensors[weight].long(), "int64 .* instead of float32"),
        (None, "is missing"),
    ):
        tensors = {name: value for name, value in saved.tensors.items() if name != weight}
        write_checkpoint(path, tensors if broken is None else {**tensors, weight: broken}, saved.values)
        with pytest.raises(InputError, match=f"tensors do not fit the model .{weight}.*{message}"):
            fit(folder=tmp_path)
    write_checkpoint(path, saved.tensors, {key: value for key, value in saved.values.items() if key != "stale"})
    with pytest.raises(InputError, match="is damaged .KeyError: 'stale'"):
        fit(folder=tmp_path)


def test_a_run_with_fewer_epochs_than_its_checkpoint_is_refused(tmp_path):
    fit(with_training(max_epochs=10), folder=tmp_path)
    with pytest.raises(InputError, match="has 10 epochs, more than the 6 of this run"):
        fit(with_training(max_epochs=6), folder=tmp_path)


def test_checkpoints_of_other_data_or_settings_are_refused(tmp_path):
    fit(with_training(max_epochs=10), folder=tmp_path)
    turned = [Data(x=g.x, edge_index=g.edge_index, y=(g.y + 1) % 3) for g in TRAIN]
    with pytest.raises(InputError, match="other seeds, settings, graphs"):
        fit(train=turned, folder=tmp_path)
    with pytest.raises(InputError, match="other seeds, settings, graphs"):
        fit(replace(RECIPE, node=PartOptions(learning_rate=1e-3)), folder=tmp_path)


def test_resumed_runs_know_which_replicas_have_left(tmp_path, monkeypatch):
    counts = presence(monkeypatch)
    whole = fit(LEAVING, seeds=SEEDS)
    half = 2 * next(number for number, count in enumerate(counts) if count < 5) + 2  # a replica has left by then
    stopped = replace(LEAVING, training=replace(LEAVING.training, max_epochs=half))
    fit(stopped, seeds=SEEDS, folder=tmp_path)
    assert len(read_checkpoint(tmp_path / "checkpoint.safetensors").values["present"]) < 5
    resumed = fit(LEAVING, seeds=SEEDS, folder=tmp_path)
    same(resumed.tensors(), whole.tensors(), rtol=0, atol=0)
    assert resumed.history == whole.history
