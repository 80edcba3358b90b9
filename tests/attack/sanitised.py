"""The native kernel under the address and undefined-behaviour sanitisers, by the script beside this file."""

import re
import shutil
import subprocess
import sys
from pathlib import Path

from attack.harness.schedule import Findings, environment

SCRIPT = Path(__file__).with_name("sanitised_kernel.py")
SUMMARY = re.compile(r"^(\d+) fields, (\d+) findings", re.MULTILINE)


def attack_sanitised(seed: int, seconds: float, findings: Findings) -> None:
    """Solve random fields for so many seconds. Compiling takes a few minutes more, once for each source."""
    missing = next((f"there is no {what}" for what, there in needs().items() if not there), None)
    if missing is not None:
        findings.skipped["sanitised"] = missing
        print(f"sanitised: {missing}")
        return
    first = seed * 10**6
    command = [sys.executable, str(SCRIPT), "--seed", str(first), "--fields", str(10**6), "--seconds", str(seconds)]
    done = subprocess.run(command, capture_output=True, text=True, env=environment())
    told = SUMMARY.search(done.stdout)
    if told is not None:
        findings.tried["fields under sanitisers"] += int(told[1])
    print(f"sanitised: {told[0] if told else 'no summary'}", flush=True)
    if done.returncode != 0 or told is None:
        findings.fail("sanitised", seed, 0, (done.stdout + done.stderr)[-1500:] or f"exit code {done.returncode}")


def needs() -> dict[str, bool]:
    """What the script needs, and whether it is there."""
    return {SCRIPT.name: SCRIPT.is_file(), "g++": shutil.which("g++") is not None}
