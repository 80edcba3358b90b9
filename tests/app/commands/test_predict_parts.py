"""`accord predict --parts`: the labels of processes, and of one process, are the same."""

import pyarrow.parquet
import pytest
import torch
from app.commands.launched_cases import predict_launched
from distributed.in_parts import run_in_parts
from distributed.model_cases import SOMETIMES, fit, labelled
from support.command_line import call

from accord._launched import free_port
from accord.datasets import write_graph
from accord.distributed import write_parts


@pytest.fixture(scope="module")
def case(tmp_path_factory):
    """A saved model, a graph in a folder beside it, and the graph."""
    folder = tmp_path_factory.mktemp("parts")
    model, data = fit("spn", folder), labelled(11)
    write_parts(data, folder / "graph", 3)
    return folder, model, data


def read(out, data):
    """The columns of all files, in the order of the graph's nodes."""
    table = pyarrow.parquet.read_table(out).to_pydict()
    assert sorted(table["id"]) == sorted(data.node_id.tolist())
    row = {node: number for number, node in enumerate(table["id"])}
    order = [row[node] for node in data.node_id.tolist()]
    return {name: [values[number] for number in order] for name, values in table.items()}


def names(labels):
    return [str(label) if label >= 0 else None for label in labels.tolist()]


def test_processes_that_the_command_starts(case, tmp_path):
    folder, model, data = case
    arguments = ["predict", folder / "spn", folder / "graph", "--parts", "2", "--out", tmp_path / "out"]
    said = call(*arguments)
    assert said.exit_code == 0, said.output
    assert "150 rows in 2 parts written" in said.stderr
    files = sorted(file.name for file in (tmp_path / "out").glob("*.parquet"))
    assert files == ["part-00000.parquet", "part-00001.parquet"]
    found, labels = read(tmp_path / "out", data), model.predict(data)
    assert found["label"] == names(labels)
    own = model.predict_proba(data).gather(1, labels[:, None])[:, 0]
    torch.testing.assert_close(torch.tensor(found["probability"]), own, rtol=0, atol=1e-5)
    assert "has all labels already" in call(*arguments).stderr
    other = call(*arguments, "--marginals")
    assert other.exit_code == 2 and "another job (options differ)" in other.stderr


def test_processes_of_a_launcher(case, tmp_path):
    folder, model, data = case
    said = run_in_parts(predict_launched, 4, free_port(), folder / "spn", folder / "graph", tmp_path / "out")
    assert "150 rows in 4 parts" in said[0][0] and "already" in said[0][1]
    assert all(one == (None, None) for one in said[1:])
    found = read(tmp_path / "out", data)
    assert found["label"] == names(model.predict(data))
    shown = torch.tensor([found[f"p({state})"] for state in range(4)]).t()
    torch.testing.assert_close(shown, model.predict_proba(data), rtol=0, atol=1e-5)


@pytest.mark.parametrize("parts", [1, 2])
def test_one_process_of_a_launcher_is_a_process_without_one(case, tmp_path, monkeypatch, parts):
    # Some platforms set these variables for every command.
    alone = {"RANK": 0, "LOCAL_RANK": 0, "WORLD_SIZE": 1, "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": 29500}
    for name, value in alone.items():
        monkeypatch.setenv(name, str(value))
    folder, model, data = case
    write_graph(data, folder / f"plain{parts}.npz")
    plain = call("predict", folder / "spn", folder / f"plain{parts}.npz")
    assert plain.exit_code == 0 and plain.stdout.startswith("node,label"), plain.output
    said = call("predict", folder / "spn", folder / "graph", "--parts", parts, "--out", tmp_path / "out")
    assert said.exit_code == 0, said.output
    assert ("150 rows in 1 part written" if parts == 1 else "150 rows in 2 parts written") in said.stderr
    assert read(tmp_path / "out", data)["label"] == names(model.predict(data))


def test_labels_are_left_out_as_asked(case, tmp_path):
    folder, model, data = case
    out, precision = tmp_path / "out", SOMETIMES["spn"]
    call("predict", folder / "spn", folder / "graph", "--parts", "1", "--precision", precision, "--out", out)
    found, wanted = read(out, data), names(model.predict(data, precision=precision))
    assert 0 < sum(label is None for label in wanted) < 150
    assert found["label"] == wanted
    assert [value is None for value in found["probability"]] == [label is None for label in wanted]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--parts", "2"], "folder of Parquet files"),
        (["--parts", "0", "--out", "labels"], "at least 1"),
        (["--parts", "2", "--out", "labels", "--diagnose"], "goes together with --out"),
        (["--parts", "2", "--out", "."], "is not empty"),
    ],
)
def test_what_does_not_go_together_is_refused(case, tmp_path, monkeypatch, options, message):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "other").touch()
    said = call("predict", case[0] / "spn", case[0] / "graph", *options)
    assert said.exit_code == 2 and message in said.stderr


@pytest.mark.parametrize("text", ["{", "[]", ""])
def test_a_damaged_note_of_the_job_is_refused(case, tmp_path, text):
    (tmp_path / "_job.json").write_text(text)
    (tmp_path / "part-00000.parquet").touch()
    said = call("predict", case[0] / "spn", case[0] / "graph", "--parts", "2", "--out", tmp_path)
    assert said.exit_code == 2 and "_job.json: is damaged" in said.stderr, said.output


def test_a_folder_without_results_is_free_for_another_job(case, tmp_path):
    arguments = ["predict", case[0] / "spn", case[0] / "graph", "--out", tmp_path / "out", "--parts"]
    call(*arguments, 1)
    (tmp_path / "out" / "part-00000.parquet").unlink()  # such as after a process that found too little memory
    said = call(*arguments, 2)
    assert said.exit_code == 0 and "150 rows in 2 parts" in said.stderr


def test_a_missing_folder_is_refused_before_anything_is_written(case, tmp_path):
    said = call("predict", case[0] / "spn", tmp_path / "none", "--parts", "2", "--out", tmp_path / "out")
    assert said.exit_code == 2 and "has no Parquet files" in said.stderr
    assert not (tmp_path / "out").exists()
