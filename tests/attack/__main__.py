"""`python -m attack`: attack Accord for some minutes, count what was tried, print what was found.

Each failure is printed with the options that repeat it: --attack NAME --seed S --case N.
"""

import argparse
import os
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

from attack.harness.record import append_record, totals
from attack.harness.schedule import SHARES, TESTS, Findings, run_attack, run_worker
from attack.sanitised import attack_sanitised

RECORD = TESTS.parent / "results" / "attack" / "runs.json"
SANITISED_SHARE = 0.06  # of the minutes, which come on top of them
SHORT_MINUTES = 5.0  # a shorter run builds no sanitised kernel


def parse(arguments: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m attack", description=__doc__)
    parser.add_argument("--minutes", type=float, default=60.0, help="how long to attack, in all (default: 60)")
    parser.add_argument("--attack", choices=list(SHARES), action="append", help="only this attack; may be repeated")
    parser.add_argument("--seed", type=int, help="of all choices (default: the time)")
    parser.add_argument("--case", type=int, help="only this case of one attack, to repeat a failure")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="processes side by side")
    parser.add_argument("--record", type=Path, default=RECORD, help="json file that gets one entry for each run")
    parser.add_argument("--no-record", action="store_true", help="do not record this run")
    chosen = parser.parse_args(arguments)
    if chosen.case is not None and (chosen.seed is None or len(chosen.attack or ()) != 1):
        parser.error("--case needs --attack and --seed")
    return chosen


def attack_all(names: list[str], seed: int, seconds: float, jobs: int, folder: Path) -> Findings:
    """Every attack for its share of the time; `jobs` processes side by side work on the same attack."""
    findings = Findings()
    whole = sum(SHARES[name] for name in names)
    for name in names:
        before = sum(findings.tried.values()), len(findings.failures)
        began = time.monotonic()
        lanes = [
            threading.Thread(
                target=run_attack, args=(name, seed, seconds * SHARES[name] / whole, folder, findings, lane, jobs)
            )
            for lane in range(jobs)
        ]
        for lane in lanes:
            lane.start()
        for lane in lanes:
            lane.join()
        told = f"{sum(findings.tried.values()) - before[0]} tried, {len(findings.failures) - before[1]} failed"
        print(f"{name}: {findings.skipped.get(name) or told}, {time.monotonic() - began:.0f} s", flush=True)
    return findings


def commit() -> str:
    """The commit under attack, with "-dirty" where files have changed."""
    command = ["git", "describe", "--always", "--dirty", "--abbrev=12"]
    done = subprocess.run(command, cwd=TESTS, capture_output=True, text=True)
    return done.stdout.strip() or "unknown"


def main(arguments: list[str]) -> int:
    chosen = parse(arguments)
    seed = int(time.time()) % 10**6 if chosen.seed is None else chosen.seed
    names = chosen.attack or list(SHARES)
    print(f"seed {seed}", flush=True)
    began = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="attack-") as scratch:
        if chosen.case is not None:
            findings = Findings()
            run_worker(names[0], seed, chosen.case, 1, 0.0, True, Path(scratch), findings)
            print(f"case {chosen.case}: {len(findings.failures)} failures, tried {dict(findings.tried)}")
            return 1 if findings.failures else 0
        findings = attack_all(names, seed, 60 * chosen.minutes, max(chosen.jobs, 1), Path(scratch))
        if chosen.attack is None and chosen.minutes >= SHORT_MINUTES:
            attack_sanitised(seed, 60 * SANITISED_SHARE * chosen.minutes, findings)
    seconds = round(time.monotonic() - began)
    print(f"tried in {seconds} s: {dict(sorted(findings.tried.items()))}; failures: {len(findings.failures)}")
    if not chosen.no_record:
        records = append_record(chosen.record, seed, commit(), seconds, names, findings)
        print(f"over all {len(records)} runs: {totals(records)}")
    return 1 if findings.failures else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
