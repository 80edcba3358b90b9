"""The report: the paper's numbers beside ours, one page that loads nothing else, and the committed one up to date."""

import re
from pathlib import Path

import pytest

from accord.experiments.reproduction import Cell, Context, Record, Results, Store, write_report
from accord.experiments.reproduction._ablation import NORMALISERS, SEMIRINGS, SHARPNESS
from accord.experiments.reproduction._cells import Source
from accord.experiments.reproduction._plan import cell_code
from accord.experiments.reproduction._search import DRAWS
from accord.experiments.reproduction.report import closeness, filled, markdown_report, report_parts, table_lines
from accord.experiments.reproduction.report._summaries import ablation_rows, search_rows

ROOT = Path(__file__).parents[4]
STORE = ROOT / "results" / "reproduction" / "records.jsonl"
CONTEXT = Context({}, "raw", {"device": "cpu: test"}, "a test")
GAT = Cell("training", "cora*", "spn", "gat", "authors")


def record(cell, seed=1, **changes):
    values = {"epochs": 200, "recipe": cell_code(cell), "metrics": {}, "context": CONTEXT.code}
    return Record(cell=cell, seed=seed, **{**values, **changes})


@pytest.fixture(scope="module")
def results():
    """A few records of every kind that the report draws from."""
    scores = {"gnn": {"graph": 0.52, "node": 0.79}, "spn": {"graph": 0.60, "node": 0.7}}
    row = {f"{part} {what}": [0.5] * len(SHARPNESS) for part in ("val", "test") for what in ("graph", "node")}
    table = {f"{name} {semiring}": {**row, "exact": [1.0] * 5} for name in NORMALISERS for semiring in SEMIRINGS}
    curve = [{"epoch": e, "field_score": 0.5 + e / 10, "field_loss": 1.0} for e in (0, 1)]
    case = {"title": "test graph 3", "edges": [[0, 1], [1, 2]], "truth": [0, 1, 1]}
    case["labels"] = {"gnn": [0, 0, 1], "edge": [0, 1, 0], "spn": [0, 1, 1]}
    counts = {"spn": {"right": 9, "known": 10, "hits": 3, "marked": 4, "true": 4}}
    game = Cell("convergence", "cora*", "spn", "gat", "authors", "rate 0.001")
    return Results(
        [
            *(record(GAT, seed, metrics=scores) for seed in (1, 2)),
            record(Cell("ablation", "cora*", "spn", "gat", "authors"), recipe=cell_code(GAT), details=table),
            record(game, epochs=60, details={name: curve for name in ("spn", "without", "crf")}),
            record(Cell("case", "cora*", "spn", "gat", "authors"), details={"cases": [case], "names": list("abcdefg")}),
            record(Cell("heads", "ppi-1", "spn", "gat", "authors", "node 2"), metrics=counts),
            record(Cell("backbones", "ppi-1", "spn", "gat+sage", "authors"), metrics=counts),
        ],
        {CONTEXT.code: CONTEXT},
    )


def test_ours_stand_beside_the_papers_with_seeds_and_marks(results):
    head, lines = table_lines(results, 2)
    assert head == ["cora*", "citeseer*", "pubmed*", "dblp"]
    place = next(number for number, line in enumerate(lines) if line.title == "GAT")
    assert lines[place].cells[0] == "51.99 ± 3.51" and lines[place + 1].title == "preset authors"
    assert lines[place + 1].cells == ("52.00 ± 0.00 (2)", "", "", "")
    node = table_lines(results, 12)[1]
    spn = next(number for number, line in enumerate(node) if line.title == "SPN-GAT")
    assert node[spn + 1].cells[0] == "70.00 ± 0.00 (2) ▼"  # the paper has 83.13 ± 0.48


def test_the_best_draw_is_shown_with_seeds_that_did_not_choose_it():
    cells = [Cell("search", "cora*", "crf", "gcn", "accord", f"draw {number}") for number in range(DRAWS)]
    mine = [record(c, metrics={"val": {"graph": 0.01 * n, "node": 0.5}}) for n, c in enumerate(cells)]
    tested = [record(cells[-1], s, metrics={"val": {"graph": 0.9}, "test": {"graph": 0.6}}) for s in (2, 3)]
    assert search_rows(Results(mine[:-1], {}))[1] == [["cora*", "gcn", "crf", f"{DRAWS - 1} of {DRAWS}", *[""] * 4]]
    (row,) = search_rows(Results([*mine, *tested], {}))[1]
    assert row[3:4] + row[5:] == [f"{DRAWS} of {DRAWS}", f"{DRAWS - 1}.0", "60.0", "2"]


