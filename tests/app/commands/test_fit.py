import csv
import json
import shutil
import subprocess
import sys

import pytest
import torch
from support.command_line import NAMES, QUICK, call, make_data, make_graph, refused

from accord.app import progress
from accord.app.commands import fit
from accord.app.settings import FitSettings
from accord.datasets import TriplesOptions, make_triples, read_folder, read_graph, write_graph
from accord.estimator import NodeClassifier
from accord.methods import TriangleModel

FILES = {
    ".lock",
    "README.md",
    "cases.json",
    "config.json",
    "curves.png",
    "metrics.csv",
    "model.json",
    "model.safetensors",
    "report.html",
    "results.json",
    "seen_nodes.npz",
}


def rows_of(path):
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


def test_a_run_writes_all_its_files(trained):
    assert {path.name for path in trained.iterdir() if path.is_file()} == FILES
    config = json.loads((trained / "config.json").read_text())
    assert config["settings"]["encoder"] == "mlp"
    assert config["settings"]["level"] == "node"
    assert config["data"]["graphs"] == {"train": 12, "val": 4, "test": 6}
    assert config["label_names"] == ["apple", "pear", "quince"]
    assert set(config["versions"]) >= {"accord", "torch"}
    rows = rows_of(trained / "metrics.csv")
    assert [row["epoch"] for row in rows] == ["0", "5", "10", "15"]
    assert rows[0]["node_loss"] == "" and float(rows[-1]["edge_loss"]) > 0


def test_the_results_have_scores_of_all_parts(trained):
    results = json.loads((trained / "results.json").read_text())
    assert list(results["test"]) == ["gnn", "edge", "spn"]
    for scores in results["test"].values():
        assert set(scores) == {"node_accuracy", "graph_accuracy", "ece", "unseen_accuracy"}
        assert all(0 <= value <= 1 for value in scores.values())
    assert results["chosen"]["sharpness"]


def test_the_model_is_loaded_from_the_run_folder(trained, data_folder):
    model = NodeClassifier.load(trained)
    assert model.label_names == ["apple", "pear", "quince"]
    assert model.predict(read_graph(data_folder / "test" / "g01.npz", model.label_names)).shape == (7,)


def test_a_finished_run_is_shown_and_not_repeated(trained, data_folder):
    before = {path.name: path.read_bytes() for path in trained.iterdir() if path.is_file()}
    again = call("fit", data_folder, "--run", trained, *QUICK)
    assert again.exit_code == 0
    assert "is already finished" in again.stderr
    assert "SPN" in again.stdout and "report.html" in again.stdout
    assert before == {path.name: path.read_bytes() for path in trained.iterdir() if path.is_file()}


def test_other_settings_in_the_same_folder_are_refused(trained, data_folder):
    message = refused("fit", data_folder, "--run", trained, *QUICK, "--seed", "7")
    assert "settings.seed is 0 there, 7 here" in message and "--run" in message


def test_other_data_in_the_same_folder_is_refused(trained, data_folder, tmp_path):
    changed = shutil.copytree(data_folder, tmp_path / "fruit")
    graph = read_graph(changed / "test" / "g01.npz")
    graph.x[0, 0] += 1
    write_graph(graph, changed / "test" / "g01.npz", graph.label_names)
    assert "data.fingerprint.test is" in refused("fit", changed, "--run", trained, *QUICK)


def test_data_may_move(trained, data_folder, tmp_path):
    moved = shutil.copytree(data_folder, tmp_path / "elsewhere")
    assert call("fit", moved, "--run", trained, *QUICK).exit_code == 0


def test_a_folder_with_something_else_in_it_is_left_alone(data_folder, tmp_path):
    (tmp_path / "thesis.tex").write_text("years of work")
    assert "is not empty and contains no run" in refused("fit", data_folder, "--run", tmp_path, *QUICK)
    assert [path.name for path in tmp_path.iterdir()] == ["thesis.tex"]
    assert "is a file" in refused("fit", data_folder, "--run", tmp_path / "thesis.tex", *QUICK)


