"""Freed memory is used again during training and returned to the system afterwards."""

import subprocess
import sys

import pytest
import torch

from accord.learning.training import _settings
from accord.learning.training._settings import kept_memory

CPU = torch.device("cpu")

MEASURE = """
import resource, torch
from accord.learning.training import kept_memory

PAGE = resource.getpagesize()

def faults(mebibytes):
    "Of eight tensors, allocated and freed in turn, how many had their pages mapped anew."
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    for _ in range(8):
        torch.ones(mebibytes * 2**18)
    return (resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before) * PAGE / (mebibytes * 2**20)

def resident():
    return int(open("/proc/self/statm").read().split()[1]) * PAGE / 2**20

held = [resident()]
print(faults(64))
with kept_memory(torch.device("cpu")):
    print(faults(64), faults(256))
    held.append(resident())
print(held[1] - held[0], resident() - held[0])
"""


@pytest.mark.skipif(_settings._glibc() is None, reason="other allocators are left alone")
def test_freed_memory_is_used_again_and_returned():
    """In a new process, whose heap is still small."""
    done = subprocess.run([sys.executable, "-c", MEASURE], capture_output=True, text=True, check=True)
    usual, kept, very_large, held, left = map(float, done.stdout.split())
    assert usual > 7.5, "by default each tensor is mapped anew; otherwise this test shows nothing"
    assert kept < 3.5, "the first tensor, and once or twice a block that has been split"
    assert very_large > 7.5, "very large tensors are mapped as by default"
    assert held > 60 and left < 32, "MiB that the process keeps, and MiB left at the end"


def test_other_devices_and_libraries_are_not_changed(monkeypatch):
    def no_call(*_):
        raise AssertionError("mallopt must not be called")

    monkeypatch.setattr(_settings, "_glibc", lambda: type("Library", (), {"mallopt": no_call, "malloc_trim": no_call}))
    with kept_memory(torch.device("meta")):
        pass
    monkeypatch.setattr(_settings, "_glibc", lambda: None)
    with kept_memory(CPU):
        pass


def test_settings_are_restored_after_an_error():
    calls = []

    class Library:
        def mallopt(self, name, value):
            calls.append((name, value))

        def malloc_trim(self, pad):
            calls.append(("trim", pad))

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(_settings, "_glibc", Library)
        with pytest.raises(ZeroDivisionError), kept_memory(CPU):
            1 / 0  # noqa: B018
    assert calls[0] == (_settings.MMAP_THRESHOLD, _settings.KEPT) and calls[-1] == ("trim", 0)
    assert (_settings.MMAP_THRESHOLD, _settings.USUAL) in calls