def test_filled_numbers_are_counted(results):
    assert len(filled(results, "authors")) == 6  # Tables 2, 5, 7 (SPN twice), 12
    assert [round(gap, 1) for number, _, gap in closeness(results) if number.table == 2] == [0.0, 1.0]
    assert filled(results, "accord") == []


def test_the_page_stands_alone_and_has_every_part(results, tmp_path):
    document = tmp_path / "docs" / "REPRODUCTION.md"
    summary = write_report(tmp_path / "out", results, document)
    assert "255 numbers" in summary
    page = (tmp_path / "out" / "report.html").read_text()
    assert not re.search(r'(?:src|href|srcset)="(?!data:|#)', page)
    assert all(f'id="table-{n}"' in page for n in (1, 2, 3, 4, 5, 6, 7, 8, 12, 13)) and 'id="claims"' in page
    assert page.count("<img") == 4  # Figures 2, 3, 4 and 5
    linked = re.findall(r"\]\(([^)]+\.png)\)", document.read_text())
    assert len(linked) == page.count("<img")
    assert all((document.parent / path).is_file() for path in linked)


def test_the_ablation_counts_nodes_where_there_is_one_test_graph():
    cell = Cell("training", "citation-domains", "spn", "gat", "authors")
    row = {f"{part} {what}": [0.1] * len(SHARPNESS) for part in ("val", "test") for what in ("graph", "node")}
    row |= {"test node": [0.7] * len(SHARPNESS), "exact": [1.0, 0.1, 0.1, 0.1, 0.6]}
    table = {f"{name} {semiring}": row for name in NORMALISERS for semiring in SEMIRINGS}
    ablation = record(Cell("ablation", cell.data, "spn", "gat", "authors"), recipe=cell_code(cell), details=table)
    found = Results([record(cell, metrics={"gnn": {"graph": 0.0, "node": 0.5}}), ablation], {CONTEXT.code: CONTEXT})
    (cells,) = ablation_rows(found)[1]
    assert cells[1:8] == ["citation-domains", "gat", "1", "50.0", "70.0", "70.0", "60.0"]
    (drawn,) = [picture for part in report_parts(found) for picture in part.pictures]
    assert drawn.name == "figure-5-authors-gat"


def test_a_report_without_records_says_what_is_missing(tmp_path):
    write_report(tmp_path, Results([], {}))
    text = (tmp_path / "README.md").read_text()
    assert "0 of them have a result" in text and "not measured" in text and "hours of one H200" in text


def test_tables_name_both_networks_where_they_differ():
    cells = [Cell("training", "citeseer*", "spn", encoder, "accord") for encoder in ("gcn", "gcnii", "unet")]
    mine = [record(cell, metrics={"spn": {"graph": 0.5, "node": 0.7}}) for cell in cells]
    parts = {part.anchor: part for part in report_parts(Results(mine, {CONTEXT.code: CONTEXT}))}
    told = parts["table-2"].texts[-1]
    assert "citeseer* gcn / mlp, citeseer* gcnii / mlp." in told and "unet" not in told
    assert parts["table-12"].texts == (told,) and told not in parts["table-1"].texts


def test_the_report_says_what_verdicts_with_the_papers_letter_rest_on():
    cell = Cell("training", "cora*", "spn", "gcn", "paper")
    found = Results([record(cell, metrics={"gnn": {"graph": 0.5}, "spn": {"graph": 0.1}})], {CONTEXT.code: CONTEXT})
    (claims,) = (part for part in report_parts(found) if part.anchor == "claims")
    assert "preset paper rest on SPNs with gcn (the paper's Table 2 has none with gcn)." in claims.texts[-1]


def test_the_committed_report_is_written_from_the_committed_store():
    """Every number of the document; `accord reproduce all --budget 0s --document docs/REPRODUCTION.md` writes it."""
    parts = report_parts(Results(*Store(STORE).read()))
    assert (ROOT / "docs" / "REPRODUCTION.md").read_text() == markdown_report(parts, "../results/reproduction/")
    assert (STORE.parent / "README.md").read_text() == markdown_report(parts, "")


def test_the_readmes_table_equals_the_store():
    results = Results(*Store(STORE).read())
    rows = re.findall(
        r"^\| (cora\*|citeseer\*|pubmed\*) \| (\w+) \| ([\d. |]+) \|", (ROOT / "README.md").read_text(), re.M
    )
    assert len(rows) == 9
    for data, encoder, cells in rows:
        cell = Cell("training", data, "spn", encoder, "accord")
        sources = [Source(cell, way, measure) for measure in ("graph", "node") for way in ("gnn", "spn")]
        first = [results.summary(source).values for source in sources]
        ours = [100 * sum(values[seed] for seed in range(1, 6)) / 5 for values in first]  # the README's five seeds
        assert [f"{value:.1f}" for value in ours] == cells.split(" | ")[:4]
