"""`accord bench inference`: the programs agree, times are measured, results are written."""

import json
import time

import pytest
import torch
from support.command_line import call, refused

from accord import propagate
from accord.bench.inference import _machine as machine
from accord.bench.inference import _run as bench_inference
from accord.bench.inference import _timing as bench_inference_timing
from accord.bench.inference._peers import OURS, PEERS, Peer, Prepared, pgmax_missing
from accord.bench.inference._report import format_seconds
from accord.bench.inference._run import choose_workloads, measure_peer, ratios_of
from accord.bench.inference._timing import BenchOptions, copy_bandwidth, time_sweeps
from accord.bench.inference._workloads import (
    WORKLOADS,
    grid_workload,
    random_workload,
    sweep_bytes,
    tiny_workload,
)

SMALL = {
    "a": random_workload("a", "20 nodes, 40 edges", 20, 40, 3),
    "c": tiny_workload("c", 5, 7),
    "d": grid_workload("d", 4, 2),
}
EAGER = [name for name in PEERS if name != "compiled"]


@pytest.fixture
def quick(monkeypatch):
    """Short measurements and no compiled program: these tests check what is written, not how fast it is."""
    monkeypatch.setattr(bench_inference_timing, "LEAST_SECONDS", 1e-3)
    monkeypatch.setattr(bench_inference_timing, "COPYING_SECONDS", 1e-3)
    monkeypatch.setattr(bench_inference_timing, "MEMORY_BYTES", {"cpu": 2**20})
    monkeypatch.setattr(bench_inference, "WORKLOADS", SMALL)
    monkeypatch.setattr(bench_inference, "PEERS", {name: PEERS[name] for name in (OURS, "reference", "torch")})


@pytest.mark.parametrize("workload", SMALL.values(), ids=lambda w: w.name)
@pytest.mark.parametrize("semiring", ["sum", "max"])
@pytest.mark.parametrize("name", EAGER)
def test_peers_pass_the_same_messages(name, semiring, workload):
    if PEERS[name].missing("cpu") is not None:
        pytest.skip(PEERS[name].missing("cpu"))
    field = workload.make_field("cpu")
    prepared = PEERS[name].prepare(field, semiring)
    for sweeps in (2, 5):
        expected = propagate(field, semiring, max_sweeps=sweeps, tolerance=0.0, backend="reference").node
        torch.testing.assert_close(prepared.beliefs(prepared.run(sweeps)), expected, atol=1e-4, rtol=0)
    prepared.close()


def test_the_compiled_peer_passes_the_same_messages():
    field = SMALL["a"].make_field("cpu")
    row, beliefs = measure_peer(PEERS["compiled"], field, BenchOptions(repeats=1))
    if "skipped" in row:
        pytest.skip(row["skipped"])
    expected = propagate(field, max_sweeps=bench_inference.CHECKED_SWEEPS, tolerance=0.0, backend="reference").node
    torch.testing.assert_close(beliefs, expected, atol=1e-4, rtol=0)


@pytest.mark.parametrize("workload", [*SMALL.values(), *(WORKLOADS[name] for name in "acd")], ids=lambda w: w.title)
def test_workloads_have_the_stated_size(workload):
    field = workload.make_field("cpu")
    assert (field.num_nodes, field.num_edges, field.num_states) == (workload.nodes, workload.edges, workload.states)
    assert field.num_graphs == workload.graphs and field.node.dtype == torch.float32
    assert torch.equal(field.edge, workload.make_field("cpu").edge)


def test_workloads_are_those_of_the_design():
    sizes = {name: (w.nodes, w.edges, w.states) for name, w in WORKLOADS.items()}
    assert sizes["b"] == (20_000, 1_000_000, 2) and sizes["e"] == (1_000_000, 5_000_000, 3)
    assert sizes["d"] == (40_000, 79_600, 16) and sizes["f"] == (20_000, 100_000, 40)
    assert "".join(w.name for w in choose_workloads(None, "cpu")) == "abcdef"
    assert "".join(w.name for w in choose_workloads(None, "cuda")) == "abcdefgh"
    assert "".join(w.name for w in choose_workloads("c, a", "cpu")) == "ca"


