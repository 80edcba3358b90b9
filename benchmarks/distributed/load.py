"""How busy the machine is: measurements that other programs have disturbed are repeated. Linux only."""

import os
from pathlib import Path

OTHERS, TRIES = 0.05, 8  # share of the machine that other programs may take in a round, and tries for each round
TICK = os.sysconf("SC_CLK_TCK")


def machine_seconds() -> tuple[float, float]:
    """Seconds that the cores have worked, and seconds of all of them, since the machine was started."""
    user, nice, system, idle, waiting, *rest = map(int, Path("/proc/stat").read_text().splitlines()[0].split()[1:])
    busy = user + nice + system + sum(rest[:3])
    return busy / TICK, (busy + idle + waiting) / TICK


def seconds_of(process: int | None) -> float:
    """Processor seconds of a running process, since it was started."""
    return sum(map(int, Path(f"/proc/{process}/stat").read_text().split()[13:15])) / TICK