def test_options_of_training_leave_everything_else_to_the_data(data_folder, tmp_path):
    quick, run = ["--max-epochs", "2", "--accelerator", "cpu"], tmp_path / "run"
    changed = ["--set", "training.clusters=2", "--set", "training.batch_clusters=1"]
    assert call("fit", data_folder, "--run", run, *quick, *changed).exit_code == 0
    config = json.loads((run / "config.json").read_text())
    assert (config["recipe"]["training"]["clusters"], config["recipe"]["training"]["batch_clusters"]) == (2, 1)
    tried = json.loads((run / "results.json").read_text())["candidates"]
    assert {row["kind"] for row in tried if row["network"] == "node"} == {"gcnii", "sage", "gcn", "mlp"}
    one = call("fit", data_folder, "--run", tmp_path / "one", *quick, *changed, "--set", "node.learning_rate=0.01")
    assert one.exit_code == 0
    assert json.loads((tmp_path / "one" / "results.json").read_text())["candidates"] == []


@pytest.mark.parametrize(
    ("more", "last"),
    [
        (["--set", "training.checkpoint_every=5"], "10"),  # in the first of several candidates
        ([], "25"),  # in the second of several candidates
    ],
)
def test_a_stopped_run_continues_to_the_same_result(more, last, data_folder, tmp_path, monkeypatch):
    whole, run = tmp_path / "whole", tmp_path / "run"
    assert call("fit", data_folder, "--run", whole, *QUICK, *more).exit_code == 0
    report = progress.TrainingProgress.__call__

    def stop(self, row):
        report(self, row)
        if row["epoch"] == int(last):
            raise KeyboardInterrupt

    monkeypatch.setattr(progress.TrainingProgress, "__call__", stop)
    stopped = call("fit", data_folder, "--run", run, *QUICK, *more)
    assert stopped.exit_code == 130 and "Run the same command again to continue" in stopped.stderr
    # The last row was written, its checkpoint was not.
    assert rows_of(run / "metrics.csv")[-1]["epoch"] == last
    assert "has no model yet" in refused("predict", run, data_folder / "test" / "g01.npz")

    monkeypatch.undo()
    resumed = call("fit", data_folder, "--run", run, *QUICK, *more)
    assert resumed.exit_code == 0 and "Continuing from the checkpoint" in resumed.stderr
    for name in ("metrics.csv", "cases.json", "model.safetensors"):
        assert (run / name).read_bytes() == (whole / name).read_bytes(), name
    kept = ("test", "reliability", "chosen")
    after, before = (json.loads((path / "results.json").read_text()) for path in (run, whole))
    assert {key: after[key] for key in kept} == {key: before[key] for key in kept}


def test_a_run_that_was_killed_before_its_report_gets_it(trained, data_folder, tmp_path, monkeypatch):
    run = shutil.copytree(trained, tmp_path / "run")
    for name in ("results.json", "report.html", "curves.png"):
        (run / name).unlink()

    def killed(*arguments):
        raise KeyboardInterrupt

    monkeypatch.setattr(fit, "write_report", killed)
    assert call("fit", data_folder, "--run", run, *QUICK).exit_code == 130
    assert (run / "results.json").is_file() and not (run / "report.html").exists()
    monkeypatch.undo()
    assert "is already finished" in call("fit", data_folder, "--run", run, *QUICK).stderr
    assert (run / "report.html").is_file() and (run / "curves.png").is_file()


@pytest.mark.parametrize("place", [0, 7, 40, 60, -1])
def test_a_damaged_byte_of_the_metrics_is_repaired_by_the_end(trained, data_folder, tmp_path, place):
    run = shutil.copytree(trained, tmp_path / "run")
    (run / "results.json").unlink()
    damaged = bytearray((run / "metrics.csv").read_bytes())
    damaged[place] ^= 0x80
    (run / "metrics.csv").write_bytes(damaged)
    again = call("fit", data_folder, "--run", run, *QUICK)
    assert again.exit_code == 0 and "Continuing from the checkpoint" in again.stderr
    assert (run / "metrics.csv").read_bytes() == (trained / "metrics.csv").read_bytes()


