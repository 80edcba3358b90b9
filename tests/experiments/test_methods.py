"""The table of methods: each variant runs, is stored once, and is compared with the paper."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from accord.errors import InputError, OptionError
from accord.experiments import (
    VARIANTS,
    _citation,
    read_results,
    reproduce_convergence,
    reproduce_methods,
    reproduce_run_time,
    run_variant,
)
from accord.experiments import _convergence as convergence
from accord.experiments import _run_time as run_time
from accord.experiments._methods import is_comparison, methods_table
from accord.experiments._paper import paper_score
from accord.experiments._results import file_stem
from accord.learning import RefinementOptions
from accord.methods import preset_recipe, recipe_to_config

pytestmark = pytest.mark.data("planetoid_citeseer.npz")
STORED = Path(__file__).parents[2] / "results"


@pytest.fixture(scope="module")
def results():
    options = {"seeds": (1, 2), "max_epochs": 1, "accelerator": "cpu"}
    short = replace(VARIANTS["spn-refined"], changes={"refinement": RefinementOptions(max_epochs=1)})
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(VARIANTS, "spn-refined", short)
        return {variant: run_variant(variant, "citeseer*", "gcn", "accord", **options) for variant in VARIANTS}


def write(results, folder):
    for variant, result in results.items():
        result.write(folder / f"{file_stem(result.preset, result.benchmark, variant, result.encoder)}.json")


def test_every_variant_runs(results):
    for variant, result in results.items():
        (scores,) = result.scores.values()
        assert list(result.scores) == [variant] and set(scores) == {"graph", "node", "node_unseen"}
        assert all(len(values) == 2 and 0 <= min(values) for values in scores.values())
        assert result.encoder == (VARIANTS[variant].encoder or "gcn")
    assert results["spn-refined"].recipe["refinement"] and not results["spn"].recipe["refinement"]
    assert results["crf-pl"].recipe["objective"] == "pseudolikelihood"
    assert results["crf-linear"].recipe["edge_encoder"]["kind"] == "identity"
    assert results["spn-shared"].recipe["shared"] and results["spn-constrained"].recipe["consistency"] > 0


def test_stored_results_are_not_run_again_and_are_compared_with_the_paper(results, tmp_path):
    write(results, tmp_path / "methods")
    assert {way for result in read_results(tmp_path / "methods") for way in result.scores} == set(VARIANTS)
    jobs = []
    text = reproduce_methods(
        tmp_path / "methods",
        ["citeseer*"],
        ["gat"],
        ["accord"],
        ["crf-linear"],
        seeds=(1, 2),
        max_epochs=1,
        announce=lambda job, row: jobs.append(job),
    )
    assert jobs == []
    line = next(line for line in text.splitlines() if line.startswith("| CRF, linear"))
    assert "40.6 ± 0.8" in line and "▼" in line  # one epoch is not enough
    assert (tmp_path / "methods" / "README.md").read_text().startswith("# Citation sets: all methods")


def test_gnn_and_spn_are_trained_once_for_both_tables(results, tmp_path, monkeypatch):
    ran = []

    def compare(benchmark, encoder, preset, **options):
        ran.append((benchmark, encoder, preset))
        both = {way: results[way].scores[way] for way in ("gnn", "spn")}
        recipe = recipe_to_config(preset_recipe(preset, encoder, benchmark=benchmark))
        return replace(results["spn"], encoder=encoder, scores=both, recipe=recipe)

    monkeypatch.setattr(_citation, "compare", compare)
    chosen = (["citeseer*"], ["gat"], ["accord"], ["gnn", "spn"])
    text = reproduce_methods(tmp_path / "methods", *chosen, seeds=(1, 2))
    assert text == reproduce_methods(tmp_path / "methods", *chosen, seeds=(1, 2))
    assert ran == [("citeseer*", "gat", "accord")]
    assert not list((tmp_path / "methods").glob("*.json"))
    assert [path.name for path in (tmp_path / "citation").glob("*.json")] == ["accord-citeseer-gat.json"]
    assert "| GNN | gat |" in text and "| SPN | gat |" in text
    assert "| citeseer* | gat | accord | 2 |" in (tmp_path / "citation" / "README.md").read_text()
    assert is_comparison("spn", "gat") and not is_comparison("spn", "unet") and not is_comparison("crf", "gat")


def test_committed_tables_of_methods_and_citation_show_the_same_cells():
    for result in read_results(STORED / "methods"):
        assert not any(is_comparison(variant, result.encoder) for variant in result.scores), "stored twice"
    text = (STORED / "methods" / "README.md").read_text()
    cell = next(line for line in text.splitlines() if line.startswith("| GNN | gcnii |")).split(" | ")[6]
    home = (STORED / "citation" / "README.md").read_text()
    assert f"| pubmed* | gcnii | accord | 5 | {cell} |" in home


def test_the_documentation_quotes_stored_tables():
    stored = "\n".join(path.read_text() for path in STORED.glob("*/README.md"))
    lines = (STORED.parent / "docs" / "results.md").read_text().splitlines()
    quoted = [line for line in lines if line.startswith("|") and "±" in line]
    assert quoted and [line for line in quoted if line not in stored] == []


def test_variants_are_not_compared_with_the_papers_method(results):
    table = methods_table([replace(results[variant], encoder="gat") for variant in ("spn-shared", "spn")])
    lines = table.splitlines()
    shared, plain = (next(line for line in lines if line.startswith(head)) for head in ("| SPN, one shared", "| SPN |"))
    assert "±" in shared and "49.0" not in shared and "49.0" in plain  # the paper's SPN-GAT
    assert paper_score("graph", "spn", "gat", "cora*").mean == 58.78
    assert paper_score("node", "gmnn", "gat", "pubmed*").mean == 78.00
    assert paper_score("graph", "smooth", "gat", "cora*") is None


@pytest.mark.parametrize(
    ("run", "options", "message"),
    [
        (reproduce_methods, {"variants": ["svm"]}, "method 'svm' is not in this table"),
        (reproduce_methods, {"benchmarks": ["ppi"]}, "benchmark 'ppi' is not in this table"),
        (reproduce_run_time, {"encoders": ["unet"]}, "encoder 'unet' is not in this table"),
        (reproduce_convergence, {"presets": ["mine"]}, "preset 'mine' is not in this table"),
    ],
)
def test_unknown_names_are_refused(run, options, message, tmp_path):
    with pytest.raises(OptionError, match=message):
        run(tmp_path, **options)


@pytest.fixture
def clock(monkeypatch):
    """Methods whose epochs take a known time on a simulated clock, with a second of set-up."""
    now, cost = [0.0], {"gnn": 0.5, "spn": 1.0, "crf": 1.5}

    def method(name):
        class Timed:
            def __init__(self, recipe):
                self.epochs = recipe.training.max_epochs

            def fit(self, *data):
                now[0] += 1 + cost[name] * self.epochs

        return Timed

    monkeypatch.setattr(run_time, "METHODS", {name: method(name) for name in cost})
    monkeypatch.setattr(run_time.time, "perf_counter", lambda: now[0])
    monkeypatch.setattr(run_time, "TIMED_SETS", ("citeseer*",))
    return cost


def test_run_times_exclude_set_up(clock, tmp_path):
    text = reproduce_run_time(tmp_path, ["citeseer*"], ["gcn"], max_epochs=2, accelerator="cpu")
    (stored,) = (json.loads(path.read_text()) for path in tmp_path.glob("*.json"))
    assert stored["seconds"] == {name: [pytest.approx(seconds)] * run_time.REPEATS for name, seconds in clock.items()}
    assert "| 500.0 | 2.0x | 3.0x |" in text
    clock["spn"] = 9.0  # a finished store is not timed again
    assert reproduce_run_time(tmp_path, ["citeseer*"], ["gcn"], max_epochs=2, accelerator="cpu") == text
    with pytest.raises(OptionError, match="max_epochs is 2 there, 3 here"):
        reproduce_run_time(tmp_path, ["citeseer*"], ["gcn"], max_epochs=3, accelerator="cpu")


def test_negative_run_times_are_refused(clock, tmp_path):
    clock["spn"] = -0.1
    with pytest.raises(InputError, match="slowed this machine down"):
        reproduce_run_time(tmp_path, ["citeseer*"], ["gcn"], max_epochs=2, accelerator="cpu")
    assert not list(tmp_path.glob("*.json"))


def test_curves_begin_with_the_game(tmp_path, monkeypatch):
    def short_recipe(*arguments, **options):
        recipe = preset_recipe(*arguments, **options)
        return replace(recipe, training=replace(recipe.training, max_epochs=15))

    monkeypatch.setattr(convergence, "preset_recipe", short_recipe)
    text = reproduce_convergence(tmp_path, ["citeseer*"], ["gcn"], seeds=(1,), max_epochs=2, accelerator="cpu")
    stored = json.loads((tmp_path / "accord-citeseer-gcn.json").read_text())
    starts = {name: runs[0][0]["field_score"] for name, runs in stored["curves"].items()}
    assert starts["spn"] > starts["without"] + 0.2  # the SPN starts from the proxy's solution
    assert all([row["epoch"] for row in runs[0]] == [0, 1, 2] for runs in stored["curves"].values())
    assert (tmp_path / "accord-citeseer-gcn.png").stat().st_size > 10_000
    assert "SPN without proxy" in text
    again = {"seeds": (1,), "accelerator": "cpu", "announce": lambda job, row: pytest.fail("trained again")}
    assert reproduce_convergence(tmp_path, ["citeseer*"], ["gcn"], max_epochs=2, **again) == text
    with pytest.raises(OptionError, match="epochs is 2 there, 3 here"):
        reproduce_convergence(tmp_path, ["citeseer*"], ["gcn"], max_epochs=3, **again)
