"""The PPI table: each seed is run and stored once, and compared with the paper."""

import json
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from torch_geometric.data import Data

from accord.datasets import load_benchmark
from accord.errors import OptionError
from accord.experiments import _ppi, read_result, reproduce_ppi
from accord.experiments._paper import paper_ppi_score
from accord.learning import CombinationGrid

pytestmark = pytest.mark.data("ppi_recon.npz")
TASKS, NODES = 3, 200
STORED = Path(__file__).parents[2] / "results" / "ppi"


def part(graph):
    """The first nodes and labels of a graph."""
    inside = (graph.edge_index < NODES).all(0)
    return Data(x=graph.x[:NODES], edge_index=graph.edge_index[:, inside], y=graph.y[:NODES, :TASKS])


@pytest.fixture
def small(monkeypatch):
    """Three labels, parts of the graphs, two candidates."""
    bench = load_benchmark("ppi-1")
    graphs = {name: [part(graph) for graph in getattr(bench, name)] for name in ("train", "val", "test")}
    bench = replace(bench, num_tasks=TASKS, **graphs)
    monkeypatch.setattr(_ppi, "load_benchmark", lambda name: bench)
    monkeypatch.setattr(_ppi, "DENSE_GRID", CombinationGrid(sharpness=(1.0, 0.0), power=(0.1,), node_weight=(1.0,)))
    return bench


def test_each_seed_is_stored_and_compared_with_the_paper(small, tmp_path):
    jobs = []

    def announce(job, row):
        jobs.append(job) if row is None else None

    reproduce_ppi(tmp_path, ["ppi-1"], ["gcn"], seeds=(1,), max_epochs=2, accelerator="cpu", announce=announce)
    text = reproduce_ppi(tmp_path, ["ppi-1"], ["gcn"], seeds=(1, 2), max_epochs=2, accelerator="cpu", announce=announce)
    assert jobs == ["ppi-1 gcn seed 1", "ppi-1 gcn seed 2"]  # stored seeds are not run again
    stored = json.loads((tmp_path / "ppi-1-gcn.json").read_text())
    assert stored["seeds"] == [1, 2]
    assert set(stored["scores"]) == {"gnn", "spn", "picked"}
    assert all(len(stored["scores"][way][name]) == 2 for way in stored["scores"] for name in ("accuracy", "f1"))
    assert f"{paper_ppi_score('accuracy', 'spn', 'gcn', 'ppi-1').mean:.1f}" in text
    assert "2 epochs" in (tmp_path / "README.md").read_text()


def test_seeds_of_another_recipe_do_not_mix(small, tmp_path):
    reproduce_ppi(tmp_path, ["ppi-1"], ["gcn"], seeds=(1,), max_epochs=1, accelerator="cpu")
    for seed in (1, 2):
        with pytest.raises(OptionError, match="another recipe"):
            reproduce_ppi(tmp_path, ["ppi-1"], ["gcn"], seeds=(seed,), max_epochs=2, accelerator="cpu")


@pytest.mark.parametrize("path", sorted(STORED.glob("ppi-*.json")), ids=lambda path: path.stem)
def test_committed_results_can_be_extended_by_seeds(path):
    stored = read_result(path)
    recipe = _ppi.ppi_recipe(stored.encoder, stored.benchmark)
    training = replace(recipe.training, precision=stored.recipe["training"]["precision"])  # that of a GPU
    assert _ppi.same_experiment(stored, replace(recipe, training=training))
    assert not _ppi.same_experiment(stored, replace(recipe, damping=0.9))


def test_all_tasks_are_counted_together():
    labels = torch.tensor([[1, 0, 1], [0, 0, 1]])
    truth = torch.tensor([[1, 1, 0], [0, -1, 1]])  # hits 2, labelled 1 three times, true 1 three times
    assert _ppi.measure_tasks(labels, truth) == {"accuracy": [3 / 5], "f1": [2 * 2 / (3 + 3)]}


def test_other_data_sets_are_refused(tmp_path):
    with pytest.raises(OptionError, match="benchmark 'cora\\*' is not in this table"):
        reproduce_ppi(tmp_path, ["cora*"])
