"""The default model beside the winner of a search: the better one is kept, and what is stored is not trained again."""

import time
from dataclasses import replace

import pytest
from support.made_searches import BUDGET, SPACE, made_problem

from accord.encoders import MLP
from accord.tuning import Final, SearchBudget, Settings, markdown_table, search, trial_rows
from accord.tuning.trials._finals import FINAL
from accord.tuning.trials._plan import DEFAULT_SHARE

FEW = replace(BUDGET, trials=2, max_epochs=3)
DEFAULTS = Settings(replace(made_problem("gnn").recipe, encoder=MLP(hidden=5)), "standardised")


class MadeFits:
    """Scores that are given, in place of trainings."""

    def __init__(self, default, winner, members=1, pause=0.0):
        self.scores, self.members, self.pause = (default, winner), members, pause
        self.calls = []

    def __call__(self, settings, folder, report):
        self.calls.append("default" if settings is None else "winner")
        folder.mkdir(parents=True, exist_ok=True)
        for step in range(3):
            time.sleep(self.pause)
            report({"epoch": step})
        score, loss = self.scores[settings is not None]
        return Final(score, loss, settings or DEFAULTS)


def found_by(fits, folder=None, budget=FEW):
    return search(made_problem("gnn"), SPACE, budget, folder=folder, final=fits)


@pytest.mark.parametrize(
    ("default", "winner", "kept"),
    [
        ((0.9, 0.5), (0.8, 0.1), "default"),
        ((0.9, 0.5), (0.91, 0.9), "winner"),
        ((0.9, 0.5), (0.9, 0.4), "winner"),
        ((0.9, 0.5), (0.9, 0.6), "default"),
        ((0.9, 0.5), (0.9, 0.5), "default"),
        ((0.9, 0.5), (None, None), "default"),
    ],
)
def test_the_better_one_is_kept(default, winner, kept, tmp_path):
    found = found_by(MadeFits(default, winner), tmp_path)
    assert found.compared and found.kept_default == (kept == "default")
    if found.kept_default:
        assert (found.recipe, found.features) == (DEFAULTS.recipe, DEFAULTS.features)
    else:
        assert found.recipe.encoder != DEFAULTS.recipe.encoder
    rows = trial_rows(found.trials)
    assert [row["trial"] for row in rows if row["part"] == FINAL][0] == kept and rows[0]["trial"] == kept
    told = {"default": "the default model is kept", "winner": "is better and is kept"}
    assert told[kept] in markdown_table(rows)
    assert [path.name for path in tmp_path.iterdir() if path.name.startswith(("default-", "winner-"))] == [
        found.folder.name
    ]


def test_neither_is_trained_twice(tmp_path):
    first, again = (MadeFits((0.7, 0.5), (0.8, 0.5)) for _ in range(2))
    before, after = found_by(first, tmp_path), found_by(again, tmp_path)
    assert first.calls == ["default", "winner"] and again.calls == []
    assert (before.recipe, before.kept_default, before.folder) == (after.recipe, after.kept_default, after.folder)
    assert trial_rows(before.trials) == trial_rows(after.trials)


def test_an_ensemble_is_compared_anew(tmp_path):
    found_by(MadeFits((0.7, 0.5), (0.8, 0.5)), tmp_path)
    ensemble = MadeFits((0.9, 0.5), (0.8, 0.5), members=3)
    assert found_by(ensemble, tmp_path).kept_default and ensemble.calls == ["default", "winner"]


def test_the_default_model_takes_half_of_the_time_at_most(tmp_path):
    """Without a default model the winner is kept, and the table says that the two were not compared."""
    short = SearchBudget(trials=2, max_epochs=3, minutes=0.004)
    slow = MadeFits((0.9, 0.5), (0.1, 0.5), pause=0.2)
    found = found_by(slow, tmp_path, short)
    assert slow.calls == ["default", "winner"] and not found.compared and not found.kept_default
    assert "no time to train the default model" in markdown_table(trial_rows(found.trials))
    again = MadeFits((0.9, 0.5), (0.1, 0.5))
    assert not found_by(again, tmp_path, short).compared and again.calls == []
    more = MadeFits((0.9, 0.5), (0.1, 0.5))
    found = found_by(more, tmp_path, replace(short, minutes=1.0))
    assert found.compared and found.kept_default and more.calls[0] == "default"


def test_the_time_of_the_default_model_is_not_the_search_s(monkeypatch, tmp_path):
    budget = SearchBudget(trials=2, max_epochs=90, minutes=1.0)
    spent = []
    monkeypatch.setattr("accord.tuning.trials._search._Search.spend", lambda self, seconds: spent.append(seconds))
    found_by(MadeFits((0.9, 0.5), (0.1, 0.5), pause=0.1), tmp_path, budget)
    assert 0.3 <= spent[0] < 60 * DEFAULT_SHARE
    assert budget.after(30.0).deadline(1.0) == pytest.approx(30.0) and budget.after(70.0).deadline(1.0) > 0
    assert SearchBudget().after(30.0).minutes is None


def test_a_search_without_a_final_compares_nothing():
    found = found_by(None)
    assert not found.compared and found.folder is None and all(own.part != FINAL for own in found.trials)
