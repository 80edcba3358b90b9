"""The plan: which cells fill the paper's numbers, what is missing, and in which order it is run."""

from dataclasses import replace

import pytest

from accord.experiments._paper import RESULT_TABLES, paper_numbers
from accord.experiments.reproduction import Asked, Cell, Context, Record, Task, all_targets, missing_tasks
from accord.experiments.reproduction._cells import source_of
from accord.experiments.reproduction._plan import blocks, cell_code, current_records, gpu_seconds, own_epochs, tier
from accord.experiments.reproduction._recipes import cell_recipe
from accord.experiments.reproduction._records import plain_recipe
from accord.experiments.reproduction._search import drawn_recipe
from accord.experiments.reproduction._training import is_ablated

GCN = Cell("training", "cora*", "spn", "gcn", "authors")
PPI = Cell("training", "ppi-20", "spn", "gat", "authors")


def done(cell, seed, **changes):
    values = {"epochs": 200, "recipe": "r", "metrics": {}, "context": "c"}
    if cell.preset != "appendix":
        values |= {"epochs": own_epochs(cell), "recipe": cell_code(cell)}
    return Record(cell=cell, seed=seed, **{**values, **changes})


def test_every_number_of_the_papers_result_tables_has_a_cell():
    sources = [source_of(number, "authors") for number in paper_numbers() if number.table in RESULT_TABLES]
    assert len(sources) == 255 and all(sources)
    planned = set(all_targets()["all"])
    assert all(source.cell in planned for source in sources)


def test_one_training_fills_gnn_and_spn_in_both_measures():
    ways = {
        (source.way, source.measure)
        for number in paper_numbers()
        for source in [source_of(number, "authors")]
        if source is not None and source.cell == replace(GCN, encoder="gat")
    }
    assert ways == {("gnn", "graph"), ("gnn", "node"), ("spn", "graph"), ("spn", "node")}


def test_every_cell_has_a_recipe():
    for cell in all_targets()["all"]:
        assert cell.method == "-" or own_epochs(cell) > 0


def test_the_search_draws_the_same_for_every_method_and_tests_only_the_best_draw():
    """Seed 1 of each draw chooses on validation graphs; once all are there, the best is trained with other seeds."""
    draws = [cell for cell in all_targets()["search"] if (cell.data, cell.encoder) == ("cora*", "gcn")]
    mine = [cell for cell in draws if cell.method == "spn"]
    recipes = {method: drawn_recipe(replace(mine[3], method=method)) for method in ("spn", "crf", "gmnn")}
    assert len({(r.encoder, r.node, r.training.batch_graphs, features) for r, features in recipes.values()}) == 1
    assert len({drawn_recipe(cell)[0].encoder for cell in mine}) > 10
    records = [done(cell, 1, metrics={"val": {"graph": number / 100, "node": 0.5}}) for number, cell in enumerate(mine)]
    assert missing_tasks(Asked(mine), records[:-1], "cuda") == [Task(mine[-1], (1,))]
    tested = missing_tasks(Asked(mine), records, "cuda")
    assert {task.cell for task in tested} == {mine[-1]}
    assert sorted(seed for task in tested for seed in task.seeds) == [2, 3, 4, 5, 6]


def test_only_what_is_missing_for_the_seeds_and_epochs_asked_is_planned():
    asked = Asked([GCN], (1, 2, 3))
    assert [task.seeds for task in missing_tasks(asked, [], "cuda")] == [(1, 2, 3)]
    records = [done(GCN, 2)]
    assert [task.seeds for task in missing_tasks(asked, records, "cuda")] == [(1, 3)]
    short = [done(GCN, 1, epochs=5, shortened=True)]
    assert [task.seeds for task in missing_tasks(asked, short, "cuda")] == [(1, 2, 3)]  # too short to count
    assert [task.seeds for task in missing_tasks(replace(asked, epochs=5), short, "cuda")] == [(2, 3)]
    assert missing_tasks(replace(asked, seeds=(2,), epochs=5), records, "cuda") == []  # a longer run counts


def test_records_count_as_long_as_the_recipe_is_the_same():
    """By its values: an option that a later version adds must not make every record outdated; a changed value must."""
    recipe = plain_recipe(cell_recipe(GCN))
    del recipe["encoder"]["last_dropout"], recipe["game"]["backend"]  # as if they came later
    older = Context(recipe, "raw", {}, "a test")
    changed = replace(older, recipe={**recipe, "damping": 0.3})
    contexts = {context.code: context for context in (older, changed)}
    records = [done(GCN, 1, recipe="old code", context=older.code), done(GCN, 2, recipe="x", context=changed.code)]
    records += [done(GCN, 3, recipe="imported"), done(GCN, 4), done(GCN, 5, recipe="x", context="unknown")]
    assert [record.seed for record in current_records(records, contexts)] == [1, 3, 4]
    edge = {**recipe["edge_encoder"]}
    del edge["last_dropout"]  # was not there, but now has an unusual value
    other = replace(older, recipe={**recipe, "edge_encoder": edge})
    record = done(GCN, 1, recipe="x", context=other.code)
    assert current_records([record], {other.code: other}) == []
    no_longer = done(replace(GCN, preset="appendix"), 1, recipe="x")
    assert current_records([no_longer], {}) == []


def test_labels_are_divided_into_blocks_that_a_gpu_finishes_in_time():
    parts = blocks(PPI)
    assert parts[0][0] == 0 and parts[-1][1] == 121
    assert all(a[1] == b[0] for a, b in zip(parts[:-1], parts[1:], strict=True))
    assert gpu_seconds(PPI) / len(parts) <= 300
    tasks = missing_tasks(Asked([PPI], (1,)), [done(PPI, 1, block=parts[1])], "cuda")
    assert [task.block for task in tasks] == [parts[0], *parts[2:]]
    assert missing_tasks(Asked([PPI], (1,)), [done(PPI, 1, block=(0, 121))], "cuda") == []  # one record of all labels


def test_the_most_informative_comes_first():
    tasks = missing_tasks(Asked(all_targets()["all"]), [], "cuda")
    tiers = [tier(task.cell) for task in tasks]
    assert tiers == sorted(tiers)
    first = [next(place for place, t in enumerate(tiers) if t == wanted) for wanted in range(8)]
    assert first == sorted(first)
    main = [task for task in tasks if tier(task.cell) == 1]
    assert all(task.cell.data in ("cora*", "citeseer*", "pubmed*", "citation-domains") for task in main)
    assert main[0].cell.preset == "authors" and main[0].seeds[0] == 1


@pytest.mark.parametrize("device", ["cpu", "cuda"])
def test_every_seed_is_planned_once(device):
    cells = all_targets()["table-2"]
    planned = [(t.cell, seed, t.block) for t in missing_tasks(Asked(cells), [], device) for seed in t.seeds]
    assert len(planned) == len(set(planned)) == sum(len(cell.seeds) for cell in cells)


def test_a_training_of_figure_5_without_its_ablation_is_run_again():
    cell = Cell("training", "citation-domains", "spn", "gat", "authors")
    whole, drawn = done(cell, 1), done(replace(cell, experiment="ablation"), 1, recipe=cell_code(cell))
    assert [task.seeds for task in missing_tasks(Asked([cell], (1,)), [whole], "cuda")] == [(1,)]
    assert missing_tasks(Asked([cell], (1,)), [whole, drawn], "cuda") == []
    other = replace(cell, encoder="gcn")
    assert missing_tasks(Asked([other], (1,)), [done(other, 1)], "cuda") == []
    assert is_ablated(cell, Task(cell, (1,), None)) and not is_ablated(other, Task(other, (1,), None))
