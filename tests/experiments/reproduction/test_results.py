"""The view of a store: each seed and label counts once, longer trainings win, and older results are taken in."""

from dataclasses import replace
from pathlib import Path

import pytest

from accord.errors import InputError
from accord.experiments import read_result
from accord.experiments.reproduction import Cell, Record, Results, import_results
from accord.experiments.reproduction._cells import Source
from accord.experiments.reproduction._plan import blocks, cell_code
from accord.experiments.reproduction._results import pool

ROOT = Path(__file__).parents[3]
GCN = Cell("training", "cora*", "spn", "gcn", "authors")
PPI = Cell("training", "ppi-20", "spn", "gat", "authors")
GRAPH = Source(GCN, "gnn", "graph")


def record(cell, seed, way="gnn", **changes):
    values = {"epochs": 200, "recipe": cell_code(cell), "metrics": {way: {"graph": 0.5}}, "context": "c"}
    return Record(cell=cell, seed=seed, **{**values, **changes})


def test_a_shorter_run_does_not_replace_a_longer_one():
    short = record(GCN, 1, epochs=2, shortened=True, metrics={"gnn": {"graph": 0.1}})
    for records in ([short, record(GCN, 1)], [record(GCN, 1), short]):
        summary = Results(records, {}).summary(GRAPH)
        assert (summary.values, summary.shortened) == ({1: 0.5}, False)
    alone = Results([short, replace(short, seed=2)], {}).summary(GRAPH)
    assert alone.shortened and alone.values == {1: 0.1, 2: 0.1}
    mixed = Results([record(GCN, 1), replace(short, seed=2)], {}).summary(GRAPH)
    assert mixed.values == {1: 0.5}  # whole and shortened trainings are not averaged


def test_records_of_another_recipe_do_not_count():
    results = Results([record(GCN, 1, recipe="older"), record(GCN, 2, recipe="imported")], {})
    assert results.summary(GRAPH).values == {2: 0.5} and results.outdated == 1


def counts(right, known=10, hits=2, marked=3, true=4):
    return {"gnn": {"right": right, "known": known, "hits": hits, "marked": marked, "true": true}}


def test_blocks_of_labels_are_pooled_once_all_are_there():
    first, *rest = blocks(PPI)
    records = [record(PPI, 1, block=first, metrics=counts(5))]
    source = Source(PPI, "gnn", "accuracy")
    assert Results(records, {}).summary(source) is None
    records += [record(PPI, 1, block=block, metrics=counts(10)) for block in rest]
    records.append(record(PPI, 1, block=(0, 3), metrics=counts(0)))  # overlaps, and must not count twice
    found = Results(records, {})
    number = len(rest) + 1
    assert found.summary(source).mean == pytest.approx((5 + 10 * len(rest)) / (10 * number))
    assert found.summary(replace(source, measure="f1")).mean == pytest.approx(2 * 2 / (3 + 4))


def test_a_gnn_that_was_trained_alone_fills_the_gnns_number():
    alone = record(replace(GCN, method="gnn"), 3, recipe="imported")
    both = record(GCN, 1, metrics={"gnn": {"graph": 0.6}, "spn": {"graph": 0.7}})
    assert Results([alone, both], {}).summary(GRAPH).values == {1: 0.6, 3: 0.5}


def test_committed_results_become_records_with_their_origin():
    records, contexts = import_results(ROOT / "results")
    results = Results(records, {context.code: context for context in contexts})
    stored = read_result(ROOT / "results" / "citation" / "accord-cora-gcn.json")
    found = results.summary(Source(replace(GCN, preset="accord"), "spn", "graph"))
    assert list(found.values.values()) == stored.scores["spn"]["graph"]
    assert tuple(found.values) == stored.seeds and results.outdated == 0
    ppi = results.summary(Source(Cell("training", "ppi-1", "spn", "sage", "appendix"), "gnn", "accuracy"))
    assert round(100 * ppi.mean, 2) == 80.63
    crf = results.summary(Source(Cell("training", "cora*", "crf", "linear", "accord"), "crf", "graph"))
    assert round(100 * crf.mean, 1) == 60.1
    origins = {context.source.split(", written by ")[1] for context in contexts}
    assert {"accord reproduce citation", "benchmarks/explain_paper_preset.py"} <= origins
    assert len({record.identity for record in records}) == len(records) > 1000


def test_a_folder_without_results_is_refused(tmp_path):
    with pytest.raises(InputError, match="no results of earlier tables"):
        import_results(tmp_path)
    (tmp_path / "citation").mkdir()
    (tmp_path / "citation" / "x.json").write_text("{}")
    with pytest.raises(InputError, match=r"x.json: is no result"):
        import_results(tmp_path)


def test_a_better_part_does_not_hide_the_whole():
    counts = {"right": 1.0, "known": 2.0, "hits": 1.0, "marked": 1.0, "true": 1.0}
    whole = record(PPI, 1, block=(0, 121), epochs=40, metrics={"spn": counts})
    part = record(PPI, 1, block=(0, 8), epochs=50, metrics={"spn": counts})
    assert pool([whole, part], 121) is not None
