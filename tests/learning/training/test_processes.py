"""Several processes that share every batch train what one process trains."""

import shutil
from pathlib import Path

import pytest
import torch
from learning.process_cases import CASES, EPOCHS, train, train_together
from support.matrix import matrix
from torch.testing import assert_close

from accord.errors import OptionError
from accord.learning import TrainingOptions
from accord.learning.training import read_checkpoint
from accord.learning.training.processes import _group
from accord.methods import METHODS

CLOSE = {"rtol": 1e-5, "atol": 1e-5}


@pytest.fixture(scope="module")
def alone(tmp_path_factory):
    """Every case trained by one process: its models by name, and the folder of their checkpoints."""
    folder = tmp_path_factory.mktemp("alone")
    return {name: train(name, folder) for name in CASES}, folder


@pytest.fixture(scope="module", params=[2, matrix(4)], ids=["two processes", "four processes"])
def together(request, tmp_path_factory):
    folder = tmp_path_factory.mktemp("together")
    train_together(CASES, folder, request.param)
    return folder, request.param


def same_numbers(left, right):
    assert left.keys() == right.keys()
    for name, value in left.items():
        assert_close(value, right[name], equal_nan=True, **CLOSE, msg=lambda text, name=name: f"{name}: {text}")


@pytest.mark.parametrize("name", CASES)
def test_processes_train_what_one_trains(alone, together, name):
    """Weights, Adam's averages, losses and choices, after 20 updates of every stage, with dropout."""
    (models, before), (folder, count) = alone, together
    ended = [read_checkpoint(folder / f"{rank}.{name}") for rank in range(count)]
    assert ended[0].values["world"] == str(count)
    for other in ended[1:]:  # all processes end with the same bits
        assert all(torch.equal(value, other.tensors[key]) for key, value in ended[0].tensors.items())
        assert other.values["choice"] == ended[0].values["choice"]
    same_numbers(models[name].tensors(), ended[0].tensors)
    for row, other in zip(models[name].history, ended[0].values["history"], strict=True):
        assert row == pytest.approx(other, abs=1e-6, nan_ok=True)
    stages = sorted(path.relative_to(before) for path in Path(before, name).rglob("checkpoint.safetensors"))
    assert len(stages) == {"gmnn": 3, "refined": 2, "order 3": 3}.get(name, 1)
    for stage in stages:
        one, many = read_checkpoint(before / stage), read_checkpoint(folder / stage)
        assert one.values["epoch"] == EPOCHS and one.values.keys() == many.values.keys()
        assert one.values["data"] == many.values["data"]
        same_numbers(one.tensors, many.tensors)


def test_every_method_is_a_case():
    assert {method for method, _ in CASES.values()} == set(METHODS.values())


RESUMED = ("gnn", "shared", "gmnn")  # one part, two parts with one encoder, several stages
HALF = 3  # epochs


@pytest.fixture(scope="module")
def interrupted(tmp_path_factory):
    """Checkpoints that one process wrote, and that two wrote."""
    one, two = tmp_path_factory.mktemp("one"), tmp_path_factory.mktemp("two")
    for name in RESUMED:
        train(name, one, epochs=HALF)
    train_together(RESUMED, two, 2, HALF)
    return one, two


@pytest.mark.parametrize("count", [1, matrix(4)])
def test_a_run_of_two_processes_goes_on_with_another_number(interrupted, tmp_path, count):
    before, there = interrupted
    expected, here = (shutil.copytree(there if place else before, tmp_path / str(place)) for place in range(2))
    whole = {name: train(name, expected) for name in RESUMED}
    if count > 1:
        train_together(RESUMED, here, count)
    for name in RESUMED:
        found = train(name, here).tensors() if count == 1 else read_checkpoint(here / f"0.{name}").tensors
        same_numbers(whole[name].tensors(), found)
        stages = sorted(path.relative_to(expected) for path in Path(expected, name).rglob("checkpoint.safetensors"))
        for stage in stages:
            one, many = read_checkpoint(expected / stage), read_checkpoint(here / stage)
            assert one.values["epoch"] == many.values["epoch"] == EPOCHS
            same_numbers(one.tensors, many.tensors)


@pytest.mark.parametrize("accelerator", ["auto", "cuda"])
def test_more_processes_than_gpus_are_refused(monkeypatch, accelerator):
    for name, value in {"RANK": 0, "LOCAL_RANK": 0, "WORLD_SIZE": 2, "MASTER_ADDR": "::1", "MASTER_PORT": 1}.items():
        monkeypatch.setenv(name, str(value))
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 1)
    with pytest.raises(OptionError, match=r"torch finds 1 on this one. Give --devices 1, or --accelerator cpu"):
        _group.make_fabric(TrainingOptions(devices=2, accelerator=accelerator))
    _group._check_gpus(TrainingOptions(devices=2, accelerator="cpu"))
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 2)
    _group._check_gpus(TrainingOptions(devices=2, accelerator=accelerator))
