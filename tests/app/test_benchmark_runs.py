"""Runs on benchmarks: what was done to features in training is done to users' files as well."""

import csv
import io
import json

import numpy as np
import pytest
import torch
from command_line import QUICK, call

from accord.app import sources
from accord.datasets import load_benchmark, write_graph
from accord.estimator import NodeClassifier


@pytest.fixture
def small_cora(tmp_path, monkeypatch):
    """A ring with chords for Cora: ego networks overlap, features are of very different sizes."""
    size, generator = 36, np.random.default_rng(0)
    ring = np.arange(size)
    edges = np.concatenate([np.stack([ring, np.roll(ring, -1)]), np.stack([ring[::6], np.roll(ring, 8)[::6]])], 1)
    y = ring // 6 % 7
    x = np.eye(7)[y] * 40 + generator.integers(1, 90, (size, 7)) * np.array([1, 1, 1, 5, 1, 30, 1])
    folder = tmp_path / "benchmarks"
    folder.mkdir()
    np.savez(
        folder / "planetoid_cora.npz",
        x_indptr=np.arange(size + 1) * 7,
        x_indices=np.tile(np.arange(7), size),
        x_data=x.reshape(-1),
        x_shape=np.array(x.shape),
        y=y,
        edge_index=np.concatenate([edges, edges[::-1]], 1),
        train_idx=ring[::2],
        val_idx=ring[1::4],
        test_idx=ring[3::4],
    )
    monkeypatch.setenv("ACCORD_DATA", str(folder))


@pytest.mark.parametrize("features", ["row-normalised", "standardised"])
def test_files_are_treated_as_the_training_graphs_were(small_cora, tmp_path, features):
    run = tmp_path / "run"
    assert call("fit", "cora", "--run", run, *QUICK, "--features", features).exit_code == 0
    raw, treated = load_benchmark("cora*", "raw").test, load_benchmark("cora*", features).test
    for number, graph in enumerate(raw):
        write_graph(graph, tmp_path / "graphs" / f"g{number}.npz")
    model = NodeClassifier.load(run)
    for number, graph in enumerate(treated):
        said = call("predict", run, tmp_path / "graphs" / f"g{number}.npz").stdout
        rows = list(csv.DictReader(io.StringIO(said)))
        states = model.predict(graph)
        assert [row["label"] for row in rows] == [model.label_names[state] for state in states]
        likely = model.predict_proba(graph).gather(1, states[:, None])[:, 0]
        assert torch.allclose(torch.tensor([float(row["probability"]) for row in rows]), likely, atol=1e-5)
    stored = json.loads((run / "results.json").read_text())["test"]
    for data in ("cora", tmp_path / "graphs"):
        assert call("evaluate", run, data, "--out", tmp_path / "scores.json").exit_code == 0
        assert json.loads((tmp_path / "scores.json").read_text()) == stored, data


def test_standardised_files_have_the_very_numbers_of_the_benchmark(small_cora):
    source = sources.load_source("cora", "standardised")
    for raw, treated in zip(load_benchmark("cora*", "raw").test, source.bench.test, strict=True):
        assert torch.equal(source.scaling.apply(raw).x, treated.x)


def test_features_are_the_users_or_the_presets_or_the_benchmarks(small_cora, tmp_path):
    given = {"paper": ["--preset", "paper"], "accord": [], "own": ["--preset", "paper", "--features", "raw"]}
    for name, arguments in given.items():
        quick = [*QUICK, "--max-epochs", "1", "--method", "gnn"]
        assert call("fit", "Cora", "--run", tmp_path / name, *quick, *arguments).exit_code == 0
    found = {name: json.loads((tmp_path / name / "config.json").read_text())["settings"]["features"] for name in given}
    assert found == {"paper": "row-normalised", "accord": "raw", "own": "raw"}
    assert {name: (tmp_path / name / "features.npz").is_file() for name in given} == {
        "paper": True,
        "accord": False,
        "own": False,
    }
