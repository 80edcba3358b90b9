import json
import shutil

import pytest
import torch
from support.command_line import call, make_graph, refused

from accord.datasets import read_graphs, write_graph
from accord.estimator import NodeClassifier


def test_the_test_split_gives_the_scores_of_the_run(trained, data_folder, tmp_path):
    result = call("evaluate", trained, data_folder, "--out", tmp_path / "deep" / "scores.json")
    assert result.exit_code == 0
    for word in ("GNN", "edge GNN", "SPN", "node accuracy", "graph accuracy", "unseen nodes", "6 graphs"):
        assert word in result.stdout, word
    scores = json.loads((tmp_path / "deep" / "scores.json").read_text())
    assert scores == json.loads((trained / "results.json").read_text())["test"]
    model = NodeClassifier.load(trained)
    graphs = read_graphs(data_folder / "test", model.label_names)
    for level in ("node", "graph"):
        assert scores["spn"][f"{level}_accuracy"] == pytest.approx(model.score(graphs, level), abs=1e-6)  # rounded


def test_a_saved_model_is_scored_like_its_run(trained, data_folder, tmp_path):
    NodeClassifier.load(trained).save(tmp_path / "saved")
    for data in (data_folder, data_folder / "test" / "g01.npz"):
        for name, folder in (("run", trained), ("saved", tmp_path / "saved")):
            assert call("evaluate", folder, data, "--out", tmp_path / f"{name}.json").exit_code == 0
        of_run, of_saved = (json.loads((tmp_path / f"{name}.json").read_text()) for name in ("run", "saved"))
        for part in of_run.values():
            part.pop("unseen_accuracy", None)  # only a run keeps which nodes were in training
        assert of_saved == of_run


@pytest.mark.parametrize("split", ["train", "val"])
def test_a_split_equals_its_folder(trained, data_folder, split):
    by_split = call("evaluate", trained, data_folder, "--split", split)
    directly = call("evaluate", trained, data_folder / split)
    assert by_split.exit_code == directly.exit_code == 0
    assert by_split.stdout.splitlines()[1:] == directly.stdout.splitlines()[1:]


def test_one_graph_can_be_scored(trained, data_folder):
    assert "1 graph" in call("evaluate", trained, data_folder / "test" / "g01.npz").stdout


def test_an_unknown_label_is_named(trained, tmp_path):
    graph = make_graph(1)
    write_graph(graph, tmp_path / "g", ["apple", "banana", "quince"])
    message = refused("evaluate", trained, tmp_path / "g")
    assert "the label 'banana' is unknown. Known from training: apple, pear, quince" in message
    graph.y[0] = 3
    write_graph(graph, tmp_path / "h.npz")
    assert "there are states 0 to 2" in refused("evaluate", trained, tmp_path / "h.npz")


def test_numbers_in_files_are_states(trained, data_folder, tmp_path):
    for number in range(6):
        write_graph(make_graph(200 + number if number else 0), tmp_path / f"g{number}.npz")
    named, numbered = call("evaluate", trained, data_folder / "test"), call("evaluate", trained, tmp_path)
    assert named.stdout.splitlines()[1:] == numbered.stdout.splitlines()[1:]


def test_graphs_that_cannot_be_scored_are_refused(trained, data_folder, tmp_path):
    assert "--split 'best' is unknown" in refused("evaluate", trained, data_folder, "--split", "best")
    write_graph(make_graph(1, with_labels=False), tmp_path / "g.npz")
    assert "Error: the graphs have no labels to compare with" in refused("evaluate", trained, tmp_path / "g.npz")
    part = shutil.copytree(data_folder, tmp_path / "part")
    shutil.rmtree(part / "val")
    assert "has no folder val/" in refused("evaluate", trained, part, "--split", "val")
    graph = make_graph(1)
    graph.y = torch.stack([graph.y, graph.y], 1)
    write_graph(graph, tmp_path / "two.npz")
    assert "2 labels a node, the model was trained on 1" in refused("evaluate", trained, tmp_path / "two.npz")


@pytest.mark.parametrize("content", [b"", b"PK\x03\x04 damaged", None])
def test_damaged_ids_of_training_nodes_are_refused(trained, data_folder, tmp_path, content):
    run = shutil.copytree(trained, tmp_path / "run")
    whole = (run / "seen_nodes.npz").read_bytes()
    (run / "seen_nodes.npz").write_bytes(whole.replace(b"node_id", b"node_ie") if content is None else content)
    assert "seen_nodes.npz: is damaged" in refused("evaluate", run, data_folder)
