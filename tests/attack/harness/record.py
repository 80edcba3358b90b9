"""The record of all attacks: one entry for each run, in a json file that is kept with the results."""

import json
from collections import Counter
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

from attack.harness.schedule import TESTS, Findings

MESSAGE_LENGTH = 300
MOST_FAILURES = 50  # kept in an entry; the count is exact


def append_record(
    path: Path, seed: int, commit: str, seconds: float, attacks: list[str], findings: Findings
) -> list[dict[str, Any]]:
    """Append one run to the record; returns all runs."""
    records: list[dict[str, Any]] = json.loads(path.read_text()) if path.is_file() else []
    shown = [
        {**failure, "message": str(failure["message"]).replace(f"{TESTS.parent}/", "")[:MESSAGE_LENGTH]}
        for failure in findings.failures[:MOST_FAILURES]
    ]
    records.append(
        {
            "date": datetime.now(timezone.utc).strftime("%Y-%m-%d"),
            "commit": commit,
            "seed": seed,
            "seconds": seconds,
            "attacks": attacks,
            "tried": dict(sorted(findings.tried.items())),
            "failed": len(findings.failures),
            "failures": shown,
            "skipped": findings.skipped,
        }
    )
    path.parent.mkdir(parents=True, exist_ok=True)
    beside = path.with_suffix(".new")
    beside.write_text(json.dumps(records, indent=1) + "\n")
    beside.replace(path)
    return records


def totals(records: list[dict[str, Any]]) -> dict[str, int]:
    """What all recorded runs tried together, and how often they failed."""
    tried: Counter[str] = Counter()
    for record in records:
        tried.update(record["tried"])
        tried["failures"] += record["failed"]
    return dict(sorted(tried.items()))
