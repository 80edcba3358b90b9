"""A library is loaded from the cache only if it is whole and nobody else could have written it."""

import os
import stat

import pytest
from support.separate_process import run_separately

from accord.inference.kernels.cpu import _build, _cache
from accord.inference.kernels.cpu import _solve as _native

pytestmark = pytest.mark.skipif(_native.unavailable() is not None, reason="no compiled kernel")
NOBODY = 65534

SOLVE = """
import os, pathlib, shutil, torch
from accord import PairwiseField, propagate
from accord.inference.kernels.cpu import _build
path = _build.cache_folder() / "kernels"
calls = path.parent / "calls"
def solve():
    field = PairwiseField(torch.tensor([[0], [1]]), torch.ones(2, 3), torch.zeros(1, 3, 3))
    return propagate(field, backend="native").backend, len(calls.read_text().split())
"""


@pytest.fixture
def compiler(tmp_path, monkeypatch):
    """A fake compiler that copies the kernel that was built before, and logs its calls; and an empty cache."""
    script, cache = tmp_path / "compiler", tmp_path / "accord"
    cache.mkdir()
    built = _build.load_library()._name
    script.write_text(
        f'#!/bin/sh\n[ "$1" = --version ] && exit\necho called >>{cache}/calls\nsleep 0.2\n'
        f'for last; do :; done\ncp {built} "$last"\n'
    )
    script.chmod(0o755)
    monkeypatch.setenv("CXX", str(script))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    return cache


@pytest.fixture
def library(tmp_path):
    """A library in a private folder, with its checksum."""
    path = tmp_path / "kernels" / "propagate-0.so"
    _cache.make_private(path.parent)
    with _cache.keep(path) as beside:
        beside.write_bytes(b"library")
    assert _cache.flaw(path) is None
    return path


def test_damaged_and_foreign_libraries_are_built_again(compiler):
    code = """
print(outcome(solve))
(library,) = path.glob("*.so")
whole = library.read_bytes()
import _ctypes
damages = [whole[:0], whole[:100], whole[: len(whole) // 2], whole[:-5000], whole[:5000] + bytes(len(whole) - 5000)]
for content in (*damages, pathlib.Path(_ctypes.__file__).read_bytes(), b"not a library"):
    library.unlink()
    library.write_bytes(content)
    print(outcome(solve))
library.chmod(0o777)  # whole, but anybody could have planted it
print(outcome(solve))
"""
    assert run_separately(SOLVE + code) == [f"('native', {count})" for count in range(1, 10)]


def test_eight_processes_compile_once(compiler):
    code = """
children = []
for _ in range(8):
    children.append(os.fork())
    if not children[-1]:
        _build.load_library()
        os._exit(0)
print([os.waitpid(child, 0)[1] for child in children], calls.read_text().split())
"""
    assert run_separately(SOLVE + code) == ["[0, 0, 0, 0, 0, 0, 0, 0] ['called']"]


def test_a_library_that_others_may_write_is_not_loaded(library):
    for mode in (0o720, 0o702, 0o777):
        library.chmod(mode)
        assert "another user" in _cache.flaw(library)
    library.chmod(0o755)
    assert _cache.flaw(library) is None


def test_a_link_is_not_loaded(library):
    library.rename(library.with_name("other"))
    library.symlink_to("other")
    assert "another user" in _cache.flaw(library)


def test_a_library_without_its_checksum_is_not_loaded(library):
    library.with_suffix(".sha256").write_bytes(b"\xff\xfe")
    assert _cache.flaw(library) is not None
    library.with_suffix(".sha256").unlink()
    assert _cache.flaw(library) == "has no checksum"
    library.unlink()
    assert _cache.flaw(library) == "is missing"


def test_a_library_is_private_whatever_the_umask(library):
    before = os.umask(0)
    try:
        with _cache.keep(library) as beside:
            beside.write_bytes(b"another library")
        assert _cache.flaw(library) is None
    finally:
        os.umask(before)


def test_a_library_is_on_the_disk_before_it_gets_its_name(library, monkeypatch):
    """Otherwise a crash of the machine could leave an empty file under the name of a whole one."""
    calls = []
    for name in ("fsync", "replace"):
        original = getattr(os, name)
        monkeypatch.setattr(os, name, lambda *given, name=name, call=original: (calls.append(name), call(*given))[1])
    with _cache.keep(library) as beside:
        beside.write_bytes(b"another library")
    assert calls == ["fsync", "replace"] * 2  # the library, then its checksum


def test_what_a_killed_process_left_is_removed(library):
    left = library.with_name(f".{library.name}.12345")
    left.mkdir()
    (left / "new").write_bytes(b"part of a library")
    _cache.discard(library)
    assert not list(library.parent.glob("*.so")) and not left.exists()


def test_others_lose_the_right_to_write_in_the_folder(library):
    library.parent.chmod(0o777)
    _cache.make_private(library.parent)
    assert stat.S_IMODE(library.parent.stat().st_mode) == 0o755


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() != 0, reason="only root can give files away")
def test_what_belongs_to_another_user_is_not_loaded(library, monkeypatch):
    os.chown(library, NOBODY, NOBODY)
    assert "another user" in _cache.flaw(library)
    os.chown(library.parent, NOBODY, NOBODY)
    with pytest.raises(OSError, match="belongs to another user"):
        _cache.make_private(library.parent)
