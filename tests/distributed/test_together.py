"""What processes send lies where their group takes it, and what one raises all raise."""

from types import SimpleNamespace

import pytest
import torch
import torch.distributed as dist
from distributed.in_parts import run_in_parts
from distributed.together_cases import RAISED, raised_by_all

from accord.distributed import Halo, _halo, _together
from accord.distributed._together import gather, largest, stage, total
from accord.distributed.tables import _routing
from accord.errors import ProcessLostError


class Values:
    """A tensor that tells where it was sent."""

    def __init__(self, device):
        self.is_cuda = device.startswith("cuda")

    def to(self, device):
        return str(device)

    def cpu(self):
        return "cpu"


@pytest.mark.parametrize(
    ("backend", "device", "wanted"),
    [("gloo", "cuda:1", "cpu"), ("gloo", "cpu", "cpu"), ("nccl", "cpu", "cuda:3"), ("nccl", "cuda:1", None)],
)
def test_values_are_staged_on_the_device_of_the_group(monkeypatch, backend, device, wanted):
    monkeypatch.setattr(dist, "get_backend", lambda group: backend)
    monkeypatch.setattr(torch.cuda, "current_device", lambda: 3)
    values = Values(device)
    assert stage(values) == (values if wanted is None else wanted)


class Staged(torch.Tensor):
    """What the helper returns in the next test."""


@pytest.fixture
def two(monkeypatch):
    """This process, as the first of two that are not there."""
    monkeypatch.setattr(dist, "is_initialized", lambda: True)
    monkeypatch.setattr(dist, "get_rank", lambda group: 0)
    monkeypatch.setattr(dist, "get_world_size", lambda group: 2)


def test_whatever_is_sent_was_staged(monkeypatch, two):
    sent = []
    for module in (_together, _halo, _routing):
        monkeypatch.setattr(module, "stage", lambda values, group: values.clone().as_subclass(Staged))
    monkeypatch.setattr(dist, "all_reduce", lambda values, *_, **__: sent.append(values))
    monkeypatch.setattr(dist, "all_to_all_single", lambda out, rows, *_, **__: sent.extend([out.zero_(), rows]))
    monkeypatch.setattr(dist, "P2POp", lambda _, values, **__: SimpleNamespace(tensor=values))
    monkeypatch.setattr(dist, "batch_isend_irecv", lambda moves: sent.extend(move.tensor for move in moves) or [])
    total(torch.ones(3))
    largest(1.0)
    Halo(2, [torch.tensor([], dtype=torch.long), torch.tensor([1])], [0, 1]).exchange(torch.zeros(3, 2))
    _routing.deliver([torch.zeros(2, 3)], torch.tensor([0, 1]))
    assert len(sent) == 8 and all(isinstance(values, Staged) for values in sent)


def test_a_connection_that_is_lost_says_what_to_do(monkeypatch, two):
    def closed(*_, **__):
        raise RuntimeError("Connection closed by peer\nand a trace")

    for name in ("all_reduce", "all_gather_object", "all_to_all_single"):
        monkeypatch.setattr(dist, name, closed)
    monkeypatch.setattr(dist, "get_backend", lambda group: "gloo")
    for call in (
        lambda: total(torch.ones(1)),
        lambda: largest(0.0),
        lambda: gather(1),
        lambda: _routing.route(torch.tensor([0])),
    ):
        with pytest.raises(ProcessLostError, match=r"process 0 of 2 lost another one: Connection closed by peer\. "):
            call()


def test_what_one_process_raises_all_raise():
    first, second = run_in_parts(raised_by_all, 2)
    for error, own, other in zip(RAISED, second, first, strict=True):
        assert own == (type(error).__name__, str(error), getattr(error, "errno", None))
        kind, text, code = other
        assert (kind, code) == (own[0], own[2])
        assert "(process 1)" in text and text.replace(" (process 1)", "") == own[1]
