"""Calls of `accord` in forked processes, which can be killed at a moment that a seed repeats.

Importing torch takes seconds. A forked process starts with everything imported, so that an attack can kill a command
every second. Plots take most of the time of a small fit: every command but `report` writes small stand-ins for them.
"""

import hashlib
import os
import signal
import sys
import time
import traceback
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path

LIMIT_SECONDS = 120.0
CHANGES = {"os.rename", "os.remove", "os.mkdir", "os.rmdir", "os.chmod", "os.truncate", "os.link", "os.symlink"}
WRITING = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC
PLOTS = ("draw_case", "draw_curves", "draw_reliability")  # names in accord.app.commands.report
PNG = b"\x89PNG\r\n\x1a\n"


@dataclass(frozen=True)
class Answer:
    """What a command did.

    Attributes:
        code: exit code; minus the signal if a signal ended it.
        out: its standard output.
        err: its standard error.
        changes: how often it opened a file for writing, renamed, removed; -1 if it was killed.
        seconds: how long it ran.
        hung: whether it was stopped because it took too long.
    """

    code: int
    out: str
    err: str
    changes: int
    seconds: float
    hung: bool = False

    @property
    def killed(self) -> bool:
        return self.code == -signal.SIGKILL and not self.hung

    @property
    def refused(self) -> bool:
        """Whether it ended with exit code 2 and one line that says why."""
        lines = self.err.strip().splitlines()
        errors = [line for line in lines if line.startswith("Error: ")]
        return self.code == 2 and len(errors) == 1 and lines[-1] == errors[0] and "Traceback" not in self.err

    def describe(self) -> str:
        if self.hung:
            return f"no answer in {LIMIT_SECONDS:.0f} s"
        told = [line for line in self.err.strip().splitlines() if line.strip()]
        place = [line.strip() for line in told if "accord/" in line and line.strip().startswith("File ")]
        return f"exit code {self.code}: {' | '.join([*place[-2:], *told[-1:]])[:600]}"


def load_everything() -> None:
    """Import what commands need, so that forked processes find it imported."""
    sys.dont_write_bytecode = True
    import torch

    torch.set_num_threads(1)  # a thread pool would not survive the fork
    import matplotlib.pyplot  # noqa: F401
    import scipy.stats  # noqa: F401

    import accord.app.cli
    import accord.app.commands.demo
    import accord.app.commands.evaluate
    import accord.app.commands.fit
    import accord.app.commands.predict
    import accord.app.commands.report
    import accord.app.commands.reproduce  # noqa: F401

    with suppress(ImportError):
        import_module("typer._adapters")  # typer imports it when it parses the first path or number


def run_command(
    arguments: Sequence[str],
    folder: Path,
    kill_at_change: int | None = None,
    kill_after: float | None = None,
    before: Callable[[], None] | None = None,
) -> Answer:
    """Run `accord` with these arguments in a forked process.

    Args:
        arguments: of the command line.
        folder: for the files that keep its output.
        kill_at_change: kill it right before its change of that number to the disk.
        kill_after: kill it after so many seconds.
        before: called in the forked process first.
    """
    out, err, changes = (folder / name for name in ("out.txt", "err.txt", "changes.txt"))
    for path in (out, err):
        path.touch()  # a command may be killed before it has opened them
    changes.unlink(missing_ok=True)
    sys.stdout.flush()
    began = time.monotonic()
    child = os.fork()
    if child == 0:
        _become_command(arguments, out, err, changes, kill_at_change, before)
    code, hung = _wait(child, began, kill_after)
    return Answer(
        code,
        out.read_text(errors="replace"),
        err.read_text(errors="replace"),
        int(changes.read_text()) if changes.is_file() else -1,
        time.monotonic() - began,
        hung,
    )


def _wait(child: int, began: float, kill_after: float | None) -> tuple[int, bool]:
    hung = False
    while True:
        ended, status = os.waitpid(child, os.WNOHANG)
        if ended:
            return os.waitstatus_to_exitcode(status), hung
        spent = time.monotonic() - began
        hung = spent > LIMIT_SECONDS
        if hung or (kill_after is not None and spent >= kill_after):
            os.kill(child, signal.SIGKILL)
            return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), hung
        time.sleep(0.002)


def _become_command(
    arguments: Sequence[str],
    out: Path,
    err: Path,
    changes: Path,
    kill_at_change: int | None,
    before: Callable[[], None] | None,
) -> None:
    """Never returns."""
    code = 1
    seen = 0
    active = True

    def watch(event: str, details: tuple[object, ...]) -> None:
        nonlocal seen
        if not active or not (event in CHANGES or (event == "open" and _opens_to_write(details))):
            return
        seen += 1
        if seen == kill_at_change:
            os.kill(os.getpid(), signal.SIGKILL)

    try:
        for number, path in ((1, out), (2, err)):
            opened = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o644)
            os.dup2(opened, number)
            os.close(opened)
        os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
        if before is not None:
            before()
        from accord.app.cli import app

        if arguments[0] != "report":
            replace_plots()
        sys.addaudithook(watch)
        app(list(arguments))
        code = 0
    except SystemExit as stop:
        code = stop.code if isinstance(stop.code, int) else 0 if stop.code is None else 1
    except BaseException:
        traceback.print_exc()
    finally:
        active = False
        try:
            sys.stdout.flush()
            sys.stderr.flush()
            changes.write_text(str(seen))
        finally:
            os._exit(code)


def replace_plots() -> None:
    """Instead of plots, write a checksum of what would be drawn: it differs where a plot would differ."""
    from accord.app.commands import report

    for name in PLOTS:
        setattr(report, name, lambda *drawn: PNG + hashlib.sha256(repr(drawn).encode()).digest())


def _opens_to_write(details: tuple[object, ...]) -> bool:
    path, mode, flags = details
    if isinstance(path, (str, bytes)) and os.fspath(path) in (os.devnull, os.fsencode(os.devnull)):
        return False
    return bool(isinstance(flags, int) and flags & WRITING)
