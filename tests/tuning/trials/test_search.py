"""The search: it finds what is good, uses validation data only, and goes on after it was stopped."""

import json
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
import torch
from support.made_graphs import made_trees
from support.made_searches import BUDGET, SPACE, made_problem, table
from torch_geometric.data import Data

from accord.encoders import GCN, MLP
from accord.errors import InputError, OptionError
from accord.evaluation import LEVELS
from accord.learning import PartOptions
from accord.learning.training import Trainer
from accord.methods import METHODS, Shape
from accord.tuning import Candidate, SearchBudget, SearchSpace, markdown_table, search, space_for, trial_rows
from accord.tuning._schedule import pace
from accord.tuning.trials._groups import Draws
from accord.tuning.trials._search import _asked, _Search
from accord.tuning.trials._space import draw_edge
from accord.tuning.trials._store import CHECKPOINTS, TRIALS, TrialStore


@pytest.fixture(scope="module")
def whole():
    return search(made_problem(), SPACE, BUDGET)


def test_parts_are_tried_and_combined(whole):
    rows = trial_rows(whole.trials)
    parts = [row["part"] for row in rows]
    assert parts == sorted(parts, key=["pair", "node", "edge"].index)
    assert parts.count("node") == 4 and parts.count("edge") == 2
    pairs = [row for row in rows if row["part"] == "pair"]
    assert "0+0" in [row["trial"] for row in pairs], "the recipe that the search starts from is judged too"
    best = max(pairs, key=lambda row: (row["score"], -row["loss"]))
    assert whole.recipe.encoder.to_config() == best["recipe"]["encoder"]
    assert whole.recipe.training.max_epochs == 9
    assert json.loads(json.dumps(rows)) == rows
    assert markdown_table(rows).count("\n| ") == len(rows) + 3


class Stop(Exception):
    """A kill."""


def stopping(work, count):
    """The work, until it has been done so often."""
    left = [count]

    def until(*args, **kwargs):
        left[0] -= 1
        if left[0] < 0:
            raise Stop
        return work(*args, **kwargs)

    return until


@pytest.mark.parametrize(
    ("place", "name", "counts"),
    [(Trainer, "train_epoch", (1, 8, 6)), (TrialStore, "add", (1, 4, 3)), (_Search, "keep", (1, 5, 9))],
    ids=["in training", "between two trials of a group", "between groups"],
)
def test_a_stopped_search_goes_on_to_the_same_table(whole, tmp_path, monkeypatch, place, name, counts):
    for count in counts:
        with monkeypatch.context() as patched, pytest.raises(Stop):
            patched.setattr(place, name, stopping(getattr(place, name), count))
            search(made_problem(), SPACE, BUDGET, folder=tmp_path)
    kept = {path: path.read_bytes() for path in (tmp_path / TRIALS).iterdir()}
    assert kept
    again = search(made_problem(), SPACE, BUDGET, folder=tmp_path)
    assert table(again) == table(whole) and again.recipe == whole.recipe
    assert all(path.read_bytes() == content for path, content in kept.items()), "finished trials are not run again"
    assert not (tmp_path / CHECKPOINTS).exists()


def test_more_trials_extend_a_search(tmp_path):
    few = search(made_problem(), SPACE, BUDGET, folder=tmp_path)
    files = {path.name: path.read_bytes() for path in (tmp_path / TRIALS).glob("node-*-0.json")}
    more = search(made_problem(), SPACE, replace(BUDGET, trials=12), folder=tmp_path)
    assert len(trial_rows(more.trials)) > len(trial_rows(few.trials))
    assert all((tmp_path / TRIALS / name).read_bytes() == content for name, content in files.items())


def test_a_folder_of_another_search_is_refused(tmp_path):
    search(made_problem("gnn"), SPACE, BUDGET, folder=tmp_path)
    with pytest.raises(InputError, match="holds a search with other settings or data"):
        search(made_problem("gnn", train=made_trees(13, seed=0)), SPACE, BUDGET, folder=tmp_path)


def test_a_damaged_trial_is_run_again(tmp_path):
    first = search(made_problem("gnn"), SPACE, BUDGET, folder=tmp_path)
    broken = tmp_path / TRIALS / "node-002-0.json"
    broken.write_text(broken.read_text().replace('"score": 0', '"score": 1'))
    with pytest.warns(UserWarning, match="is damaged"):
        again = search(made_problem("gnn"), SPACE, BUDGET, folder=tmp_path)
    assert table(again) == table(first)


@pytest.mark.parametrize("method", ["gnn", "smooth", "crf", "gmnn"])
def test_other_methods_are_searched_whole(method):
    found = search(made_problem(method), SPACE, replace(BUDGET, trials=2, max_epochs=3))
    assert isinstance(found.recipe, METHODS[method].recipe_type)
    assert {row["part"] for row in trial_rows(found.trials)} == {"node" if method in ("gnn", "smooth") else "whole"}


@pytest.mark.parametrize("level", LEVELS)
def test_every_level_can_be_searched_by(level):
    found = search(replace(made_problem(), level=level), SPACE, replace(BUDGET, trials=2, max_epochs=3))
    scores = [own.score for own in found.trials if own.part != "edge"]
    assert scores and None not in scores
    assert all(score < 0 if level == "likelihood" else 0 <= score <= 1 for score in scores)


