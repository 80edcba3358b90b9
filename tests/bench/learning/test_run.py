"""`accord bench learning` on a small benchmark: consistent figures, and the files of a sweep."""

import json

import pytest
import torch
from support.command_line import call, refused
from torch_geometric.data import Data

from accord.bench.learning import _report as report
from accord.bench.learning import _run as bench_learning
from accord.bench.learning._plain_networks import PlainTraining, plain_network
from accord.datasets import Benchmark
from accord.encoders import GAT, GCN, GCNII, GraphSAGE
from accord.methods import preset_recipe

SPECS = [
    GCN(hidden=4),
    GraphSAGE(hidden=4),
    GAT(hidden=4, heads=(2, 2, 3)),
    GCNII(hidden=4, layers=2, normalisation="layer"),
]


def made_bench(tasks=5, graphs=2):
    generator = torch.Generator().manual_seed(0)
    made = []
    for _ in range(graphs):
        ring = torch.stack([torch.arange(12), (torch.arange(12) + 1) % 12])
        x, y = torch.randn(12, 6, generator=generator), torch.randint(0, 2, (12, tasks), generator=generator)
        made.append(Data(x=x, edge_index=torch.cat([ring, ring.flip(0)], 1), y=y))
    return Benchmark(
        name="ppi-1",
        train=made,
        val=made,
        test=made,
        num_states=2,
        num_tasks=tasks,
        level="node",
        counted="all",
        source="made up",
    )


@pytest.fixture
def small(monkeypatch):
    monkeypatch.setattr(bench_learning, "load_benchmark", lambda name: made_bench())
    monkeypatch.setattr(bench_learning, "SWEEP_REPLICAS", (1, 3, 5))
    monkeypatch.setattr(bench_learning, "SWEEP_GRAPHS", (1, 3))


@pytest.mark.parametrize("spec", SPECS, ids=lambda spec: spec.kind)
def test_plain_networks_are_as_large_as_ours(spec):
    """The comparison is between the same networks."""
    ours, theirs = spec.build(6, 3, [0]), plain_network(spec, 6, 3)
    assert sum(p.numel() for p in ours.parameters()) == sum(p.numel() for p in theirs.parameters())


def test_plain_training_learns():
    bench = made_bench()
    plain = PlainTraining(preset_recipe("paper", "sage", benchmark="ppi-1"), 2, [[g] for g in bench.train], 1, "cpu")
    x, arcs, edges, y = plain.batches[0]
    before = float(plain._edge_loss(x, arcs, edges, y).detach())
    assert sum(plain.epoch() for _ in range(30)) == 60
    assert float(plain._edge_loss(x, arcs, edges, y).detach()) < before - 0.1
    assert float((plain.node(x, arcs).argmax(1) == y).double().mean()) > 0.9


def test_figures_are_consistent(small):
    case = bench_learning.LearningCase(encoder="sage", replicas=5, updates=10_000, seconds=0.05)
    row = bench_learning.measure_learning(case)
    assert row["seconds_for_the_job"] == pytest.approx(10 * row["ms_an_update"])
    assert row["updates_measured"] >= 2 and row["updates_measured"] % 2 == 0, "an epoch has two updates"
    assert row["ratio"] == pytest.approx(5 * row["plain_ms_an_update_and_replica"] / row["ms_an_update"])
    assert row["plain_precision"] == "32-true"
    assert [bench_learning.plain_precision(ours) for ours in ("tf32", "bf16-mixed")] == ["tf32", "tf32"]
    text = report.describe(row)
    assert "ms per update" in text and text.count("extrapolated") == 2 and "times as long" in text


def test_the_command_writes_a_sweep(small, tmp_path):
    arguments = ["--replicas", "5", "--device", "cpu", "--seconds", "0.02", "--no-compare", "--sweep", tmp_path / "out"]
    result = call("bench", "learning", *map(str, arguments))
    assert result.exit_code == 0, result.output
    saved = json.loads((tmp_path / "out" / "learning.json").read_text())
    assert [point["replicas"] for point in saved["sweep"]["replicas"]] == [1, 3, 5]
    assert [point["edges"] for point in saved["sweep"]["edges"]] == [12, 36]
    assert (tmp_path / "out" / "learning.png").read_bytes().startswith(b"\x89PNG")
    assert "| 36 |" in (tmp_path / "out" / "learning.md").read_text()


def test_linear_growth_gives_ratios_of_one():
    points = [{"edges": size, "ms": 3.0 + 2.0 * size} for size in (1, 10, 50)]
    table = report.sweep_table({"encoder": "gcn", "benchmark": "b", "device_name": "d"}, {"edges": points})
    assert table.count("| 1.00 |") == 3 and "over 3 ms + 2 ms x edges" in table
    fixed, each = report.straight_line([1, 2, 4], [1.0, 4.0, 16.0])
    assert fixed == 0 and 1 < each < 4, "the fixed part is never below 0"
    assert report.straight_line([4], [2.0]) == (0.0, 0.5)


def test_bad_options_are_refused(small):
    assert "at most that" in refused("bench", "learning", "--replicas", "6", "--device", "cpu")
    assert "is unknown" in refused("bench", "learning", "--encoder", "mlp", "--device", "cpu")
    if not torch.cuda.is_available():
        assert "no GPU" in refused("bench", "learning", "--device", "cuda")
