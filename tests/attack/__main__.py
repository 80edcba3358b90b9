"""`python -m attack`: attack Accord for some minutes, count what was tried, print what was found.

Each failure is printed with the options that repeat it: --attack NAME --seed S --case N.
"""

import argparse
import os
import shutil
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
IN_MEMORY = Path("/dev/shm")  # files there take no time to write or remove
SCRATCH_BYTES = 2 * 2**30  # more than all attacks keep at once


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


def scratch_place() -> str | None:
    """A folder in memory where there is room; None is the folder for temporary files."""
    try:
        return str(IN_MEMORY) if shutil.disk_usage(IN_MEMORY).free >= SCRATCH_BYTES else None
    except OSError:
        return None


def commit() -> str:
    """The commit under attack, with "-dirty" where files other than the record have changed."""
    head = _git("rev-parse", "--short=12", "HEAD")
    changed = _git("status", "--porcelain", "--untracked-files=no", "--", ":/", ":(exclude,top)results/attack")
    return f"{head}-dirty" if head and changed else head or "unknown"


def _git(*arguments: str) -> str:
    return subprocess.run(["git", *arguments], cwd=TESTS, capture_output=True, text=True).stdout.strip()


def main(arguments: list[str]) -> int:
    chosen = parse(arguments)
    seed = int(time.time()) % 10**6 if chosen.seed is None else chosen.seed
    names = chosen.attack or list(SHARES)
    print(f"seed {seed}", flush=True)
    began, attacked = time.monotonic(), commit()
    with tempfile.TemporaryDirectory(prefix="attack-", dir=scratch_place()) as scratch:
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
        records = append_record(chosen.record, seed, attacked, seconds, names, findings)
        print(f"over all {len(records)} runs: {totals(records)}")
    return 1 if findings.failures else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