def test_a_rate_that_learns_nothing_loses():
    """The first candidate's rate is far too small; any drawn one is better."""
    problem = made_problem("gnn", train=made_trees(30, seed=0, noise=0.1), validation=made_trees(20, seed=1, noise=0.1))
    problem = replace(problem, recipe=replace(problem.recipe, node=PartOptions(learning_rate=1e-9)))
    found = search(problem, SearchSpace(encoders=(MLP(hidden=8),)), SearchBudget(trials=6, max_epochs=60))
    scores = {row["trial"]: row["score"] for row in trial_rows(found.trials)}
    assert max(scores.values()) > scores["0"] + 0.1
    assert found.recipe.node.learning_rate > 1e-9


def test_the_time_ends_a_search():
    found = search(made_problem(), SPACE, SearchBudget(trials=100, minutes=1e-9, max_epochs=9))
    assert {(own.part, own.rung) for own in found.trials} == {("node", 0), ("edge", 0), ("pair", 0)}
    assert len([own for own in found.trials if own.part == "node"]) == 2, "one group is trained in any case"


def test_several_tasks_and_seeds():
    def two(graphs):
        for graph in graphs:
            graph.y = torch.stack([graph.y, 1 - graph.y], 1)
        return graphs

    problem = made_problem(train=two(made_trees(12, seed=0)), validation=two(made_trees(8, seed=1)))
    problem = replace(problem, shape=Shape(2, 2, num_tasks=2))
    found = search(problem, SPACE, replace(BUDGET, trials=4, seeds=2, max_epochs=3))
    assert all(own.score is not None and 0 <= own.score <= 1 for own in found.trials)


def test_the_space_follows_the_data():
    trees = made_trees(40, seed=0)
    space = space_for(trees)
    assert space.symmetric == (True,) and space.batch_graphs == (None, 8)
    assert "row-normalised" not in space.features, "rows of negative numbers have no meaningful sum"
    for graph in trees:
        graph.x, graph.edge_index = graph.x.abs(), graph.edge_index[:, : graph.edge_index.shape[1] // 2]
    directed = space_for(trees[:1], encoder="GraphSAGE", features="raw")
    assert directed.symmetric == (True, False) and directed.encoders == ("sage",) and directed.features == ("raw",)
    assert directed.batch_graphs == (None,) and directed.edge_encoders[0] == "sage"
    assert "row-normalised" in space_for(trees).features


def test_the_time_that_remains_shortens_the_winners_training():
    """A made search: trials of known length, and a minute in all."""
    problem = made_problem("gnn")
    with TemporaryDirectory() as place:
        running = _Search(problem, SPACE, SearchBudget(trials=2, minutes=1.0, max_epochs=90), 0, Path(place), None)
        first, second = (_asked("node", 0, rung, epochs, "raw", problem.recipe) for rung, epochs in enumerate((10, 30)))
        for result in (replace(first, seconds=10.0), replace(second, seconds=20.0)):
            running.keep(running.store.add(result))

        def epochs():
            return running.winner_training(second, problem.recipe.training).max_epochs

        assert epochs() == 30, "a second an epoch, 30 seconds remain"
        running.budget = replace(running.budget, train_winner=False)
        assert epochs() == 90, "no time is needed for it"
        running.budget = replace(running.budget, minutes=1.5, train_winner=True)
        assert epochs() == 60
        running.budget = replace(running.budget, minutes=5.0)
        assert epochs() == 90, "a whole training"


def test_the_winner_trains_with_patience_where_fit_would():
    problem = made_problem("gnn")
    recipe = replace(problem.recipe, training=pace(problem.recipe.training, 1))
    problem = replace(problem, recipe=recipe)
    found = search(problem, SPACE, SearchBudget(trials=2, updates=9))
    assert found.recipe.training.patience == recipe.training.patience
    assert found.recipe.training.max_epochs == recipe.training.max_epochs


def test_given_networks_come_before_drawn_ones():
    problem = made_problem()
    own = (Candidate(MLP(hidden=7)), Candidate(GCN(hidden=9)))
    draws = Draws(replace(problem, nodes=own, edges=own[:1]), SPACE, 0)
    nodes = [group.recipes[0].encoder for group in draws.nodes(8)]
    assert nodes[:3] == [problem.recipe.encoder, own[0].encoder, own[1].encoder]
    edges = [group.recipes[0].edge_encoder for group in draws.edges(6, [draws.own_context])]
    assert edges[:2] == [problem.recipe.edge_encoder, own[0].encoder]
    assert all(encoder not in (one.encoder for one in own) for encoder in (nodes[3], edges[2])), "drawn"


def test_directed_edges_are_tried_with_their_direction_first():
    for seed in range(3):
        recipes = [
            draw_edge(made_problem().recipe, replace(SPACE, symmetric=(True, False)), n, 1, seed)[0] for n in (0, 1)
        ]
        assert [recipe.scorer.symmetric for recipe in recipes] == [False, True]


def test_graphs_without_edges_have_no_direction():
    lone = [Data(x=torch.rand(3, 2), y=torch.tensor([0, 1, 0])) for _ in range(3)]
    assert space_for(lone).symmetric == (True,)


@pytest.mark.parametrize("wrong", [{"trials": 0}, {"minutes": 0.0}, {"seeds": True}, {"updates": 1.5}])
def test_impossible_budgets_are_refused(wrong):
    with pytest.raises(OptionError, match=next(iter(wrong))):
        SearchBudget(**wrong)


def test_without_a_winner_to_train_the_search_takes_all_of_the_time():
    both = [SearchBudget(minutes=2.0, train_winner=own) for own in (True, False)]
    assert [own.deadline(0.75) for own in both] == [90.0, 120.0] and both[1].deadline(0.35) == pytest.approx(56.0)
