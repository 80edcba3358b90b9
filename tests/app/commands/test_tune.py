"""`accord tune`: search, files, the winner's run, and the recipe file in `accord fit` and `NodeClassifier`."""

import json
import shutil
import subprocess
import sys
from dataclasses import replace

import pytest
import torch
from support.command_line import call, make_data, refused

from accord import NodeClassifier
from accord.datasets import read_folder, read_graphs, write_graph
from accord.errors import InputError
from accord.learning.training import Trainer
from accord.tuning import read_recipe
from accord.tuning.trials._finals import Finals
from accord.tuning.trials._search import _Search

QUICK = ["--trials", "4", "--max-epochs", "6", "--encoder", "mlp", "--features", "raw", "--accelerator", "cpu"]


@pytest.fixture(scope="module")
def tuned(data_folder, tmp_path_factory):
    run = tmp_path_factory.mktemp("runs") / "tuned"
    result = call("tune", data_folder, "--run", run, *QUICK)
    assert result.exit_code == 0, result.output
    return run, result


def rows(run):
    found = json.loads((run / "search" / "trials.json").read_text())
    return [{key: value for key, value in row.items() if key != "seconds"} for row in found]


def test_a_search_writes_table_plot_recipe_and_a_run(tuned, data_folder):
    run, result = tuned
    assert "node and edge network, by validation data" in result.output and "Report:" in result.output
    names = {path.name for path in (run / "search").iterdir()}
    assert {"table.md", "trials.json", "trials.png", "recipe.json", "trials", "search.json"} <= names
    assert "| 0+0 |" in (run / "search" / "table.md").read_text()
    results = json.loads((run / "results.json").read_text())
    assert results["test"]["spn"]["node_accuracy"] > 0.5
    graph = next((data_folder / "test").iterdir())
    assert call("predict", run, graph).exit_code == 0


@pytest.mark.parametrize("default", [False, True], ids=["winner", "default"])
def test_the_recipe_file_gives_the_same_model_everywhere(default, data_folder, tmp_path, monkeypatch):
    monkeypatch.setattr(Finals, "default_wins", default)
    run = tmp_path / "tuned"
    assert call("tune", data_folder, "--run", run, *QUICK).exit_code == 0
    file = run / "search" / "recipe.json"
    result = call("fit", data_folder, "--run", tmp_path / "fit", "--recipe", file, "--accelerator", "cpu")
    assert result.exit_code == 0, result.output
    data = read_folder(data_folder)
    direct = NodeClassifier(recipe=str(file), label_names=data.label_names, accelerator="cpu").fit(data.train, data.val)
    recipe = read_recipe(file).recipe
    for model in (NodeClassifier.load(tmp_path / "fit"), direct, NodeClassifier.load(run)):
        assert model.recipe_.encoder == recipe.encoder and model.recipe_.edge == recipe.edge
        for graph in data.test:
            torch.testing.assert_close(model.predict_proba(graph), direct.predict_proba(graph), rtol=1e-4, atol=1e-5)
    configs = [json.loads((place / "config.json").read_text()) for place in (tmp_path / "fit", run)]
    assert configs[0]["recipe"] == configs[1]["recipe"]
    assert default or configs[0] == configs[1], "the default model's run has the settings of accord fit"


def test_the_same_command_again_repeats_nothing(tuned, data_folder):
    run, _ = tuned
    before = {path: path.stat().st_mtime_ns for path in (run / "search" / "trials").iterdir()}
    again = call("tune", data_folder, "--run", run, *QUICK)
    assert again.exit_code == 0 and "already finished" in again.output
    assert before == {path: path.stat().st_mtime_ns for path in (run / "search" / "trials").iterdir()}


@pytest.mark.matrix
def test_workers_of_a_running_cluster_find_the_same(tuned, data_folder, tmp_path, ray_cluster):
    """As a command of its own, since this process is connected to the cluster already."""
    cluster = ray_cluster.get_runtime_context().gcs_address
    asked = ["tune", data_folder, "--run", tmp_path, *QUICK, "--engine", "ray", "--workers", 4, "--address", cluster]
    result = subprocess.run([sys.executable, "-m", "accord", *map(str, asked)], capture_output=True, text=True)
    assert result.returncode == 0 and "Report:" in result.stdout, result.stderr
    # The number of threads decides on rounding.
    assert rows(tmp_path) == [row | {"loss": pytest.approx(row["loss"], abs=1e-5)} for row in rows(tuned[0])]
    recipes = [read_recipe(run / "search" / "recipe.json").recipe for run in (tuned[0], tmp_path)]
    assert recipes[0] == recipes[1]