def test_two_processes_do_not_share_a_run(trained, data_folder, tmp_path):
    run = shutil.copytree(trained, tmp_path / "run")
    hold = "import sys; from pathlib import Path; from accord._files import locked\nwith locked(Path(sys.argv[1])):\n"
    command = [sys.executable, "-c", f"{hold}    print('held', flush=True); sys.stdin.read()", str(run)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as holder:
        assert holder.stdout.readline() == b"held\n"
        before = {path.name: path.read_bytes() for path in run.iterdir() if path.is_file()}
        for arguments in (["fit", data_folder, "--run", run, *QUICK, "--seed", "2"], ["report", run]):
            assert f"run: is in use by process {holder.pid}." in refused(*arguments)
        assert before == {path.name: path.read_bytes() for path in run.iterdir() if path.is_file()}
        holder.kill()
    assert call("fit", data_folder, "--run", run, *QUICK).exit_code == 0


def test_remains_of_a_killed_process_do_not_matter(data_folder, tmp_path):
    run = tmp_path / "run"
    ended = subprocess.Popen([sys.executable, "-c", ""])
    ended.wait()
    left = [run / f".config.json.{ended.pid}", run / "stage" / f".checkpoint.safetensors.{ended.pid}"]
    left[0].mkdir(parents=True)
    (left[0] / "new").write_text("{")
    (run / ".lock").write_text(f"{ended.pid}\n")
    assert call("fit", data_folder, "--run", run, *QUICK, "--max-epochs", "1").exit_code == 0
    assert not left[0].exists()
    left[1].mkdir(parents=True)
    (left[1] / ".tmpAbCdEf").write_text("48 MB")
    assert call("fit", data_folder, "--run", run, *QUICK, "--max-epochs", "1").exit_code == 0
    assert not left[1].exists()


def test_names_of_folders_may_contain_markup(tmp_path):
    data = make_data(tmp_path / "[red]fruit[-1]", train=4, val=2, test=1)
    run = tmp_path / "[bold]run" / "[" / "]"
    done = call("fit", data, "--run", run, *QUICK, "--max-epochs", "1")
    assert "[red]fruit[-1]: 4 training" in done.stderr and "[red]fruit[-1], 1 test" in done.stdout
    assert f"Report: {run / 'report.html'}" in done.stdout
    assert "[bold]run/[/] is already finished" in call("fit", data, "--run", run, *QUICK, "--max-epochs", "1").stderr
    assert f"Report: {run / 'report.html'}" in call("report", run).stdout
    out = tmp_path / "[x]" / "labels.csv"
    out.parent.mkdir()
    assert f"written to {out}" in call("predict", run, data / "test" / "g00.npz", "--out", out).stderr
    assert "[red]fruit[-1]: 1 graph" in call("evaluate", run, data).stdout


def test_test_labels_change_only_the_final_score(trained, data_folder, tmp_path):
    permuted = shutil.copytree(data_folder, tmp_path / "fruit")
    for path in (permuted / "test").iterdir():
        graph = read_graph(path, ["apple", "pear", "quince"])
        graph.y = (graph.y + 1) % 3
        write_graph(graph, path, ["apple", "pear", "quince"])
    assert call("fit", permuted, "--run", tmp_path / "run", *QUICK).exit_code == 0
    for name in ("model.safetensors", "model.json", "metrics.csv", "curves.png"):
        assert (tmp_path / "run" / name).read_bytes() == (trained / name).read_bytes(), name
    after, before = (json.loads((path / "results.json").read_text()) for path in (tmp_path / "run", trained))
    assert after["chosen"] == before["chosen"]
    assert after["test"]["spn"]["node_accuracy"] < before["test"]["spn"]["node_accuracy"]


def test_validation_and_test_graphs_are_optional(tmp_path):
    data = make_data(tmp_path / "data", train=6, val=0, test=0)
    result = call("fit", data, "--run", tmp_path / "run", "--method", "gnn", *QUICK)
    assert result.exit_code == 0, result.output
    assert "a fifth of the training data is held out" in result.stderr
    assert "no labelled test graphs" in (tmp_path / "run" / "report.html").read_text()


def test_the_treatment_of_features_is_kept_with_the_run(tmp_path):
    data = make_data(tmp_path / "data", train=6, val=2, test=2)
    for path in sorted(data.glob("*/*")):
        graph = read_graph(path, ["apple", "pear", "quince"])
        graph.x = graph.x * torch.tensor([1.0, 1e4, 1e-2]) + 50
        write_graph(graph, path, ["apple", "pear", "quince"])
    hinted = call("fit", data, "--run", tmp_path / "raw", *QUICK, "--max-epochs", "1", "--features", "raw")
    assert "--features standardised may improve results" in hinted.stderr
    run = tmp_path / "run"
    assert call("fit", data, "--run", run, *QUICK, "--features", "standardised").exit_code == 0
    scores = tmp_path / "scores.json"
    assert call("evaluate", run, data, "--out", scores).exit_code == 0
    stored = json.loads((run / "results.json").read_text())["test"]
    assert json.loads(scores.read_text()) == stored
    assert call("predict", run, data / "test" / "g01.npz").stdout.startswith("node,label,probability\n0,")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--method", "svm"], "Error: method 'svm' is unknown"),
        (["--method", "gnn", "--refine"], "Error: method 'gnn' has no refinement. Leave out --refine."),
        (["--encoder", "resnet"], "Error: encoder 'resnet' is unknown"),
        (["--level", "edge"], "Error: level 'edge' is unknown"),
        (["--preset", "none"], "Error: preset 'none' is unknown"),
        (["--features", "bleached"], "Error: features 'bleached' is unknown"),
        (["--max-epochs", "-1"], "Error: max_epochs is -1"),
        (["--seed", "-1"], "Error: seed is -1"),
        (["--set", "training.precision=8"], "Error: recipe.training: precision 8 is unknown"),
        (["--set", "node.rate=1"], "recipe.node: the key 'rate' is unknown. Known keys: learning_rate"),
        (["--set", "encoder=7"], "recipe.encoder: is 7"),
        (["--set", "grid.sharpness=3"], "Error: recipe.grid: sharpness is 3"),
        (["--set", "consistency=abc"], "Error: recipe: consistency is 'abc'"),
        (["--set", "bogus"], "write key=value"),
        (["--accelerator", "abacus"], "Error: accelerator 'abacus' is unknown"),
    ],
)
def test_bad_settings_are_refused_before_a_file_is_written(data_folder, tmp_path, arguments, message):
    assert message in refused("fit", data_folder, "--run", tmp_path / "run", *QUICK, *arguments)
    assert not (tmp_path / "run").exists()


