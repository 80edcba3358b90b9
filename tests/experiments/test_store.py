"""The store of a table: only the same experiment is resumed, skipped or extended, and damage stops nothing."""

import json
import subprocess
import sys
from dataclasses import replace

import pytest

from accord._files import LOCK_FILE
from accord.datasets import make_digits
from accord.errors import DamagedFileWarning, InputError, OptionError
from accord.experiments import _citation, _runner, _store, read_result, read_results, reproduce_citation

CELL = "accord-digits-mlp.json"


@pytest.fixture
def reproduce(monkeypatch, tmp_path):
    """The citation table of a small made set, and the jobs that were run."""
    bench = make_digits(num_train=12, num_val=6, num_test=6, seed=0)
    monkeypatch.setattr(_runner, "load_benchmark", lambda name, features: replace(bench, name=name))
    for module in (_runner, _citation):
        monkeypatch.setattr(module, "preset_features", lambda preset, benchmark: "raw", raising=False)
    known = _citation.preset_recipe
    monkeypatch.setattr(_citation, "preset_recipe", lambda preset, encoder, benchmark: known(preset, encoder))
    monkeypatch.setattr(_citation, "CITATION_SETS", ("digits",))
    monkeypatch.setattr(_citation, "CITATION_ENCODERS", ("mlp",))

    def run(announce=None, **options):
        jobs = []

        def follow(job, row):
            jobs.append(job) if row is None else None
            if announce is not None and row is not None:
                announce(row)

        chosen = {"seeds": (0,), "max_epochs": 6, "accelerator": "cpu", **options}
        table = reproduce_citation(tmp_path, ["digits"], ["mlp"], ["accord"], announce=follow, **chosen)
        return table, jobs

    return run


def interrupt(row):
    if row["epoch"] >= 20:
        raise KeyboardInterrupt


def test_a_checkpoint_of_another_experiment_is_not_resumed(reproduce, tmp_path):
    with pytest.raises(KeyboardInterrupt):
        reproduce(interrupt, max_epochs=40)
    assert list(tmp_path.glob("unfinished-*/checkpoint.safetensors"))
    epochs = []
    reproduce(lambda row: epochs.append(row["epoch"]))
    assert epochs[0] == 0 and epochs[-1] == 6
    assert read_result(tmp_path / CELL).recipe["training"]["max_epochs"] == 6
    (tmp_path / CELL).unlink()
    epochs.clear()
    reproduce(lambda row: epochs.append(row["epoch"]), max_epochs=40)  # this one continues
    assert epochs[0] > 0 and epochs[-1] == 40
    assert not list(tmp_path.glob("unfinished-*"))


def test_checkpoints_of_stored_seeds_are_removed(reproduce, tmp_path, monkeypatch):
    """A process may be killed after it has stored a result, and before it has removed the checkpoints."""
    remove = _store.shutil.rmtree
    for seeds in [(0,), (0, 3)]:
        monkeypatch.setattr(_store.shutil, "rmtree", lambda *_, **__: None)
        _, jobs = reproduce(seeds=seeds)
        assert jobs and list(tmp_path.glob("unfinished-*/checkpoint.safetensors"))
        monkeypatch.setattr(_store.shutil, "rmtree", remove)
        assert reproduce(seeds=seeds)[1] == []
        assert not list(tmp_path.glob("unfinished-*"))


def test_two_processes_do_not_share_a_store(reproduce, tmp_path):
    hold = "import sys; from pathlib import Path; from accord._files import locked\nwith locked(Path(sys.argv[1])):\n"
    command = [sys.executable, "-c", f"{hold}    print('held', flush=True); sys.stdin.read()", str(tmp_path)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as holder:
        assert holder.stdout.readline() == b"held\n"
        with pytest.raises(InputError, match=f"is in use by process {holder.pid}"):
            reproduce()
        assert [path.name for path in tmp_path.iterdir()] == [LOCK_FILE]
        holder.kill()
    assert reproduce()[1] == ["accord digits mlp"]


def test_stored_seeds_are_not_run_again_and_others_are_added(reproduce, tmp_path):
    table, jobs = reproduce()
    assert jobs == ["accord digits mlp"]
    first = read_result(tmp_path / CELL)
    assert reproduce() == (table, [])
    _, jobs = reproduce(seeds=(0, 3))
    both = read_result(tmp_path / CELL)
    assert jobs == ["accord digits mlp"] and both.seeds == (0, 3)
    assert both.scores["spn"]["node"][0] == first.scores["spn"]["node"][0]
    assert reproduce(seeds=(3,))[1] == []
    with pytest.raises(OptionError, match=r"accord-digits-mlp.json: .*training.max_epochs is 6 there, 7 here"):
        reproduce(max_epochs=7)
    assert read_result(tmp_path / CELL).seeds == (0, 3)


@pytest.mark.filterwarnings("always")
def test_a_damaged_record_stops_nothing_and_is_kept(reproduce, tmp_path):
    table, _ = reproduce()
    whole = (tmp_path / CELL).read_text()
    (tmp_path / "accord-other.json").write_text(whole[:100])
    with pytest.warns(DamagedFileWarning, match="accord-other.json: is damaged .* written without it"):
        assert reproduce() == (table, [])
    (tmp_path / "accord-other.json").unlink()
    broken = whole.replace("0.", "1.", 1)
    (tmp_path / CELL).write_text(broken)
    with pytest.warns(DamagedFileWarning, match="kept as accord-digits-mlp.json.damaged and run again"):
        assert reproduce() == (table, ["accord digits mlp"])
    assert (tmp_path / f"{CELL}.damaged").read_text() == broken


def test_every_damage_of_a_record_is_refused(reproduce, tmp_path):
    reproduce()
    path = tmp_path / CELL
    whole = json.loads(path.read_text())
    changes = ({"seeds": [0, 1]}, {"scores": 3}, {"scores": {"spn": {"node": ["a"]}}}, {"more": 1}, {"seeds": None})
    for change in changes:
        values = {key: value for key, value in (whole | change).items() if key != "sha256"}
        path.write_text(json.dumps(values))
        with pytest.raises(InputError, match="is damaged"):
            read_result(path)
    for text in ("[1]", "[" * 100_000, json.dumps(whole | {"seconds": 1.0})):
        path.write_text(text)
        with pytest.raises(InputError, match="is damaged"):
            read_result(path)
    path.write_text(json.dumps({key: value for key, value in whole.items() if key != "sha256"}))
    assert len(read_results(tmp_path)) == 1  # records of older versions have no checksum
