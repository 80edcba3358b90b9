"""`benchmarks/inference/judge_targets.py`: verdicts on stored runs."""

import importlib.util
import json
import subprocess
import sys
from pathlib import Path

import pytest

from accord.bench.inference._workloads import WORKLOADS

ROOT = Path(__file__).parents[2]
SCRIPT = ROOT / "benchmarks" / "inference" / "judge_targets.py"
STORED = sorted((ROOT / "benchmarks" / "inference").glob("*/inference.json"))


@pytest.fixture(scope="module")
def script():
    spec = importlib.util.spec_from_file_location("judge_targets", SCRIPT)
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # dataclasses look their module up
    yield spec.loader.exec_module(module) or module
    del sys.modules[spec.name]


@pytest.mark.parametrize("path", STORED, ids=lambda path: path.parent.name)
def test_verdicts_are_those_of_the_committed_runs(script, path):
    """These runs were stored with verdicts of their own."""
    results = json.loads(path.read_text())
    expected = [(row["workload"], target["met"]) for row in results["rows"] for target in row.get("targets", [])]
    assert expected and [(workload, met) for workload, _, _, met in script.judge(results)] == expected


def test_a_tenth_is_allowed_for_noise(script):
    more, less = script.Target("torch", 20, True), script.Target("bound", 2, False)
    assert more.is_met(18.01) and not more.is_met(17.9)
    assert less.is_met(2.19) and not less.is_met(2.21)
    assert set(script.GPU_SWEEPS) <= set(WORKLOADS)


def test_the_script_reads_files_and_reports_a_miss(script, tmp_path):
    path = tmp_path / "linear.json"
    for ratio, code, verdict in ((1.9, 0, "met"), (2.1, 1, "missed")):
        path.write_text(json.dumps({"exponent": 1.0, "memory": {"edges": 1000, "ratio": ratio}}))
        done = subprocess.run([sys.executable, SCRIPT, path], capture_output=True, text=True, check=False)
        assert done.returncode == code and f"| {ratio:.3g}x | {verdict} |" in done.stdout, done.stderr