def test_missing_data_is_refused(tmp_path):
    message = refused("fit", tmp_path / "none", *QUICK)
    assert "is neither a folder nor a benchmark" in message and "cora*" in message and "digits" in message
    (tmp_path / "train").mkdir()
    assert "train: the folder is empty" in refused("fit", tmp_path, *QUICK)


@pytest.mark.parametrize(
    ("method", "parts", "explanation"),
    [
        ("crf", ["gnn", "edge", "crf"], "node scores alone"),
        ("gmnn", ["gnn", "gmnn"], "label network"),
        ("smooth", ["gnn", "smooth"], "Smoothed GNN"),
        ("spn", ["gnn", "edge", "spn"], "joint labels of the whole field"),
    ],
)
def test_every_method_can_be_trained_evaluated_and_used(method, parts, explanation, data_folder, tmp_path):
    refine = ["--refine", "--set", "refinement.max_epochs=5"] if method == "spn" else []
    done = call("fit", data_folder, "--method", method, *refine, *QUICK, "--run", tmp_path / "run")
    results = json.loads((tmp_path / "run" / "results.json").read_text())
    assert list(results["test"]) == parts
    assert explanation in (tmp_path / "run" / "report.html").read_text()
    assert "Report:" in done.stdout
    again = call("evaluate", tmp_path / "run", data_folder).stdout
    assert f"{100 * results['test'][parts[-1]]['node_accuracy']:.1f} %" in again
    assert call("predict", tmp_path / "run", data_folder / "test" / "g01.npz").stdout.startswith("node,")


