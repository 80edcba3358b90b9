"""Several processes for one command: found where a launcher has started them, else started here on this machine."""

import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from typing import IO

from accord._launched import free_port, launched_devices
from accord.app.console import LOST_PROCESS
from accord.app.settings import FitSettings
from accord.errors import OptionError

PATIENCE = 10.0  # seconds for the other processes to notice that one has failed, before they are ended
PAUSE = 0.1  # seconds between looks at the processes


def with_processes(settings: FitSettings) -> FitSettings:
    """Settings with the processes of the launcher, if there is one; others that are given are refused then."""
    found = launched_devices()
    if found is None or (found == (1, 1) and (settings.devices or 1) * (settings.nodes or 1) == 1):
        return settings
    wanted = (settings.devices or found[0], settings.nodes or found[1])
    if wanted != found:
        raise OptionError(
            f"--devices {wanted[0]} --nodes {wanted[1]}: the launcher has started {found[0]} processes on each of "
            f"{found[1]} machines. Leave out both options: the launcher decides."
        )
    return replace(settings, devices=found[0], nodes=found[1])


def is_to_launch(settings: FitSettings) -> bool:
    """Whether several processes are wanted and nobody has started them."""
    return launched_devices() is None and (settings.devices or 1) * (settings.nodes or 1) > 1


def launch(settings: FitSettings, command: Sequence[str]) -> int:
    """Run a command in as many processes of this machine as the settings ask for; returns their exit code.

    The first process has this terminal. Others are silent; what one of them wrote is shown if it was the first to fail.
    When a process fails, the others are ended.
    """
    count = settings.devices or 1
    if (settings.nodes or 1) > 1:
        raise OptionError(
            f"--nodes {settings.nodes}: a command can start processes on its own machine only. Run this on each "
            f"machine: torchrun --nnodes {settings.nodes} --nproc-per-node {count} --rdzv-backend c10d --rdzv-endpoint "
            "FIRST_MACHINE:29500 -m -- accord fit ..."
        )
    with ExitStack() as stack:
        stack.enter_context(_ended_together())
        logs = [stack.enter_context(tempfile.TemporaryFile()) for _ in range(count - 1)]
        started: list[subprocess.Popen[bytes]] = []
        stack.callback(_end, started)
        for rank, environment in enumerate(_environments(count)):
            own: dict[str, int | IO[bytes]] = {"stdout": subprocess.DEVNULL, "stderr": logs[rank - 1]} if rank else {}
            started.append(subprocess.Popen(command, env=environment, **own))  # type: ignore[call-overload]
        failed = _wait(started)
        if failed is None:
            return 0
        _end(started)
        code = started[failed].returncode
        first = started[0].returncode
        # The first process has shown its own error. It has not where another one failed, or both for the same reason.
        if failed and (first in (0, LOST_PROCESS) or first < 0):
            logs[failed - 1].seek(0)
            shutil.copyfileobj(logs[failed - 1], sys.stderr.buffer)
            sys.stderr.flush()
        if code < 0:
            print(f"Error: process {failed} was ended by {_signal_name(-code)}.", file=sys.stderr)
        return code if code > 0 else 128 - code


def _environments(count: int) -> Iterator[Mapping[str, str]]:
    """The environment of each process, as torchrun would set it."""
    threads = os.environ.get("OMP_NUM_THREADS", str(max((os.cpu_count() or 1) // count, 1)))
    shared = {"WORLD_SIZE": count, "LOCAL_WORLD_SIZE": count, "GROUP_RANK": 0, "OMP_NUM_THREADS": threads}
    shared |= {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": free_port()}
    for rank in range(count):
        own = {**shared, "RANK": rank, "LOCAL_RANK": rank}
        yield {**os.environ, **{name: str(value) for name, value in own.items()}}


def _wait(started: Sequence[subprocess.Popen[bytes]]) -> int | None:
    """The process that was the first to fail, a moment after it did; None where all have ended without an error."""
    failed: int | None = None
    until = float("inf")
    while time.monotonic() < until:
        codes = [process.poll() for process in started]
        if all(code is not None for code in codes) and failed is None and not any(codes):
            return None
        causes = [rank for rank, code in enumerate(codes) if code not in (None, 0, LOST_PROCESS)]
        if causes and failed is None:
            failed, until = causes[0], time.monotonic() + PATIENCE
        if all(code is not None for code in codes):
            return failed if failed is not None else next(rank for rank, code in enumerate(codes) if code)
        time.sleep(PAUSE)
    return failed


def _end(started: Sequence[subprocess.Popen[bytes]]) -> None:
    """End processes that are still running; those that do not obey are killed."""
    for process in started:
        if process.poll() is None:
            process.terminate()
    for process in started:
        try:
            process.wait(PATIENCE)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


@contextmanager
def _ended_together() -> Iterator[None]:
    """Let a request to end this process end those that it has started too."""

    def stop(number: int, frame: object) -> None:
        raise SystemExit(128 + number)

    before = signal.signal(signal.SIGTERM, stop)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"
