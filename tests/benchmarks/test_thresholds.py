"""`benchmarks/defaults/thresholds.py`: halves of validation graphs, changed constants, and the rule of its page."""

import importlib.util
from pathlib import Path

import pytest
import torch
from torch_geometric.data import Data

from accord.learning import TrainingOptions
from accord.tuning import fit_schedule, has_sparse_features

SCRIPT = Path(__file__).parents[2] / "benchmarks" / "defaults" / "thresholds.py"


@pytest.fixture(scope="module")
def script():
    spec = importlib.util.spec_from_file_location("thresholds", SCRIPT)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_halves_share_no_label(script):
    graphs = [Data(y=torch.full((2,), number)) for number in range(7)]
    first, second = ({int(graph.y[0]) for graph in half} for half in script.halve(graphs, 0))
    assert not first & second and first | second == set(range(7))
    single = Data(y=torch.arange(50) % 3)
    ((one,), (other,)) = script.halve([single], 0)
    assert bool(((one.y >= 0) ^ (other.y >= 0)).all()) and int(single.y.min()) == 0
    torch.testing.assert_close(torch.maximum(one.y, other.y), single.y)


def test_changed_thresholds_are_read(script):
    graphs = [Data(x=torch.zeros(32, 1))] * 800
    zeros = [Data(x=(torch.arange(100) < 10).float()[:, None])]
    assert has_sparse_features(zeros)
    with script.changed("BATCH_NODES-512"):
        assert fit_schedule(TrainingOptions(), graphs).batch_graphs == 16
    with script.changed("PATIENCE-800"):
        long = fit_schedule(TrainingOptions(), graphs)
    with script.changed("SPARSE-0.95"):
        assert not has_sparse_features(zeros)
    usual = fit_schedule(TrainingOptions(), graphs)
    assert usual.batch_graphs == 8 and long.patience == 2 * usual.patience


def records(gains: list[float], likelihood: float = 0.0) -> list[dict]:
    """Two seeds of three tasks, with these gains of PATIENCE-800."""
    found = []
    for task in ("fraud", "grids", "digits"):
        for seed, gain in enumerate(gains):
            cell = {"task": task, "seed": seed, "seconds": 1.0}
            found.append({**cell, "variant": "default", "nodes": 0.5, "graphs": 0.0, "likelihood": -1.0})
            values = {"nodes": 0.5 + gain, "graphs": 0.0, "likelihood": likelihood - 1.0}
            found.append({**cell, "variant": "PATIENCE-800", **values})
            found.append({"task": task, "seed": seed, "variant": "PATIENCE-200", "same": True})
    return found


def test_the_rule_asks_for_two_standard_errors(script):
    def decided(*given) -> str:
        return script.verdict(records(*given), "PATIENCE-800")[-1]

    assert decided([0.010, 0.012]) == "800 is better"
    assert decided([-0.010, 0.012]) == decided([0.0, 0.0]) == "400 stays"
    assert decided([0.010, 0.012], -0.1) == "400 stays"


def test_a_value_that_changes_nothing_needs_no_fit(script):
    assert script.verdict(records([0.01, 0.02]), "PATIENCE-200")[2] == "0 of 3"
    assert "| fraud | same | same | same | +1.50 ± 0.50 |" in script.page(records([0.01, 0.02]))
