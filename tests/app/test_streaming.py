"""`accord fit --stream`: the run of graphs in memory, continued either way, and refusals that say what to do."""

import json
import os
import subprocess
import sys

import pytest
from safetensors.torch import load_file
from support.command_line import NAMES, call, make_graph, refused

from accord.datasets import write_graph, write_graphs

# Batches are given, because so few graphs would make one batch.
FIT = ["--encoder", "mlp", "--max-epochs", "4", "--accelerator", "cpu", "--set", "training.batch_graphs=4"]
RECIPE = ["--preset", "paper", "--features", "standardised"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """train as Parquet files, val and test as single files."""
    folder = tmp_path_factory.mktemp("data") / "fruit"
    (folder / "train").mkdir(parents=True)
    for first in (0, 8):
        write_graphs([make_graph(n) for n in range(first, first + 8)], folder / "train" / f"{first}.parquet", NAMES)
    for number in range(4):
        write_graph(make_graph(100 + number), folder / "val" / f"g{number}.json", NAMES)
        write_graph(make_graph(200 + number if number else 0), folder / "test" / f"g{number}.npz", NAMES)
    return folder


def fit(folder, run, *more):
    result = call("fit", folder, "--run", run, *FIT, *RECIPE, *more)
    assert result.exit_code == 0, result.output
    return result


def content(run):
    config, results = (json.loads((run / name).read_text()) for name in ("config.json", "results.json"))
    return config, {key: results[key] for key in ("test", "chosen", "networks", "diagnosis")}


@pytest.mark.parametrize("method", ["spn", "gnn", "crf", "gmnn"])
def test_a_streamed_run_is_the_run_in_memory(folder, tmp_path, method):
    for name, more in (("memory", ()), ("stream", ("--stream",))):
        fit(folder, tmp_path / name, "--method", method, *more)
    one, other = (load_file(tmp_path / name / "model.safetensors") for name in ("memory", "stream"))
    assert one.keys() == other.keys() and all((value == other[key]).all() for key, value in one.items())
    assert content(tmp_path / "memory") == content(tmp_path / "stream")
    assert (tmp_path / "memory" / "seen_nodes.npz").read_bytes() == (
        tmp_path / "stream" / "seen_nodes.npz"
    ).read_bytes()
    # It is the same run, so either command continues the other.
    assert "already finished" in fit(folder, tmp_path / "memory", "--method", method, "--stream").output


@pytest.mark.matrix
def test_two_processes_stream(folder, tmp_path):
    fit(folder, tmp_path / "memory")
    command = ["fit", folder, "--run", tmp_path / "two", *FIT, *RECIPE, "--stream", "--devices", "2"]
    done = subprocess.run(
        [sys.executable, "-m", "accord", *map(str, command)],
        capture_output=True,
        text=True,
        env=os.environ | {"OMP_NUM_THREADS": "1"},
        timeout=240,
    )
    assert done.returncode == 0, done.stderr
    one, two = (load_file(tmp_path / name / "model.safetensors") for name in ("memory", "two"))
    assert all(((value - two[key]).abs() < 1e-3).all() for key, value in one.items())


def test_what_cannot_be_streamed_is_refused(folder, tmp_path):
    run = ("--run", tmp_path / "run")
    assert "digits is held in memory" in refused("fit", "digits", "--stream", *run)
    assert "Leave out --stream" in refused("fit", folder / "val" / "g0.json", "--stream", *run)
    assert "Choose a folder with room: --scratch" in refused("fit", folder, "--stream", "--scratch", __file__, *run)
    assert "Leave out refit" in refused("fit", folder, "--stream", "--refit", *FIT, *RECIPE, *run)
    line = refused("fit", folder, "--stream", "--method", "gmnn", "--encoder", "mlp", *run)
    assert "takes all 16 training graphs at once" in line and "--set training.batch_graphs=32" in line


def test_a_bad_row_is_named(folder, tmp_path):
    (tmp_path / "data" / "train").mkdir(parents=True)
    (tmp_path / "data" / "val").symlink_to(folder / "val")
    wide = make_graph(1)
    wide.x = wide.x[:, :2]
    write_graphs([make_graph(0)], tmp_path / "data" / "train" / "a.parquet", NAMES)
    write_graphs([wide], tmp_path / "data" / "train" / "b.parquet", NAMES)
    line = refused("fit", tmp_path / "data", "--stream", "--run", tmp_path / "run")
    assert "b.parquet, row 1: has 2 features a row" in line and "correct the file" in line
    assert not (tmp_path / "run").exists()
