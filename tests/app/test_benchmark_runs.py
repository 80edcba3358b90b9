"""Runs on benchmarks: Python and the command line treat features in the same way."""

import csv
import io
import json

import numpy as np
import pytest
import torch
from sklearn.base import clone
from support.command_line import QUICK, call

from accord.datasets import load_benchmark, write_graph
from accord.estimator import NodeClassifier


@pytest.fixture
def small_cora(tmp_path, monkeypatch):
    """A ring with chords in place of Cora: ego networks overlap, and features have very different scales."""
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


def labels_and_probabilities(text):
    rows = list(csv.DictReader(io.StringIO(text)))
    return [row["label"] for row in rows], [float(row["probability"]) for row in rows]


@pytest.mark.parametrize("features", ["auto", "raw", "row-normalised", "standardised"])
def test_python_and_the_command_line_agree_to_the_bit_on_raw_graphs(small_cora, tmp_path, features):
    run = tmp_path / "run"
    assert call("fit", "cora", "--run", run, *QUICK, "--features", features, "--preset", "paper").exit_code == 0
    model = NodeClassifier.load(run)
    assert model.treatment_.name == {"auto": "row-normalised"}.get(features, features)
    for number, graph in enumerate(load_benchmark("cora", "raw").test):
        write_graph(graph, tmp_path / "graphs" / f"g{number}.npz")
        shown = call("predict", run, tmp_path / "graphs" / f"g{number}.npz").stdout
        labels, probabilities = labels_and_probabilities(shown)
        states = model.predict(graph)
        assert labels == [model.label_names[state] for state in states]
        likely = model.predict_proba(graph).gather(1, states[:, None])[:, 0]
        assert probabilities == [round(value, 6) for value in likely.double().tolist()]
        treated = load_benchmark("cora", model.treatment_.name).test[number]
        assert torch.equal(model.predict(treated), states)  # treated graphs are not treated twice
    stored = json.loads((run / "results.json").read_text())["test"]
    for data in ("cora", tmp_path / "graphs"):
        assert call("evaluate", run, data, "--out", tmp_path / "scores.json").exit_code == 0
        assert json.loads((tmp_path / "scores.json").read_text()) == stored, data


@pytest.mark.filterwarnings("ignore::accord.errors.ConvergenceWarning")  # marginals must be equal here, not good
@pytest.mark.parametrize("features", ["raw", "row-normalised", "standardised"])
def test_a_model_trained_in_python_equals_the_command_lines(small_cora, tmp_path, features):
    run = tmp_path / "run"
    assert call("fit", "cora", "--run", run, *QUICK, "--features", features).exit_code == 0
    untrained = NodeClassifier(
        encoder="mlp", level="graph", max_epochs=15, benchmark="Cora", accelerator="cpu", num_states=7
    )
    bench, treated = load_benchmark("cora", "raw"), load_benchmark("cora", features)
    loaded = NodeClassifier.load(run)
    model = clone(untrained).set_params(features=features).fit(bench.train, bench.val)
    again = clone(untrained).fit(treated.train, treated.val)  # takes over the treatment that the graphs carry
    for raw, graph in zip(bench.test, treated.test, strict=True):
        expected = loaded.predict_proba(raw)
        for other in (model, again):
            assert torch.equal(other.predict_proba(raw), expected) and torch.equal(other.predict_proba(graph), expected)


def test_features_auto_is_the_presets_choice_or_the_benchmarks(small_cora, tmp_path):
    given = {"paper": ["--preset", "paper"], "accord": [], "own": ["--preset", "paper", "--features", "raw"]}
    for name, arguments in given.items():
        quick = [*QUICK, "--max-epochs", "1", "--method", "gnn"]
        assert call("fit", "Cora", "--run", tmp_path / name, *quick, *arguments).exit_code == 0
    found = {name: json.loads((tmp_path / name / "config.json").read_text())["settings"]["features"] for name in given}
    assert found == {"paper": "row-normalised", "accord": "raw", "own": "raw"}
    assert {name: NodeClassifier.load(tmp_path / name).treatment_.name for name in given} == found
