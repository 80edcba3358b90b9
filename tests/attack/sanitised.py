"""The native kernel under the address and undefined-behaviour sanitisers, if the script that builds it is there."""

import subprocess
import sys
from pathlib import Path

from attack.schedule import Findings, environment

SCRIPT = Path(__file__).with_name("sanitised_kernel.py")


def attack_sanitised(seed: int, findings: Findings) -> None:
    """Run the script; it prints what it tried and ends with 0 if no sanitiser complained."""
    if not SCRIPT.is_file():
        findings.skipped["sanitised"] = f"there is no {SCRIPT.name}"
        return
    done = subprocess.run([sys.executable, str(SCRIPT)], capture_output=True, text=True, env=environment())
    print(done.stdout.strip())
    if done.returncode != 0:
        findings.fail("sanitised", seed, 0, done.stderr[-1500:] or f"exit code {done.returncode}")