def test_a_method_of_several_stages_continues_and_keeps_its_metrics(data_folder, tmp_path):
    arguments = ["fit", data_folder, "--method", "gmnn", *QUICK, "--set", "training.checkpoint_every=5"]
    call(*arguments, "--run", tmp_path / "whole")
    call(*arguments, "--run", tmp_path / "run")
    for name in ("model.safetensors", "results.json"):  # as if it had been stopped in its last stage
        (tmp_path / "run" / name).unlink()
    shutil.rmtree(tmp_path / "run" / "inference-2")
    again = call(*arguments, "--run", tmp_path / "run")
    assert "Continuing from the checkpoint" in again.stderr
    assert rows_of(tmp_path / "run" / "metrics.csv") == rows_of(tmp_path / "whole" / "metrics.csv")
    (tmp_path / "run" / "model.safetensors").unlink()
    assert "other settings" in refused(*arguments, "--set", "training.batch_graphs=1", "--run", tmp_path / "run")


def test_an_ensemble_that_is_refitted_says_so_and_predicts(data_folder, tmp_path):
    run = tmp_path / "run"
    done = call("fit", data_folder, "--ensemble", "2", "--refit", *QUICK, "--run", run)
    assert done.exit_code == 0, done.output
    report, card = (run / "report.html").read_text(), (run / "README.md").read_text()
    for text in (report, card):
        assert "verage of 2 members, seeds 0 to 1" in text
        assert "rained again on training and validation graphs together (refit)" in text
    rows = rows_of(run / "metrics.csv")
    assert rows[-1]["node_score"] == "" and float(rows[-1]["node_loss"]) > 0  # no validation data are left
    model = NodeClassifier.load(run)
    assert (model.ensemble, model.refit) == (2, True)
    config = json.loads((run / "config.json").read_text())
    assert (config["settings"]["ensemble"], config["settings"]["refit"]) == (2, True)
    assert call("fit", data_folder, "--ensemble", "2", "--refit", *QUICK, "--run", run).exit_code == 0  # is finished


def test_masks_of_one_graph_take_the_place_of_folders(tmp_path):
    """A data folder with a single masked graph: scores count its test_mask, in `fit` and in `evaluate`."""
    whole = make_graph(0, num_nodes=60)
    part = torch.arange(60) % 3
    whole.train_mask, whole.val_mask, whole.test_mask = (part == number for number in range(3))
    del whole.node_id
    write_graph(whole, tmp_path / "data" / "train" / "g.npz", NAMES)
    done = call("fit", tmp_path / "data", "--run", tmp_path / "run", *QUICK)
    assert "labels in val_mask" in done.stderr and "nodes in test_mask" in done.stdout
    model = NodeClassifier.load(tmp_path / "run")
    right = (model.predict(whole) == whole.y)[whole.test_mask].double().mean()
    results = json.loads((tmp_path / "run" / "results.json").read_text())
    assert results["test"]["spn"]["node_accuracy"] == pytest.approx(float(right), abs=1e-6)
    scores = call("evaluate", tmp_path / "run", tmp_path / "data", "--split", "train").stdout
    assert f"{100 * float(right):.1f} %" in scores


