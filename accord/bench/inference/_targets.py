"""What Accord set out to reach, and whether a workload's figures reach it."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

SLACK = 0.1  # for noise
SOLVE_SWEEPS = 20  # of the tiny graphs that are to be solved whole in so many microseconds


@dataclass(frozen=True)
class Target:
    """A wish.

    Attributes:
        what: a key of the row's ratios, or "sweep" in seconds.
        wanted: the figure to reach.
        at_least: whether more is better.
    """

    what: str
    wanted: float
    at_least: bool

    def judge(self, got: float) -> dict[str, Any]:
        """The wish, what came of it, and whether that is enough."""
        met = got >= self.wanted * (1 - SLACK) if self.at_least else got <= self.wanted * (1 + SLACK)
        return {**asdict(self), "got": got, "met": met}


def _cpu(torch: float, best_torch: float, pgmax: float, bound: float) -> list[Target]:
    faster = {"torch": torch, "best_torch": best_torch, "pgmax": pgmax}
    return [*(Target(name, ratio, True) for name, ratio in faster.items()), Target("bound", bound, False)]


# By number of states; workloads with another number have no target of their own.
CPU_SUM = {2: _cpu(50, 20, 18, 2.2), 3: _cpu(20, 8, 10, 2.5), 7: _cpu(14, 8, 15, 2.0), 16: _cpu(30, 4, 30, 1.5)}
CPU_MAX = _cpu(15, 3, 10, 1.5)
GPU = [Target("torch", 8, True)]
GPU_SWEEPS = {"c": 100e-6 / SOLVE_SWEEPS, "g": 0.6e-3, "h": 4.2e-3}
GPU_SHARE = Target("bound", 1 / 0.7, False)  # 70 % of copy bandwidth, for 16 states and more


def targets_of(row: Mapping[str, Any], device: str, semiring: str) -> list[Target]:
    """What was wished for a workload."""
    if device == "cpu":
        return CPU_MAX if semiring == "max" else CPU_SUM.get(row["states"], [])
    sweeps = [Target("sweep", GPU_SWEEPS[row["workload"]], False)] if row["workload"] in GPU_SWEEPS else []
    return [*GPU, *sweeps, *([GPU_SHARE] if row["states"] >= 16 else [])]


def judge(row: Mapping[str, Any], device: str, semiring: str) -> list[dict[str, Any]]:
    """Verdicts on all that was measured."""
    got = {**row["ratios"], "sweep": row["times"]["accord"]["sweep"]}
    return [target.judge(got[target.what]) for target in targets_of(row, device, semiring) if target.what in got]
