"""The CPU kernel is compiled at first use; if that fails, the library works without it."""

import logging
import subprocess
import sys
import time

import pytest
from inference.kernel_cases import problem_of, random_field

from accord import propagate
from accord.errors import OptionError
from accord.inference.kernels import choose_kernel
from accord.inference.kernels.cpu import _build as _native_build
from accord.inference.kernels.cpu import _solve as _native


@pytest.fixture
def elsewhere(tmp_path, monkeypatch):
    """An empty cache: nothing has been compiled yet."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    _native_build.load_library.cache_clear()
    _native.unavailable.cache_clear()
    yield tmp_path
    _native_build.load_library.cache_clear()
    _native.unavailable.cache_clear()


@pytest.mark.parametrize("compiler", ["no-such-compiler", "false"])
def test_without_a_compiler_auto_falls_back_with_one_warning(elsewhere, monkeypatch, caplog, compiler):
    monkeypatch.setenv("CXX", compiler)
    problem = problem_of(random_field(6, 8, 3))
    with caplog.at_level(logging.WARNING, logger="accord"):
        assert choose_kernel("auto", problem)[0] == choose_kernel("auto", problem)[0] == "reference"
    assert sum("not available" in record.message and compiler in record.message for record in caplog.records) == 1
    with pytest.raises(OptionError, match=r"install a C\+\+ compiler"):
        propagate(random_field(6, 8, 3), backend="native")


def test_a_compiler_variable_that_is_no_command_makes_the_kernel_unavailable(elsewhere, monkeypatch):
    monkeypatch.setenv("CXX", 'g++ "-O3')
    assert "$CXX" in _native.unavailable()


def test_a_cache_that_cannot_be_written_makes_the_kernel_unavailable(elsewhere):
    (elsewhere / "accord").write_text("not a folder")
    assert _native.unavailable() is not None


@pytest.fixture
def slow_compiler(elsewhere, monkeypatch):
    """A fake compiler that prints no version, logs each call, and then runs a given shell command."""

    def make(does):
        script = elsewhere / "compiler"
        script.write_text(
            f'#!/bin/sh\n[ "$1" = --version ] && exit\necho called >>{elsewhere}/calls\ncd {elsewhere}\n{does}\n'
        )
        script.chmod(0o755)
        monkeypatch.setenv("CXX", str(script))
        monkeypatch.setattr(_native_build, "QUICK_SECONDS", 0)
        return script

    return make


def calls(folder):
    """How often the compiler was run, and the error, as seen by a new process."""
    _native_build.load_library.cache_clear()
    with pytest.raises(_native_build.BuildError) as error:
        _native_build.load_library()
    return len((folder / "calls").read_text().split()), str(error.value)


def test_a_slow_failure_is_not_repeated_until_its_note_is_deleted(elsewhere, slow_compiler):
    compiler = slow_compiler("echo cannot >&2; exit 1")
    first = calls(elsewhere)
    assert first[0] == len(_native_build.TUNING)
    assert calls(elsewhere) == first
    (note,) = elsewhere.glob("accord/kernels/*.failed")
    assert first[1].endswith(f"failed: cannot; delete {note} to try again")
    note.unlink()
    assert calls(elsewhere)[0] == 2 * first[0]
    compiler.write_text(compiler.read_text().replace("&& exit", "&& echo 2.0 && exit"))
    assert calls(elsewhere)[0] == 3 * first[0]  # another version of the compiler is tried again


def test_a_compiler_that_takes_too_long_is_stopped_with_its_children(elsewhere, slow_compiler, monkeypatch):
    slow_compiler("(sleep 1; echo late >late) & wait")
    monkeypatch.setattr(_native_build, "COMPILE_SECONDS", 0.3)
    first = calls(elsewhere)
    assert first[0] == 1 and "took more than 0.3 seconds; delete" in first[1]
    assert calls(elsewhere) == first
    time.sleep(1.2)
    assert not (elsewhere / "late").exists()


def test_quick_failures_and_interrupts_leave_no_note(elsewhere, slow_compiler, monkeypatch):
    slow_compiler("exit 1")
    monkeypatch.setattr(_native_build, "QUICK_SECONDS", 60)
    assert calls(elsewhere)[0] < calls(elsewhere)[0]

    def interrupt(command):
        raise KeyboardInterrupt

    monkeypatch.setattr(_native_build, "QUICK_SECONDS", 0)
    monkeypatch.setattr(_native_build, "_run", interrupt)
    with pytest.raises(KeyboardInterrupt):
        _native_build.load_library()
    assert {path.suffix for path in elsewhere.glob("accord/kernels/*")} <= {".lock"}


def test_a_broken_library_makes_the_kernel_unavailable(elsewhere, monkeypatch):
    def write_nonsense(compiler, path, library):
        path.write_text("not a library")

    monkeypatch.setattr(_native_build, "_compile", write_nonsense)
    monkeypatch.setattr(_native_build, "find_compiler", lambda: [sys.executable])
    assert "cannot be loaded" in _native.unavailable()


def test_importing_does_not_compile():
    code = "import accord, os; print(os.path.exists(os.environ['XDG_CACHE_HOME'] + '/accord'))"
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, env={"XDG_CACHE_HOME": "/nonexistent"}
    )
    assert done.stdout.strip() == "False"