def test_unlabelled_graphs_are_tried_and_reported(data_folder, tmp_path):
    for number in range(6):
        write_graph(make_graph(300 + number, with_labels=False), tmp_path / "more" / f"g{number}.npz")
    run = tmp_path / "run"
    arguments = ["fit", data_folder, "--run", run, "--unlabelled", tmp_path / "more", *QUICK]
    result = call(*arguments)
    assert result.exit_code == 0, result.output
    told = NodeClassifier.load(run).unlabelled_
    assert told["graphs"] == 6 and json.loads((run / "results.json").read_text())["unlabelled"] == told
    assert "6 unlabelled graphs" in result.stderr and "6 unlabelled graphs" in (run / "report.html").read_text()
    assert "already finished" in call(*arguments).output
    (tmp_path / "more").rename(tmp_path / "moved")
    arguments[5] = tmp_path / "moved"
    assert "already finished" in call(*arguments).output, "the same graphs in another place"
    (tmp_path / "moved" / "g0.npz").unlink()
    assert "beside.unlabelled" in refused(*arguments)


def test_class_weights_reach_the_model(data_folder, tmp_path):
    data = read_folder(data_folder)
    texts = ("balanced", "apple=20,pear=1", "3,2,1", "2=4")
    found = [fit.build_model(data, FitSettings(class_weight=text)).class_weight for text in texts]
    assert found == ["balanced", {"apple": 20.0, "pear": 1.0}, [3.0, 2.0, 1.0], {2: 4.0}]
    given = ["--max-epochs", "0", "--class-weight", "apple=20"]
    assert call("fit", data_folder, "--run", tmp_path / "run", *QUICK, *given).exit_code == 0
    assert NodeClassifier.load(tmp_path / "run").class_weight == [20.0, 1.0, 1.0]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("balance", "class_weight 'balance' is unknown"),
        ("apple=", "'' is not a number"),
        ("apple=2,3", "give a state with every number"),
        ("plum=2", "names the state 'plum', which is unknown. States: 'apple', 'pear', 'quince'"),
    ],
)
def test_class_weights_that_mean_nothing_are_refused(data_folder, tmp_path, text, message):
    assert message in refused("fit", data_folder, "--run", tmp_path / "run", *QUICK, "--class-weight", text)


def test_training_goes_on_from_a_run(trained, data_folder, tmp_path):
    weights = NodeClassifier.load(trained).model_.tensors()
    given = [*QUICK, "--max-epochs", "0", "--start"]
    result = call("fit", data_folder, "--run", tmp_path / "run", *given, trained)
    assert result.exit_code == 0, result.output
    found = NodeClassifier.load(tmp_path / "run").model_.tensors()
    assert all(torch.equal(value, found[name]) for name, value in weights.items())
    copied = shutil.copytree(trained, tmp_path / "copied")
    assert "already finished" in call("fit", data_folder, "--run", tmp_path / "run", *given, copied).output
    changed = NodeClassifier.load(trained)
    with torch.no_grad():
        next(iter(changed.model_.tensors().values())).add_(1)
    changed.save(tmp_path / "changed")
    assert "beside.start" in refused("fit", data_folder, "--run", tmp_path / "run", *given, tmp_path / "changed")
    assert "not a saved model" in refused("fit", data_folder, "--run", tmp_path / "other", *given, tmp_path)


def test_order_3_is_trained_and_kept_with_the_run(tmp_path):
    made = make_triples(12, 6, 4, options=TriplesOptions(min_triangles=2, max_triangles=4))
    for name in ("train", "val", "test"):
        for number, graph in enumerate(getattr(made, name)):
            write_graph(graph, tmp_path / "data" / name / f"{number}.json")
    run = tmp_path / "run"
    done = call("fit", tmp_path / "data", "--order", "3", *QUICK, "--run", run)
    assert done.exit_code == 0, done.output
    config = json.loads((run / "config.json").read_text())
    assert config["settings"]["order"] == 3 and config["recipe"]["triangles"]["channels"] == 64
    model = NodeClassifier.load(run)
    assert model.order == 3 and isinstance(model.model_, TriangleModel)
    assert any(name.startswith("triangle_") for name in rows_of(run / "metrics.csv")[-1])
    assert refused("fit", tmp_path / "data", "--order", "4", *QUICK, "--run", tmp_path / "other")
