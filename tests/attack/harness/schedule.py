"""Runs attacks in their own processes, side by side, and starts a new process where one crashed."""

import json
import os
import queue
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO

from attack.harness.worker import SKIPPED

SILENCE_SECONDS = 400.0  # a worker that reports nothing for so long is stopped: its case is a failure
TESTS = Path(__file__).resolve().parents[2]
# Parts of the time. Commands are slow and are killed one by one; calls and fields are fast.
SHARES = {
    "kills": 0.36,
    "damaged-runs": 0.2,
    "graph-files": 0.14,
    "front-door": 0.14,
    "kernel": 0.08,
    "full-disk": 0.08,
}


@dataclass
class Findings:
    """What a run of attacks tried and found."""

    tried: Counter[str] = field(default_factory=Counter)
    failures: list[dict[str, object]] = field(default_factory=list)
    skipped: dict[str, str] = field(default_factory=dict)

    def fail(self, attack: str, seed: int, case: int, message: str) -> None:
        """Record a failure, and print it with the command that repeats it."""
        self.failures.append({"attack": attack, "seed": seed, "case": case, "message": message})
        print(f"FAILED  --attack {attack} --seed {seed} --case {case}\n        {message}", flush=True)


def run_attack(name: str, seed: int, seconds: float, folder: Path, findings: Findings, lane: int, lanes: int) -> None:
    """One attack for so many seconds: cases `lane`, `lane + lanes`, ... A crash ends a case, not the attack."""
    until = time.monotonic() + seconds
    first = lane
    while first >= 0 and (first == lane or time.monotonic() < until):
        first = run_worker(name, seed, first, lanes, until - time.monotonic(), False, folder, findings)


def run_worker(
    name: str, seed: int, first: int, step: int, seconds: float, one: bool, folder: Path, findings: Findings
) -> int:
    """Run a worker until it ends; returns the case to go on with, or -1 if the attack is over."""
    told = {"name": name, "seed": seed, "first": first, "step": step, "seconds": seconds, "one": one}
    command = [sys.executable, "-m", "attack.harness.worker", json.dumps({**told, "folder": str(folder)})]
    worker = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment(), start_new_session=True
    )
    lines: queue.Queue[str | None] = queue.Queue()
    errors: list[str] = []
    assert worker.stdout is not None and worker.stderr is not None
    readers = [
        threading.Thread(target=_read_lines, args=(worker.stdout, lines), daemon=True),
        threading.Thread(target=errors.extend, args=(worker.stderr,), daemon=True),
    ]
    for reader in readers:
        reader.start()
    case, open_case, hung = first, True, False
    while True:
        try:
            line = lines.get(timeout=SILENCE_SECONDS)
        except queue.Empty:
            hung = True
            os.killpg(worker.pid, signal.SIGKILL)
            break
        if line is None:
            break
        told = json.loads(line)
        if "skipped" in told:
            findings.skipped[name] = str(told["skipped"])
        elif "case" in told:
            case, open_case = int(told["case"]), True
        else:
            open_case = False
            findings.tried.update(told["tried"])
            for message in told["failures"]:
                findings.fail(name, seed, case, message)
    code = worker.wait()
    for reader, pipe in zip(readers, (worker.stdout, worker.stderr), strict=True):
        reader.join()
        pipe.close()
    if code in (0, SKIPPED):
        return -1
    last = " | ".join(line.strip() for line in errors[-3:])[-600:]
    how = f"no answer in {SILENCE_SECONDS:.0f} s" if hung else f"the process ended with code {code}"
    if open_case:
        findings.fail(name, seed, case, f"{how}: {last}")
    return case + step


def _read_lines(stream: IO[str], lines: queue.Queue[str | None]) -> None:
    for line in stream:
        lines.put(line)
    lines.put(None)


def environment() -> dict[str, str]:
    """One thread for each process, the code of this checkout, and no search for the commit in every run."""
    paths = [str(TESTS), str(TESTS.parent), *filter(None, [os.environ.get("PYTHONPATH")])]
    return {
        **os.environ,
        "PYTHONPATH": os.pathsep.join(paths),
        "OMP_NUM_THREADS": "1",
        "MKL_NUM_THREADS": "1",
        "ACCORD_COMMIT": "attack",
        "PYTHONDONTWRITEBYTECODE": "1",
        "TRITON_INTERPRET": "1",
        "COLUMNS": "200",
        "TERM": "dumb",
    }
