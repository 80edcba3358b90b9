"""`accord solve` on small models, and on models of the competitions whose results are published."""

import json
import math

import pytest
import torch
from conftest import require_file
from support.command_line import call, refused
from support.strategies import DTYPE

import accord
from accord.app.commands.solve import _work
from accord.app.commands.solve._work import _rounds
from accord.field.files import read_map, read_mar, read_pr


@pytest.fixture
def field():
    """A ring of six variables with three states."""
    generator = torch.Generator().manual_seed(3)
    ring = torch.arange(6)
    edge = torch.randn(6, 3, 3, generator=generator, dtype=DTYPE)
    edge[0, 1, 2] = -torch.inf
    return accord.PairwiseField(
        torch.stack([ring, ring.roll(-1)]), torch.randn(6, 3, generator=generator, dtype=DTYPE), edge
    )


@pytest.fixture
def model(field, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "ring.uai"
    accord.write_uai(field, path)
    return path


def solve(*arguments):
    result = call("solve", *arguments, "--json")
    assert result.exit_code == 0, result.output
    return json.loads(result.stdout)


@pytest.mark.parametrize("method", ["auto", "exact", "propagate"])
def test_the_best_labelling_is_written(method, model, field, tmp_path):
    found = solve(model, "--method", method)
    exact = accord.enumerate_beliefs(field, "max")
    labels = read_map(tmp_path / "ring.uai.MAP")
    assert float(field.score(labels)) == pytest.approx(found["score"])
    assert found["score_log10"] == pytest.approx(found["score"] / math.log(10))
    if method != "propagate":
        assert found["score"] == pytest.approx(float(exact.log_partition)) and found["optimal"]
    assert found["file"] == "ring.uai.MAP" and found["task"] == "map"


@pytest.mark.parametrize("suffix", [".uai", ".uai.gz", ".fg", ".fg.gz"])
def test_marginals_and_partition_of_any_format(suffix, field, tmp_path):
    model = tmp_path / f"ring{suffix}"
    (accord.write_uai if "uai" in suffix else accord.write_fg)(field, model)
    exact = accord.enumerate_beliefs(field)
    for task, name in (("marginals", "a.MAR"), ("partition", "a.PR")):
        found = solve(model, "--task", task, "--out", tmp_path / "results" / name)
        assert found["exact"] and found["log_partition"] == pytest.approx(float(exact.log_partition))
    torch.testing.assert_close(torch.stack(read_mar(tmp_path / "results" / "a.MAR")), exact.node.exp())
    expected = float(exact.log_partition) / math.log(10)
    assert read_pr(tmp_path / "results" / "a.PR") == pytest.approx(expected)


def test_evidence_is_used(model, field, tmp_path):
    (tmp_path / "ring.evid").write_text("1\n2 0 2 3 1\n")
    solve(model, "--task", "marginals", "--evidence", tmp_path / "ring.evid")
    known = torch.tensor([2, -1, -1, 1, -1, -1])
    expected = accord.enumerate_beliefs(field.clamp(known)).node.exp()
    torch.testing.assert_close(torch.stack(read_mar(tmp_path / "ring.uai.MAR")), expected)


def test_the_summary_for_people(model):
    text = call("solve", model).stdout
    for word in ("score", "log10", "bound", "gap", "optimal        yes, proved", "method", "seconds"):
        assert word in text
    result = call("solve", model, "--task", "partition", "--method", "propagate")
    assert "belief propagation, an approximation" in result.stdout and "converged" in result.stdout
    assert "6 variables with 3 states, 6 tables of 2 variables" in result.stderr
    assert "Written to ring.uai.PR" in result.stderr


def test_models_that_are_too_wide_are_approximated_and_that_is_said(model, monkeypatch):
    def too_wide(*arguments, **options):
        raise accord.errors.TooLargeError("eliminate_beliefs: too wide")

    monkeypatch.setattr(_work, "eliminate_beliefs", too_wide)
    result = call("solve", model, "--task", "marginals")
    assert result.exit_code == 0
    assert "too wide for exact elimination. Belief propagation approximates it." in result.stderr
    assert "too wide for exact elimination" in refused_last(model, "--task", "marginals", "--method", "exact")


def refused_last(*arguments):
    """The error of a model that was read."""
    result = call("solve", *arguments)
    assert result.exit_code == 2
    return result.stderr.splitlines()[-1]


@pytest.mark.filterwarnings("default::accord.errors.ConvergenceWarning")
def test_messages_that_do_not_converge_are_reported(model):
    result = call("solve", model, "--task", "partition", "--method", "propagate", "--damping", "0.999999")
    assert result.exit_code == 0
    assert "Belief propagation did not converge" in result.stderr and "converged      no" in result.stdout


def test_an_interrupt_keeps_the_labels_of_earlier_rounds(model, field, tmp_path, monkeypatch):
    budgets = []

    def interrupted(field, budget, seed):
        budgets.append(budget)
        if len(budgets) > 1:
            raise KeyboardInterrupt
        found = accord.maximise(field, budget=budget, seed=seed)
        return type(found)(found.labels, found.score, found.bound + 1, found.optimal & False, found.method, 0.1)

    monkeypatch.setattr(_work, "maximise", interrupted)
    result = call("solve", model)
    assert result.exit_code == 130
    assert "not proved" in result.stdout and "Stopped." in result.stderr
    assert float(field.score(read_map(tmp_path / "ring.uai.MAP"))) > -torch.inf
    budgets[:] = [0.0]
    (tmp_path / "ring.uai.MAP").unlink()
    assert call("solve", model).exit_code == 130
    assert not (tmp_path / "ring.uai.MAP").exists()


@pytest.mark.parametrize("budget", [0.01, 1.0, 10.0, 3600.0])
def test_rounds_fill_the_budget_and_grow(budget):
    rounds = list(_rounds(budget))
    assert sum(rounds) == pytest.approx(budget) and rounds == sorted(rounds)
    assert rounds[-1] > 0.8 * budget


def test_the_better_of_two_rounds_is_kept(model, monkeypatch):
    calls = []

    def worse_later(field, budget, seed):
        calls.append(seed)
        found = accord.maximise(field, budget=budget, seed=seed)
        level = torch.tensor([float(len(calls))])
        return type(found)(
            found.labels, found.score - level, found.bound + 5 - level, found.optimal & False, found.method, 0.1
        )

    monkeypatch.setattr(_work, "maximise", worse_later)
    found = solve(model, "--seed", "7")
    best = accord.maximise(accord.read_uai(model))
    assert calls == [7, 8]
    assert found["score"] == pytest.approx(float(best.score) - 1)
    assert found["bound"] == pytest.approx(float(best.bound) + 3) and found["gap"] == pytest.approx(4)


def test_a_search_without_labels_is_refused(model, monkeypatch):
    def nothing(field, budget, seed):
        found = accord.maximise(field, budget=budget, seed=seed)
        none = torch.full_like(found.labels, -1)
        return type(found)(none, found.score - torch.inf, found.bound, found.optimal & False, found.method, 0.1)

    monkeypatch.setattr(_work, "maximise", nothing)
    assert "No labelling without forbidden states was found in 3 s" in refused_last(model, "--budget", "3")


def test_models_without_labellings_are_refused(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "none.uai").write_text("MARKOV 2 2 2 1 2 0 1 4 0 0 0 0")
    for task in ("map", "marginals", "partition"):
        assert "no labelling" in refused_last("none.uai", "--task", task)
    assert [path.name for path in tmp_path.iterdir()] == ["none.uai"]


def test_bad_arguments_are_refused(model, tmp_path):
    assert "--task 'best' is unknown. Choose map, marginals, partition." in refused("solve", model, "--task", "best")
    assert "--method 'fast' is unknown" in refused("solve", model, "--method", "fast")
    assert "--schedule 'random' is unknown" in refused("solve", model, "--schedule", "random")
    assert "none.uai: no such file" in refused("solve", tmp_path / "none.uai")
    assert "models are read from .uai, .uai.gz, .fg, .fg.gz files" in refused("solve", tmp_path / "ring.txt")
    assert "is a folder" in refused("solve", model, "--out", tmp_path)
    assert "Error: budget is 0.0, but it is a positive number" in refused_last(model, "--budget", "0")
    assert "Error: damping is 2" in refused_last(model, "--method", "propagate", "--damping", "2")
    (tmp_path / "bad.uai").write_text("MARKOV 2 2 2 1 2 0 1 4 0 0 0")
    assert "bad.uai: ends after 11 numbers" in refused("solve", tmp_path / "bad.uai")
    (tmp_path / "bad.evid").write_text("1 9 0")
    assert "evidence names variable 9" in refused("solve", model, "--evidence", tmp_path / "bad.evid")


@pytest.mark.parametrize("name", ["uai/mar_Segmentation_12", "uai/mar_CSP_12"])  # of pairs, and of more
@pytest.mark.data("uai/mar_Segmentation_12.uai.gz", "uai/mar_Segmentation_12.PR", "uai/mar_Segmentation_12.MAR")
@pytest.mark.data("uai/mar_CSP_12.uai.gz", "uai/mar_CSP_12.PR", "uai/mar_CSP_12.MAR")
def test_results_of_the_competition(name, tmp_path):
    path = require_file(f"{name}.uai.gz")
    solve(path, "--task", "marginals", "--out", tmp_path / "a.MAR")
    found = solve(path, "--task", "partition", "--out", tmp_path / "a.PR")
    published = read_pr(require_file(f"{name}.PR"))
    assert found["exact"] and read_pr(tmp_path / "a.PR") == pytest.approx(published, abs=1e-3)
    for ours, theirs in zip(read_mar(tmp_path / "a.MAR"), read_mar(require_file(f"{name}.MAR")), strict=True):
        torch.testing.assert_close(ours, theirs, rtol=0, atol=1e-4)


@pytest.mark.data("uai/map_Segmentation_16.uai.gz", "uai/map_Segmentation_16.MAP")
def test_labels_of_the_competition(tmp_path):
    path = require_file("uai/map_Segmentation_16.uai.gz")
    found = solve(path, "--out", tmp_path / "a.MAP")
    published = accord.read_uai(path).score(read_map(require_file("uai/map_Segmentation_16.MAP")))
    assert found["optimal"] and found["score"] >= float(published) - 1e-9


def test_models_of_larger_factors_and_rules(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    generator = torch.Generator().manual_seed(1)
    groups = [
        accord.TableFactors(torch.tensor([[0, 2, 1]]), torch.randn(1, 3, 2, 2, generator=generator, dtype=DTYPE)),
        accord.OrFactors(torch.tensor([[1, 2, 3]])),
    ]
    states = torch.tensor([3, 2, 2, 2])
    field = accord.FactorField(torch.randn(4, 3, generator=generator, dtype=DTYPE), groups, num_states=states)
    accord.write_uai(field, "model.uai")
    labels = torch.cartesian_prod(*(torch.arange(count) for count in states.tolist()))
    scores = field.score(labels)[:, 0]
    assert solve("model.uai")["score"] == pytest.approx(float(scores.max()))
    assert scores[(labels == read_map("model.uai.MAP")).all(1)] == scores.max()
    found = solve("model.uai", "--task", "marginals")
    assert found["exact"] and found["log_partition"] == pytest.approx(float(scores.logsumexp(0)))
    weights = scores.softmax(0)
    for variable, own in enumerate(read_mar("model.uai.MAR")):
        expected = torch.stack([weights[labels[:, variable] == state].sum() for state in range(len(own))])
        torch.testing.assert_close(own, expected, rtol=0, atol=1e-8)
    assert not solve("model.uai", "--task", "partition", "--method", "propagate")["exact"]
