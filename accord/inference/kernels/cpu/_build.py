"""Load CPU kernels: as a wheel brought them, or compiled at first use and kept in the user's cache.

The key of a cached library covers everything that it depends on: source, flags, compiler and CPU. If several processes
start at the same time, one compiles and the others wait for it. A library that is damaged, or that another user could
have written, is compiled again. A failure that took long leaves a note in the cache, so that the next process does not
wait for it again.
"""

import contextlib
import ctypes
import logging
import os
import platform
import shlex
import shutil
import signal
import subprocess
import time
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple

from accord._files import cache_folder, fingerprint
from accord._prebuilt import FLAGS, find_prebuilt
from accord.inference.kernels.cpu import _cache

log = logging.getLogger("accord.inference")

SOURCES = Path(__file__).parent / "native"
TUNING = ("-march=native", "-mcpu=native", None)  # the first that the compiler accepts: x86, ARM, anything
COMPILE_SECONDS = 300  # ten times the usual; a compiler that hangs must not block propagation
# A quicker failure is cheap to repeat, and may be resolved by installing something that the key does not cover.
QUICK_SECONDS = 5


class Library(NamedTuple):
    """What is compiled into one library."""

    name: str  # of the function that uses it; the main file is name.cpp
    folder: Path
    entry_points: tuple[str, ...]
    headers: tuple[Path, ...] = ()  # of other folders, that it includes


PROPAGATE = Library("propagate", SOURCES, ("accord_propagate_float32", "accord_propagate_float64"))


class BuildError(Exception):
    """The kernel could not be compiled or loaded; the message says why."""


@lru_cache(maxsize=16)
def load_library(library: Library = PROPAGATE) -> ctypes.CDLL:
    """The compiled kernel: as the wheel brought it, from the cache if it was built before, or compiled now.

    Raises:
        BuildError: there is no compiler, or it failed.
    """
    ready = find_prebuilt(library.name, library.folder)
    if ready is not None:
        with contextlib.suppress(BuildError):  # the system may be older than the one that it was compiled on
            return _open(ready, library.entry_points)
    compiler = find_compiler()
    files = sorted(library.folder.rglob("*.[ch]pp"))
    source = {path.relative_to(library.folder).as_posix(): path.read_bytes() for path in files}
    source |= {path.name: path.read_bytes() for path in library.headers if path.exists()}
    if f"{library.name}.cpp" not in source:
        raise BuildError(f"the kernel's source is not installed in {library.folder.name}")
    path = cache_folder() / "kernels" / f"{library.name}-{_key(compiler, source)}.so"
    try:
        _cache.make_private(path.parent)
        if _cache.flaw(path) is not None:
            with _cache.alone(path):
                why = _cache.flaw(path)  # another process may have compiled it in the meantime
                if why is not None:
                    log.info("%s: the compiled kernel %s %s.", library.name, path, why)
                    _compile_unless_noted(compiler, path, library)
    except OSError as error:
        raise BuildError(f"the compiled kernel cannot be kept in {path.parent}: {error}") from error
    try:
        return _open(path, library.entry_points)
    except BuildError:
        with contextlib.suppress(OSError):
            _cache.discard(path)  # so that the next process compiles it again
        raise


def _open(path: Path, entry_points: tuple[str, ...]) -> ctypes.CDLL:
    try:
        library = ctypes.CDLL(str(path))
        for name in entry_points:
            getattr(library, name)
    except (OSError, AttributeError) as error:
        raise BuildError(f"the compiled kernel {path} cannot be loaded: {error}") from error
    return library


def find_compiler() -> list[str]:
    """The C++ compiler and its arguments: $CXX, or the first usual name that is installed."""
    try:
        named = shlex.split(os.environ.get("CXX", ""))
    except ValueError as error:
        raise BuildError(f"$CXX ({os.environ['CXX']}) is not a command: {error}") from error
    for command in (named,) if named else (["c++"], ["g++"], ["clang++"]):
        if shutil.which(command[0]):
            return command
    raise BuildError(f"no C++ compiler was found ({named[0] if named else 'c++, g++ or clang++'})")


def _key(compiler: list[str], source: dict[str, bytes]) -> str:
    content = (part for item in source.items() for part in item)
    built_by = (*FLAGS, *map(str, TUNING), *compiler, _compiler_version(compiler))
    return fingerprint((*content, *built_by, platform.machine(), _cpu_features()))


def _compiler_version(compiler: list[str]) -> str:
    try:
        done = subprocess.run([*compiler, "--version"], capture_output=True, text=True, timeout=30)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise BuildError(f"{shlex.join(compiler)} cannot be run: {error}") from error
    return done.stdout


def _cpu_features() -> str:
    """Features of the CPU: machines that share a cache may need different code."""
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor()
    wanted = ("flags", "Features", "model name", "CPU part")
    return "\n".join(dict.fromkeys(line for line in lines if line.startswith(wanted)))


def _compile_unless_noted(compiler: list[str], path: Path, library: Library) -> None:
    note = path.with_suffix(".failed")
    again = f"delete {note} to try again"
    with contextlib.suppress(OSError):
        raise BuildError(f"{note.read_text()}; {again}")
    begun = time.monotonic()
    try:
        _compile(compiler, path, library)
    except BuildError as error:  # an interrupt leaves no note
        if time.monotonic() - begun < QUICK_SECONDS:
            raise
        with contextlib.suppress(OSError):
            note.write_text(str(error))
        raise BuildError(f"{error}; {again}") from error


def _compile(compiler: list[str], path: Path, library: Library) -> None:
    # A warning, so that users see why the first call takes long.
    log.warning(
        "%s: compiling the fast CPU kernel, once on this machine (usually 5 to 60 seconds, at most %s).",
        library.name,
        COMPILE_SECONDS,
    )
    try:
        with _cache.keep(path) as built:
            for tuning in TUNING:
                flags = [*FLAGS, tuning] if tuning else [*FLAGS]
                flags += [f"-I{folder}" for folder in sorted({str(path.parent) for path in library.headers})]
                status, errors = _run(
                    [*compiler, *flags, str(library.folder / f"{library.name}.cpp"), "-o", str(built)]
                )
                if status == 0:
                    return
            reason = (errors.strip().splitlines() or ["no message"])[-1]
            raise BuildError(f"{shlex.join(compiler)} failed: {reason}")
    except subprocess.TimeoutExpired as error:
        raise BuildError(f"{shlex.join(compiler)} took more than {COMPILE_SECONDS} seconds") from error
    except OSError as error:
        raise BuildError(f"compiling it in {path.parent} failed: {error}") from error


def _run(command: list[str]) -> tuple[int, str]:
    """Exit status and error output. Has its own session, so that all processes of a compiler are stopped together."""
    with subprocess.Popen(
        command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, start_new_session=True
    ) as process:
        try:
            _, errors = process.communicate(timeout=COMPILE_SECONDS)
        except BaseException:
            with contextlib.suppress(OSError):  # it may have ended already
                os.killpg(process.pid, signal.SIGKILL)
            raise
    return process.returncode, errors