def test_bytes_of_a_sweep_match_its_tensors():
    field = SMALL["a"].make_field("cpu")
    tables, ends = 4 * field.edge.numel(), 2 * 4 * field.num_edges  # float32, 32-bit indices
    messages = 4 * 2 * field.num_edges * field.num_states
    beliefs = 4 * field.node.numel()
    assert sweep_bytes(20, 40, 3) == tables + ends + 2 * messages + 3 * beliefs
    assert sweep_bytes(20_000, 1_000_000, 2) == 56_480_000


def test_set_up_is_not_part_of_a_sweep():
    taken = time_sweeps(lambda sweeps: time.sleep(0.02 + 0.002 * sweeps), "cpu", repeats=3)
    assert taken.sweep == pytest.approx(0.002, rel=0.5) and taken.setup == pytest.approx(0.02, rel=0.5)
    assert taken.lowest <= taken.sweep <= taken.highest and taken.few < taken.many


def test_a_program_is_compiled_before_it_is_timed():
    seen = set()

    def run(sweeps):
        time.sleep(0.002 * sweeps + (0.3 if sweeps not in seen else 0.0))
        seen.add(sweeps)

    taken = time_sweeps(run, "cpu", repeats=1, fewest=2, compiles=True)
    assert taken.few == 2 and taken.sweep == pytest.approx(0.002, rel=0.5)


def test_a_disturbed_measurement_is_repeated():
    delays = [0.0, 0.0, 0.8]  # of the short run: none while the numbers of sweeps are chosen, then one

    def run(sweeps):
        time.sleep(0.003 * sweeps + (delays.pop(0) if sweeps == 1 and delays else 0.0))

    taken = time_sweeps(run, "cpu", repeats=1)
    assert not delays and taken.sweep == pytest.approx(0.003, rel=0.5)


def test_copy_bandwidth_is_plausible():
    assert 1e7 < copy_bandwidth(2**20, "cpu", 2) < 1e13


def test_ratios():
    times = {OURS: {"sweep": 2.0}, "torch": {"sweep": 50.0}, "compiled": {"sweep": 15.0}, "pgmax": {"skipped": "no"}}
    row = {"times": times, "bound": 1.0, "memory_bound": 4.0}
    assert ratios_of(row) == {"torch": 25.0, "compiled": 7.5, "best_torch": 7.5, "bound": 2.0, "memory_bound": 0.5}


def test_a_peer_that_would_not_fit_is_left_out(monkeypatch):
    field, options = SMALL["a"].make_field("cpu"), BenchOptions(repeats=1)
    monkeypatch.setattr(machine, "available_memory", lambda device: 10_000)
    row, beliefs = measure_peer(PEERS["torch"], field, options)
    assert beliefs is None and row["skipped"] == "would take about 0.0 GB, and 0.0 GB are free"


def test_a_failing_peer_is_left_out_but_accord_is_not():
    def fail(field, semiring):
        raise RuntimeError("no compiler\nat all")

    field, options = SMALL["a"].make_field("cpu"), BenchOptions(repeats=1)
    assert measure_peer(Peer("torch", "plain torch", fail), field, options)[0] == {
        "skipped": "RuntimeError: no compiler"
    }
    with pytest.raises(RuntimeError, match="no compiler"):
        measure_peer(Peer(OURS, "Accord", fail), field, options)


def test_the_reason_for_missing_pgmax_is_given(monkeypatch):
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    assert "pgmax and jax and numba not installed" in pgmax_missing("cpu")


@pytest.mark.parametrize("command", ["bench", "bench inference"])
def test_help_lists_the_commands(command):
    result = call(*command.split(), "--help")
    assert result.exit_code == 0 and "inference" in result.stdout
    assert call("bench").stdout.strip() == call("bench", "--help").stdout.strip()


