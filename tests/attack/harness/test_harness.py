"""The attack counts what it tries, sees every kind of failure, and repeats it."""

import json
import subprocess
from random import Random

import pytest
from attack import __main__ as command
from attack.commands import PLOTS, Answer, replace_plots
from attack.damage import DAMAGES
from attack.harness import schedule
from attack.harness.record import append_record, totals
from attack.harness.schedule import SHARES, Findings, run_attack, run_worker
from attack.harness.worker import ATTACKS
from attack.runs import content, differences

from accord.app.commands import report


def test_a_crash_a_hang_and_an_exception_end_a_case_and_not_the_attack(tmp_path, monkeypatch):
    monkeypatch.setattr(schedule, "SILENCE_SECONDS", 2.0)
    findings = Findings()
    first = 0
    for _ in range(3):  # up to the crash, up to the hang, and one more
        first = run_worker("staged", 5, first, 1, 0.2, first == 5, tmp_path, findings)
    assert first == -1
    found = {failure["case"]: failure["message"] for failure in findings.failures}
    assert found[1] == "a wrong label"
    assert "ended with code -11" in found[2]
    assert "KeyError: 'unforeseen'" in found[3]
    assert "no answer in 2 s" in found[4]
    assert set(found) == {1, 2, 3, 4}
    assert findings.tried["calls"] >= 4  # of the cases that ended by themselves


def test_a_failure_is_printed_with_what_repeats_it(tmp_path, capsys):
    run_worker("staged", 5, 1, 1, 0.0, True, tmp_path, Findings())
    assert "--attack staged --seed 5 --case 1\n        a wrong label" in capsys.readouterr().out


def test_an_attack_that_cannot_run_here_is_skipped_with_its_reason(tmp_path):
    (tmp_path / "no room").touch()
    findings = Findings()
    run_attack("staged", 5, 60.0, tmp_path, findings, 0, 1)
    assert findings.skipped == {"staged": "there is no room"} and not findings.tried


def test_the_record_keeps_every_run(tmp_path):
    path = tmp_path / "attack" / "runs.json"
    findings = Findings()
    findings.tried.update(kills=3, fields=20)
    append_record(path, 1, "abc", 2.0, ["kills"], findings)
    findings.fail("kills", 2, 7, f"{schedule.TESTS}/a lost file")
    records = append_record(path, 2, "def", 3.0, ["kills"], findings)
    assert json.loads(path.read_text()) == records
    assert totals(records) == {"kills": 6, "fields": 40, "failures": 1}
    assert records[1]["failures"] == [{"attack": "kills", "seed": 2, "case": 7, "message": "tests/a lost file"}]


def test_every_attack_has_a_share_of_the_time():
    assert set(SHARES) == set(ATTACKS) - {"staged"}
    assert sum(SHARES.values()) == pytest.approx(1.0)


@pytest.mark.parametrize(
    ("code", "err", "refused"),
    [
        (2, "fruit: 12 graphs\nError: model.json: is damaged. Restore it.\n", True),
        (2, "Usage: accord\n", False),
        (2, "Traceback (most recent call last):\nError: x\n", False),
        (1, "Error: x. y.\n", False),
        (2, "Error: first\nsecond line\n", False),
        (-11, "", False),
    ],
)
def test_a_refusal_is_one_line_and_exit_code_2(code, err, refused):
    assert Answer(code, "", err, 0, 0.0).refused == refused


@pytest.mark.parametrize("name", DAMAGES)
def test_damage_changes_a_file_and_is_repeated_by_its_seed(name):
    whole = bytes(range(1, 256)) * 4
    damaged = [DAMAGES[name](Random(seed), whole) for seed in range(5)]
    assert damaged == [DAMAGES[name](Random(seed), whole) for seed in range(5)]
    assert any(one != whole for one in damaged)
    assert DAMAGES[name](Random(0), b"") is not None  # empty files can be damaged, too


def test_folders_are_compared_without_seconds_and_with_leftovers(tmp_path):
    for name, seconds, label in (("a", 1.5, "pear"), ("b", 2.5, "pear"), ("c", 1.5, "plum")):
        folder = tmp_path / name
        folder.mkdir()
        sealed = {"seconds": seconds, "label": label, "sha256": f"of {seconds}"}
        (folder / "results.json").write_text(json.dumps(sealed))
        (folder / ".lock").write_text(name)
    (tmp_path / "b" / ".model.safetensors.17").touch()
    whole = content(tmp_path / "a")
    assert differences(whole, content(tmp_path / "b")) == [".model.safetensors.17 is left over"]
    assert differences(whole, content(tmp_path / "c")) == ["results.json differs"]
    assert differences(whole, {}) == ["results.json is missing"]


def test_values_of_json_files_are_changed_and_the_file_stays_json():
    whole = json.dumps({"a": [1, 2], "b": {"c": "d"}}).encode()
    changed = [json.loads(DAMAGES["value changed"](Random(seed), whole)) for seed in range(40)]
    assert sum(value != json.loads(whole) for value in changed) > 30
    assert any(value.get("b") != {"c": "d"} for value in changed) and any(value.get("a") != [1, 2] for value in changed)


def test_stand_ins_of_plots_differ_where_the_plots_would(monkeypatch):
    for name in PLOTS:
        monkeypatch.setattr(report, name, getattr(report, name))  # to be restored at the end
    replace_plots()
    for name in PLOTS:
        draw = getattr(report, name)
        assert draw([{"epoch": 1}], report.LIGHT) == draw([{"epoch": 1}], report.LIGHT)
        assert len({draw([{"epoch": epoch}], theme) for epoch in (1, 2) for theme in (report.LIGHT, report.DARK)}) == 4


def test_the_commit_is_dirty_if_anything_but_the_record_has_changed(tmp_path, monkeypatch):
    monkeypatch.setattr(command, "TESTS", tmp_path / "tests")
    files = [tmp_path / "results" / "attack" / "runs.json", tmp_path / "tests" / "code.py"]
    for path in files:
        path.parent.mkdir(parents=True)
        path.write_text("1")
    assert command.commit() == "unknown"
    git = ["git", "-c", "user.name=a", "-c", "user.email=a@b"]
    for arguments in (["init", "-q"], ["add", "."], ["commit", "-qm", "first"]):
        subprocess.run([*git, *arguments], cwd=tmp_path, check=True)
    files[0].write_text("2")
    assert len(command.commit()) == 12
    files[1].write_text("2")
    assert command.commit().endswith("-dirty")


def test_scratch_files_are_in_memory_only_where_there_is_room(tmp_path, monkeypatch):
    monkeypatch.setattr(command, "IN_MEMORY", tmp_path)
    monkeypatch.setattr(command, "SCRATCH_BYTES", 1)
    assert command.scratch_place() == str(tmp_path)
    monkeypatch.setattr(command, "SCRATCH_BYTES", 2**80)
    assert command.scratch_place() is None
    monkeypatch.setattr(command, "IN_MEMORY", tmp_path / "missing")
    assert command.scratch_place() is None
