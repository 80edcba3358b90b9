"""Freed memory is used again while networks train, and given back afterwards."""

import pytest
import torch

from accord.learning import _allocation
from accord.learning._allocation import kept_memory

resource = pytest.importorskip("resource")
CPU = torch.device("cpu")
PAGES = 2**26 // resource.getpagesize()  # of a tensor that glibc would map anew each time


def faults_of(rounds: int) -> int:
    """Pages that the system had to find while tensors of 64 MiB came and went."""
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    for _ in range(rounds):
        torch.ones(2**24)
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before


def resident_bytes() -> int:
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * resource.getpagesize()


@pytest.mark.skipif(_allocation._glibc() is None, reason="other allocators are left alone")
def test_freed_memory_is_used_again_and_given_back():
    before = resident_bytes()
    with kept_memory(CPU):
        torch.ones(2**24)
        assert faults_of(8) < 3 * PAGES, "of eight; a block may be cut once or twice before it fits"
        assert resident_bytes() - before > 2**25, "or nothing was kept"
    assert resident_bytes() - before < 2**25
    assert faults_of(8) > 4 * PAGES, "or the test shows nothing: as before, each is mapped anew"


def test_other_devices_and_libraries_are_left_alone(monkeypatch):
    def no_call(*_):
        raise AssertionError("nothing to be told")

    monkeypatch.setattr(
        _allocation, "_glibc", lambda: type("Library", (), {"mallopt": no_call, "malloc_trim": no_call})
    )
    with kept_memory(torch.device("meta")):
        pass
    monkeypatch.setattr(_allocation, "_glibc", lambda: None)
    with kept_memory(CPU):
        pass


def test_settings_are_put_back_after_an_error():
    calls = []

    class Library:
        def mallopt(self, name, value):
            calls.append((name, value))

        def malloc_trim(self, pad):
            calls.append(("trim", pad))

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(_allocation, "_glibc", Library)
        with pytest.raises(ZeroDivisionError), kept_memory(CPU):
            1 / 0  # noqa: B018
    assert calls[0] == (_allocation.MMAP_MAX, 0) and calls[-1] == ("trim", 0)
    assert (_allocation.MMAP_MAX, _allocation.MAPPINGS) in calls
