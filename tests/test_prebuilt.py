"""Kernels that a wheel brings compiled are loaded where they fit, and only there."""

import json
import shutil

import pytest

from accord import _prebuilt
from accord.inference.kernels.cpu import _build
from accord.inference.kernels.cpu import _solve as _native

LEVEL = "x86-64-v3"


@pytest.fixture
def brought(tmp_path, monkeypatch):
    """A folder as a wheel brings it, with a kernel of this machine as that of one level."""
    if _native.unavailable() is not None:
        pytest.skip("no compiled kernel")
    built = _build.load_library()._name
    folder = tmp_path / "_libraries"
    folder.mkdir()
    path = folder / _prebuilt.library_name("propagate", LEVEL)
    shutil.copyfile(built, path)
    entry = {"sources": _prebuilt.fingerprint_sources(_build.SOURCES), "levels": {LEVEL: _prebuilt.checksum(path)}}
    (folder / _prebuilt.MANIFEST).write_text(json.dumps({"propagate": entry}))
    monkeypatch.setattr(_prebuilt, "FOLDER", folder)
    monkeypatch.setattr(_prebuilt, "fitting_levels", lambda: ["x86-64-v4", LEVEL, "x86-64-v2"])
    return path


def found():
    return _prebuilt.find_prebuilt("propagate", _build.SOURCES)


def test_a_library_that_fits_is_loaded_without_a_compiler(brought, monkeypatch, tmp_path):
    monkeypatch.setenv("CXX", "/nonexistent")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    assert found() == brought
    assert _build.load_library.__wrapped__(_build.PROPAGATE)._name == str(brought)


def test_a_library_that_this_system_cannot_open_is_passed_over(brought, monkeypatch):
    brought.write_bytes(b"not a library")
    manifest = brought.parent / _prebuilt.MANIFEST
    entry = json.loads(manifest.read_text())
    entry["propagate"]["levels"][LEVEL] = _prebuilt.checksum(brought)
    manifest.write_text(json.dumps(entry))
    assert found() == brought
    assert _build.load_library.__wrapped__(_build.PROPAGATE)._name != str(brought)


def test_stale_damaged_and_missing_libraries_are_not_found(brought, monkeypatch, tmp_path):
    other = tmp_path / "native"
    shutil.copytree(_build.SOURCES, other)
    assert _prebuilt.find_prebuilt("propagate", other) == brought
    (other / "propagate.cpp").write_text("// changed")
    assert _prebuilt.find_prebuilt("propagate", other) is None
    assert _prebuilt.find_prebuilt("maximise", _build.SOURCES) is None
    monkeypatch.setattr(_prebuilt, "fitting_levels", lambda: ["x86-64-v2"])
    assert found() is None
    monkeypatch.setattr(_prebuilt, "fitting_levels", lambda: [LEVEL])
    brought.write_bytes(brought.read_bytes()[:-1])
    assert found() is None
    brought.unlink()
    assert found() is None
    (brought.parent / _prebuilt.MANIFEST).write_text("[]")
    assert found() is None


@pytest.mark.parametrize(
    ("flags", "levels"),
    [
        ([_prebuilt.LEVELS["x86-64-v4"]] * 2, ["x86-64-v4", "x86-64-v3", "x86-64-v2"]),
        ([_prebuilt.LEVELS["x86-64-v3"]], ["x86-64-v3", "x86-64-v2"]),
        ([_prebuilt.LEVELS["x86-64-v4"], _prebuilt.LEVELS["x86-64-v2"]], ["x86-64-v2"]),
        ([["sse2"]], []),
        ([], []),
    ],
)
def test_levels_are_those_that_all_cores_have(monkeypatch, flags, levels):
    cpuinfo = "".join(f"processor\t: {core}\nflags\t\t: fpu {' '.join(had)}\n" for core, had in enumerate(flags))
    monkeypatch.setattr(_prebuilt.sys, "platform", "linux")
    monkeypatch.setattr(_prebuilt.platform, "libc_ver", lambda: ("glibc", "2.36"))
    monkeypatch.setattr(_prebuilt.platform, "machine", lambda: "x86_64")
    monkeypatch.setattr(_prebuilt.Path, "read_text", lambda path: cpuinfo)
    assert _prebuilt.fitting_levels() == levels
    monkeypatch.setattr(_prebuilt.platform, "machine", lambda: "aarch64")
    assert _prebuilt.fitting_levels() == ["generic"]
    monkeypatch.setattr(_prebuilt.platform, "libc_ver", lambda: ("", ""))
    assert _prebuilt.fitting_levels() == []