def test_the_command_writes_figures_table_and_plot(quick, tmp_path):
    result = call("bench", "inference", "--repeats", "2", "--threads", "1", "--out", tmp_path)
    assert result.exit_code == 0, result.output
    assert "Time of one sweep" in result.stdout and "c: 5 graphs of 6 nodes" in result.stdout
    assert "plain torch" in result.stderr and "per sweep" in result.stderr
    results = json.loads((tmp_path / "inference.json").read_text())
    assert results["finished"] and results["machine"]["threads"] == 1
    assert {"torch", "commit", "processor", "cores", "load_before", "pgmax"} <= set(results["machine"])
    assert [row["workload"] for row in results["rows"]] == ["a", "c", "d"]
    for row in results["rows"]:
        assert set(row["times"]) == {OURS, "reference", "torch"}
        assert row["times"]["torch"]["agrees"] and row["times"]["torch"]["difference"] < 1e-3
        assert {"sweep", "lowest", "highest", "noisy", "setup", "few", "many", "prepare", "backend"} <= set(
            row["times"][OURS]
        )
        assert row["bound"] == pytest.approx(row["bytes"] / row["copy_bandwidth"])
        assert row["copy_bandwidth"] >= results["memory_bandwidth"]
        assert row["ratios"]["torch"] == pytest.approx(row["times"]["torch"]["sweep"] / row["times"][OURS]["sweep"])
    text = (tmp_path / "inference.md").read_text()
    assert "| a: 20 nodes, 40 edges, K=3 |" in text and "Not finished" not in text
    assert (tmp_path / "inference.png").read_bytes().startswith(b"\x89PNG")


def test_peers_can_be_left_out(quick, tmp_path):
    result = call(
        "bench", "inference", "--workload", "a", "--no-peers", "--semiring", "max", "--repeats", "1", "--out", tmp_path
    )
    assert result.exit_code == 0, result.output
    (row,) = json.loads((tmp_path / "inference.json").read_text())["rows"]
    assert set(row["times"]) == {OURS} and "targets" not in row and set(row["ratios"]) == {"bound", "memory_bound"}


def test_a_peer_with_other_beliefs_is_marked(quick, tmp_path, monkeypatch):
    def prepare(field, semiring):
        return Prepared(lambda sweeps: time.sleep(1e-4 * sweeps), lambda state: torch.zeros_like(field.node))

    peers = {OURS: PEERS[OURS], "torch": Peer("torch", "plain torch", prepare)}
    monkeypatch.setattr(bench_inference, "PEERS", peers)
    result = call("bench", "inference", "--workload", "a", "--repeats", "1", "--out", tmp_path)
    assert "beliefs differ by" in result.stderr and "(differs)" in (tmp_path / "inference.md").read_text()


def test_an_interrupted_run_keeps_its_figures(quick, tmp_path, monkeypatch):
    def stop(field, semiring):
        raise KeyboardInterrupt

    monkeypatch.setattr(bench_inference, "PEERS", {OURS: PEERS[OURS], "torch": Peer("torch", "plain torch", stop)})
    result = call("bench", "inference", "--repeats", "1", "--out", tmp_path)
    assert result.exit_code == 130 and "The figures measured so far are in" in result.stderr
    results = json.loads((tmp_path / "inference.json").read_text())
    assert not results["finished"] and [row["workload"] for row in results["rows"]] == ["a"]
    assert results["rows"][0]["times"][OURS]["sweep"] > 0
    assert "Not finished" in (tmp_path / "inference.md").read_text()


def test_a_workload_that_would_not_fit_is_left_out(quick, tmp_path, monkeypatch):
    monkeypatch.setattr(machine, "available_memory", lambda device: 10_000)
    result = call("bench", "inference", "--workload", "a", "--repeats", "1", "--out", tmp_path)
    assert result.exit_code == 0, result.output
    assert "Left out in a: every program" in (tmp_path / "inference.md").read_text()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--workload", "z"], "Give letters of a,b,c"),
        (["--workload", ""], "Give letters of a,b,c"),
        (["--device", "tpu"], "Choose cpu or cuda"),
        (["--semiring", "min"], "Choose sum or max"),
    ],
)
def test_bad_options_are_refused(arguments, message, tmp_path):
    assert message in refused("bench", "inference", *arguments, "--out", tmp_path)


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a GPU")
def test_a_missing_gpu_is_refused(tmp_path):
    assert "no CUDA device" in refused("bench", "inference", "--device", "cuda", "--out", tmp_path)


def test_seconds_get_a_suitable_unit():
    assert [format_seconds(t) for t in (2.5, 0.0421, 0.15, 9.9996e-4, 3e-5, 4e-8)] == [
        "2.5 s",
        "42.1 ms",
        "150 ms",
        "1 ms",
        "30 µs",
        "40 ns",
    ]
