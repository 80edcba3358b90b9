"""What benchmarks store about where their figures come from, and what the pages of the solver say."""

import importlib
import json
import subprocess
import sys
from pathlib import Path

import pytest
import torch

ROOT = Path(__file__).parents[2]
STUDIES = ("chains", "exact", "factors", "side_chains", "solver")
RECORDED = ("exact", "small_calls", "solver")  # all of whose figures were measured since scripts store their origin


@pytest.fixture
def load(monkeypatch):
    """Import a script of `benchmarks/solver/`, and forget it afterwards."""
    monkeypatch.syspath_prepend(str(ROOT / "benchmarks" / "solver"))
    before = set(sys.modules)
    yield importlib.import_module
    for name in set(sys.modules) - before:
        if (getattr(sys.modules[name], "__file__", None) or "").startswith(str(ROOT / "benchmarks")):
            del sys.modules[name]


def origins(stored):
    """Every origin in a stored file: of the whole, or of each part."""
    if isinstance(stored, dict):
        if "origin" in stored:
            yield stored["origin"]
        else:
            for part in stored.values():
                yield from origins(part)


@pytest.mark.parametrize("study", RECORDED)
def test_stored_figures_name_versions_machine_date_and_commit(study):
    found = list(origins(json.loads((ROOT / "results" / study / f"{study}.json").read_text())))
    assert found
    for origin in found:
        for name in ("accord", "torch", "numpy", "processor", "cores", "threads", "load_before", "date", "commit"):
            assert origin[name] not in (None, "", "unknown"), name
        assert origin["changed"] == []


@pytest.mark.parametrize("study", STUDIES)
def test_pages_are_those_of_the_stored_figures(load, study):
    script = {"factors": "factor_kernels"}.get(study, study)
    stored = json.loads((ROOT / "results" / study / f"{study}.json").read_text())
    module = load("solver_page" if study == "solver" else script)
    write = {"chains": "table", "factors": "readme", "side_chains": "readme"}.get(study, "page")
    arguments = (stored, stored["rows"]) if study == "factors" else (stored,)
    assert getattr(module, write)(*arguments) == (ROOT / "results" / study / "README.md").read_text()


def test_figures_of_earlier_scripts_have_no_commit(load):
    told = load("origin").told({"processor": "AMD EPYC", "accord": "0.2", "peers": {"pytorch-crf": "0.7"}})
    assert told == "AMD EPYC; accord 0.2, pytorch-crf 0.7; the commit was not recorded."


def test_origin_names_peers_threads_and_changed_code(load, monkeypatch, tmp_path):
    origin = load("origin")
    found = origin.origin("numpy", "no-such-package")
    assert found["peers"] == {"numpy": found["numpy"], "no-such-package": None}
    assert found["torch"] == torch.__version__ and found["threads"] == torch.get_num_threads()
    assert "no-such-package" not in origin.told(found) and str(found["commit"]) in origin.told(found)

    def git(*words):
        subprocess.run(["git", "-c", "user.name=a", "-c", "user.email=a@b", *words], cwd=tmp_path, check=True)

    (tmp_path / "accord").mkdir()
    (tmp_path / "results").mkdir()
    (tmp_path / "accord" / "one.py").write_text("1")
    (tmp_path / "results" / "one.json").write_text("1")
    git("init", "-q"), git("add", "-A"), git("commit", "-qm", "first")
    (tmp_path / "results" / "one.json").write_text("2")  # figures of an earlier part are no change of code
    monkeypatch.setattr(origin, "ROOT", tmp_path)
    assert origin._changed() == []
    (tmp_path / "accord" / "one.py").write_text("2")
    assert origin._changed() == ["accord/one.py"]


def test_figures_of_other_code_are_not_continued(load):
    origin = load("origin")
    one = {"commit": "a", "changed": [], "date": "2026-01-01", "load_before": 0.1, "memory_bytes": 1}
    assert origin.same_code(one, {**one, "date": "2026-01-02", "load_before": 2.0})
    assert not origin.same_code(one, {**one, "commit": "b"})
    assert not origin.same_code(one, {**one, "changed": ["accord/one.py"]})


def test_verdicts_name_every_model_on_which_accord_is_behind(load):
    page = load("solver_page")
    ahead = {"score": 2.0, "bound": 3.0, "optimal": False}
    proved = {"score": 2.0, "bound": 2.0, "optimal": True}
    rows = [
        {"model": "one", "accord": ahead, "toulbar2": {**ahead, "score": 1.0}},
        {"model": "two", "accord": {**ahead, "score": 1.0}, "toulbar2": proved, "PGMax": {"score": 1.0}},
    ]
    text = "\n".join(page.verdicts(rows))
    assert "toulbar2 (2): accord is above on 1, below on 1: two (1.00, toulbar2 2.00)" in text
    assert "PGMax (1): accord is above on 0, below on 0." in text
    assert "accord 0, toulbar2 1, of 2; by toulbar2 alone: two" in text
    assert "looser than toulbar2's: two (3.00, toulbar2 2.00)" in text


def test_new_models_have_what_their_names_say(load):
    unseen = load("solver_unseen")
    board = unseen.queens(6, 0)
    columns = torch.tensor([1, 3, 5, 0, 2, 4])  # no queen attacks another
    assert board.score(columns) > -torch.inf and board.score(columns.flip(0).sort().values) == -torch.inf
    square = unseen.sudoku(2, 16, 3)  # everything is given
    digits = square.node.argmax(-1)
    assert square.score(digits) == 0
    assert all(
        sorted(row) == [0, 1, 2, 3] for row in [*digits.reshape(4, 4).tolist(), *digits.reshape(4, 4).t().tolist()]
    )
    code = unseen.regular_code(24, 3, 6, 0.5, 0)
    assert code.num_factors == 12 and code.score(torch.zeros(24, dtype=torch.long)) > -torch.inf
    assert torch.bincount(code.groups[0].scope.flatten()).tolist() == [3] * 24
    cut = unseen.max_cut(10, 20, 0, weighted=False)
    assert cut.num_edges == 20 and float(cut.score(torch.zeros(10, dtype=torch.long))) == 0
