import os
import subprocess
import sys
from pathlib import Path

import pytest
from support.command_line import QUICK, call, refused

import accord
from accord.app import cli

ACCORD = Path(sys.executable).parent / "accord"


@pytest.mark.parametrize(
    "command",
    [
        "",
        "demo",
        "fit",
        "predict",
        "evaluate",
        "report",
        "reproduce",
        "solve",
        "data",
        "data list",
        "bench",
        "bench inference",
        "bench learning",
    ],
)
def test_every_command_has_help(command):
    result = call(*command.split(), "--help")
    assert result.exit_code == 0
    assert "Usage:" in result.stdout
    assert "[bold]" not in result.stdout


def test_help_of_fit_names_every_setting_and_its_default():
    text = " ".join(call("fit", "--help").stdout.replace("│", " ").split())
    for word in ("--run", "--method", "--encoder", "--edge-encoder", "--level", "--max-epochs", "--seed", "--preset"):
        assert word in text
    for word in ("--features", "--accelerator", "--config", "--set", "gcnii", "runs/DATA-METHOD-ENCODER"):
        assert word in text


def test_the_version_is_printed_without_loading_torch():
    code = "import sys; from accord.app.cli import app; app(['--version'], standalone_mode=False)"
    checked = f"{code}; assert 'torch' not in sys.modules"
    done = subprocess.run([sys.executable, "-c", checked], capture_output=True, text=True, check=True)
    assert done.stdout == f"accord {accord.__version__}\n"


def test_data_list_names_benchmarks_and_made_sets():
    text = call("data", "list").stdout
    assert "cora*" in text and "ppi-20" in text and "digits" in text


@pytest.mark.data("planetoid_cora.npz")
def test_data_list_prints_the_papers_table_of_sizes(monkeypatch, benchmark_files, tmp_path):
    (tmp_path / "planetoid_cora.npz").symlink_to(benchmark_files["planetoid_cora.npz"])
    monkeypatch.setenv("ACCORD_DATA", str(tmp_path))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setenv("COLUMNS", "140")
    text = call("data", "list").stdout
    assert "140, 5.6, 7.0" in text and "1,000, 4.7, 5.3" in text and "1,433" in text


def test_system_errors_are_one_line(trained, data_folder, tmp_path, monkeypatch):
    def disk_full(*args):
        raise OSError(28, "No space left on device", str(tmp_path / "labels.csv"))

    monkeypatch.setattr("accord.app.commands.predict._tables.write_text", disk_full)
    graph = data_folder / "test" / "g01.npz"
    assert "labels.csv: No space left on device." in refused(
        "predict", trained, graph, "--out", tmp_path / "labels.csv"
    )


def test_a_damaged_run_is_refused(trained, data_folder, tmp_path):
    (tmp_path / "config.json").write_text('{"settings": ')
    (tmp_path / "model.safetensors").touch()
    assert "config.json: is damaged" in refused("report", tmp_path)


def test_the_installed_command(data_folder, tmp_path):
    """The command as a process: its arguments, output and exit code."""
    code = "from accord.app.cli import main; main()"
    start = [str(ACCORD)] if ACCORD.exists() else [sys.executable, "-c", code]
    (tmp_path / "fit.toml").write_text("sede = 1\n")
    # One thread: more would compete with those of other tests.
    settings = {"capture_output": True, "text": True, "cwd": tmp_path, "env": os.environ | {"OMP_NUM_THREADS": "1"}}
    bad = [*start, "fit", str(data_folder), "--config", "fit.toml", *QUICK]
    done = subprocess.run(bad, **settings)
    assert done.returncode == 2
    assert done.stdout == ""
    assert done.stderr.startswith("Error: fit.toml: the key 'sede' is unknown. Known keys: method, encoder")
    assert "Traceback" not in done.stderr
    good = [*start, "fit", str(data_folder), *QUICK, "--max-epochs", "1", "--set", "scorer=linear"]
    done = subprocess.run(good, **settings)
    assert done.returncode == 0, done.stderr
    assert "SPN" in done.stdout and "Report: runs/fruit-spn-mlp/report.html" in done.stdout
    assert (tmp_path / "runs" / "fruit-spn-mlp" / "report.html").is_file()


def test_the_entry_point_is_the_app(monkeypatch):
    monkeypatch.setattr(sys, "argv", ["accord", "--help"])
    with pytest.raises(SystemExit) as done:
        cli.main()
    assert done.value.code == 0
