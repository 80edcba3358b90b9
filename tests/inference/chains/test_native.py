"""The compiled kernel for chains: its key covers its sources, and failures are told."""

import re

import pytest
import torch

from accord import ChainField
from accord.inference.chains import _native, solve_chains


def test_every_included_file_is_part_of_the_key():
    own = sorted(_native.CHAINS.folder.glob("*.[ch]pp"))
    included = {name for path in own for name in re.findall(r'#include "(.+)"', path.read_text())}
    assert included <= {path.name for path in (*own, *_native.CHAINS.headers)}
    assert all(path.exists() for path in _native.CHAINS.headers)


def test_running_out_of_memory_is_told(monkeypatch):
    monkeypatch.setattr(_native, "load_library", lambda library: _Broken())
    if _native.unavailable() is not None:
        pytest.skip("no compiler")
    with pytest.raises(MemoryError, match="ran out of memory with 2 chains of 3 positions"):
        solve_chains(ChainField(torch.zeros(2, 3, 4), torch.zeros(4, 4)), "sum")


class _Broken:
    def __getattr__(self, name):
        return (lambda: 16) if "lanes" in name else (lambda arguments: _native.OUT_OF_MEMORY)