def test_test_labels_change_nothing(tuned, data_folder, tmp_path):
    other = shutil.copytree(data_folder, tmp_path / "data")
    for graph, path in zip(read_graphs(other / "test"), sorted((other / "test").iterdir()), strict=True):
        names = graph.label_names
        graph.y = (graph.y + 1) % len(names)
        write_graph(graph, path, names)
    run = tmp_path / "run"
    assert call("tune", other, "--run", run, *QUICK).exit_code == 0
    assert rows(run) == rows(tuned[0])
    assert (run / "search" / "recipe.json").read_bytes() == (tuned[0] / "search" / "recipe.json").read_bytes()
    assert (run / "model.safetensors").read_bytes() == (tuned[0] / "model.safetensors").read_bytes()


def test_without_validation_graphs_some_training_graphs_are_held_out(tmp_path):
    data = make_data(tmp_path / "data")
    shutil.rmtree(data / "val")
    result = call("tune", data, "--run", tmp_path / "run", *QUICK, "--trials", "1", "--method", "gnn")
    assert result.exit_code == 0, result.output


def test_an_encoder_that_is_asked_for_is_the_only_one(data_folder, tmp_path):
    """The default encoder, named, is not left open."""
    quick = ["--trials", "4", "--max-epochs", "1", "--method", "gnn", "--accelerator", "cpu"]
    assert call("tune", data_folder, "--run", tmp_path / "run", "--encoder", "gcnii", *quick).exit_code == 0
    assert {row["recipe"]["encoder"]["kind"] for row in rows(tmp_path / "run")} == {"gcnii"}


def test_what_a_recipe_file_sets_cannot_be_set_twice(tuned, data_folder, tmp_path):
    file = tuned[0] / "search" / "recipe.json"
    line = refused("fit", data_folder, "--run", tmp_path / "x", "--recipe", file, "--encoder", "gcn")
    assert "Leave out --encoder" in line


def test_other_files_are_no_recipes(data_folder, tmp_path):
    assert "there is no such recipe file" in refused("fit", data_folder, "--recipe", tmp_path / "none.json")
    wrong = tmp_path / "wrong.json"
    for text in ("[]", "{", '{"method": "spn", "features": "raw", "recipe": {"method": "gnn"}}'):
        wrong.write_text(text)
        with pytest.raises(InputError, match="wrong.json|recipe"):
            read_recipe(wrong)
    assert "impossible" not in refused("tune", data_folder, "--run", tmp_path / "x", "--trials", "0")


def test_a_search_alone_writes_the_recipe_and_no_model(data_folder, tmp_path):
    run = tmp_path / "run"
    few = ["--trials", "2", "--max-epochs", "3", *QUICK[4:]]
    result = call("tune", data_folder, "--run", run, *few, "--search-only")
    assert result.exit_code == 0 and "Recipe:" in result.output and "Report:" not in result.output
    recipe = read_recipe(run / "search" / "recipe.json")
    assert not (run / "model.json").exists() and not (run / "results.json").exists()
    assert call("tune", data_folder, "--run", run, *few).exit_code == 0
    assert NodeClassifier.load(run).recipe_.encoder == recipe.recipe.encoder, "the winner is trained without a search"


def test_the_run_is_the_default_s_where_the_search_finds_nothing_better(data_folder, tmp_path, monkeypatch):
    """A winner that there is no time to train loses; the run is then that of `accord fit`."""
    monkeypatch.setattr(_Search, "winner_training", lambda self, winner, training: replace(training, max_epochs=0))
    few = ["--trials", "2", "--max-epochs", "30", *QUICK[4:]]
    result = call("tune", data_folder, "--run", tmp_path / "tuned", *few)
    assert result.exit_code == 0 and "the default model is kept" in result.output
    assert "the default model is kept" in (tmp_path / "tuned" / "search" / "table.md").read_text()
    assert call("fit", data_folder, "--run", tmp_path / "fit", *few[2:]).exit_code == 0
    for name in ("model.safetensors", "config.json"):
        assert (tmp_path / "tuned" / name).read_bytes() == (tmp_path / "fit" / name).read_bytes()
    again = call("tune", data_folder, "--run", tmp_path / "tuned", *few)
    assert again.exit_code == 0 and "already finished" in again.output


def test_what_was_compared_is_not_trained_again_for_the_run(data_folder, tmp_path, monkeypatch):
    epochs = []
    train_epoch = Trainer.train_epoch

    def counted(self, batches):
        epochs.append(str(self.path.relative_to(tmp_path)))
        return train_epoch(self, batches)

    monkeypatch.setattr(Trainer, "train_epoch", counted)
    assert call("tune", data_folder, "--run", tmp_path / "run", *QUICK).exit_code == 0
    assert epochs and all(path.startswith("run/search") for path in epochs), "nothing is trained in the run itself"


def test_too_little_time_for_a_comparison_is_told(data_folder, tmp_path):
    few = ["--trials", "2", "--max-epochs", "3", *QUICK[4:], "--minutes", "0.00001"]
    result = call("tune", data_folder, "--run", tmp_path / "run", *few)
    assert result.exit_code == 0 and "may be worse than what accord fit gives" in result.output
    assert "not compared with it" in (tmp_path / "run" / "search" / "table.md").read_text()
