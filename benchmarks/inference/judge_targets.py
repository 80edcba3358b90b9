"""Which performance targets of the project a stored benchmark run meets.

    python benchmarks/inference/judge_targets.py benchmarks/inference/*/*.json

Reads `inference.json` and `linear.json` of `accord bench inference` and prints a table for each. A target counts as met
within 10 %, to allow for noise; the memory target has no such allowance. Exits with 1 when a target is missed.
"""

import argparse
import json
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

SLACK = 0.1  # for noise
SOLVE_SWEEPS = 20  # of the tiny graphs of workload c, which a GPU should solve within 100 microseconds
MEMORY_LIMIT = 2.0  # peak memory, as a multiple of tables and messages


@dataclass(frozen=True)
class Target:
    """A figure to reach.

    Attributes:
        what: a key of a row's ratios, or "sweep" in seconds.
        wanted: the figure.
        at_least: whether more is better.
    """

    what: str
    wanted: float
    at_least: bool

    def is_met(self, found: float) -> bool:
        return found >= self.wanted * (1 - SLACK) if self.at_least else found <= self.wanted * (1 + SLACK)


def cpu_targets(torch: float, best_torch: float, pgmax: float, bound: float) -> list[Target]:
    faster = {"torch": torch, "best_torch": best_torch, "pgmax": pgmax}
    return [*(Target(name, ratio, True) for name, ratio in faster.items()), Target("bound", bound, False)]


# By number of states; workloads with another number have no target.
CPU_SUM = {
    2: cpu_targets(50, 20, 18, 2.2),
    3: cpu_targets(20, 8, 10, 2.5),
    7: cpu_targets(14, 8, 15, 2.0),
    16: cpu_targets(30, 4, 30, 1.5),
}
CPU_MAX = cpu_targets(15, 3, 10, 1.5)
GPU = [Target("torch", 8, True)]
GPU_SWEEPS = {"c": 100e-6 / SOLVE_SWEEPS, "g": 0.6e-3, "h": 4.2e-3}
GPU_BOUND = Target("bound", 1 / 0.7, False)  # 70 % of the copy bandwidth, for 16 states and more


def targets_of(row: dict[str, Any], device: str, semiring: str) -> list[Target]:
    """Targets of a workload."""
    if device == "cpu":
        return CPU_MAX if semiring == "max" else CPU_SUM.get(row["states"], [])
    sweeps = [Target("sweep", GPU_SWEEPS[row["workload"]], False)] if row["workload"] in GPU_SWEEPS else []
    return [*GPU, *sweeps, *([GPU_BOUND] if row["states"] >= 16 else [])]


def judge_workloads(results: dict[str, Any]) -> list[tuple[str, str, str, bool]]:
    """Workload, target, figure and verdict of everything that was measured."""
    verdicts = []
    options = results["options"]
    for row in results["rows"]:
        if "ratios" not in row:
            continue
        found = {**row["ratios"], "sweep": row["times"]["accord"]["sweep"]}
        for target in targets_of(row, options["device"], options["semiring"]):
            if target.what in found:
                unit = " s" if target.what == "sweep" else "x"
                wanted = f"{target.what} {'>=' if target.at_least else '<='} {target.wanted:.3g}{unit}"
                figure = f"{found[target.what]:.3g}{unit}"
                verdicts.append((row["workload"], wanted, figure, target.is_met(found[target.what])))
    return verdicts


def judge_memory(results: dict[str, Any]) -> list[tuple[str, str, str, bool]]:
    """The same for peak memory."""
    memory = results.get("memory", {})
    if "ratio" not in memory:
        return []
    wanted = f"memory <= {MEMORY_LIMIT:g}x tables and messages"
    return [(f"{memory['edges']:,} edges", wanted, f"{memory['ratio']:.3g}x", memory["ratio"] <= MEMORY_LIMIT)]


def judge(results: dict[str, Any]) -> list[tuple[str, str, str, bool]]:
    """Verdicts on one stored run."""
    return judge_memory(results) if "exponent" in results else judge_workloads(results)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("files", type=Path, nargs="+", help="inference.json or linear.json")
    missed = 0
    for path in parser.parse_args().files:
        verdicts = judge(json.loads(path.read_text()))
        missed += sum(not met for *_, met in verdicts)
        print(f"\n{path}\n\n| workload | target | measured | |\n|---|---|---|---|")
        for workload, wanted, figure, met in verdicts:
            print(f"| {workload} | {wanted} | {figure} | {'met' if met else 'missed'} |")
    sys.exit(1 if missed else 0)


if __name__ == "__main__":
    main()
