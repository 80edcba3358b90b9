"""Figures in the prose of study pages and of docs/results.md are those of the files that they link to, or the store."""

import re
from pathlib import Path
from statistics import mean, stdev

import pytest

from accord.experiments.reproduction import Cell, Results, Store
from accord.experiments.reproduction._cells import TRAINING, Source

ROOT = Path(__file__).parent.parent
STORE = ROOT / "results" / "reproduction" / "records.jsonl"
FIGURE = re.compile(r"(?<![\w.*/-])\d+\.\d+(?!\d|\.\d)")
LINK = re.compile(r"\]\(([^)\s#]+)[^)]*\)")
PAPER_PRESET = ROOT / "results" / "paper_preset" / "README.md"
DECAY_AND_TIMES = {"0.4"}  # 76.8 - 76.4, of figures that are checked


def prose(text):
    """A text without tables, code and the targets of links."""
    lines = [line for line in text.splitlines() if not line.startswith(("|", "    ", "![", "```"))]
    return LINK.sub("]", re.sub(r"`[^`]*`", "", "\n".join(lines)))


def figures(text):
    return set(FIGURE.findall(text))


def sources(page, text):
    """Files that a text links to; of folders the tables, whose figures are few enough to prove something."""
    found = []
    for target in LINK.findall(text):
        path = (page.parent / target).resolve()
        found += sorted(path.glob("*.md")) if path.is_dir() else [path]
    return [path for path in found if path.suffix in (".md", ".json", ".txt") and path.is_file()]


def rounded(text):
    """Figures of a file as they are printed, and with one or two digits."""
    return figures(text) | {f"{float(figure):.{digits}f}" for figure in figures(text) for digits in (1, 2)}


def unknown(page, text, known=frozenset()):
    """Figures of the prose that nothing behind it has."""
    behind = set(known)
    for path in sources(page, text):
        behind |= rounded(path.read_text())
    return sorted(figures(prose(text)) - behind)


@pytest.fixture(scope="module")
def stored():
    return Store(STORE).read()


def test_figures_that_nothing_supports_are_found(tmp_path):
    (tmp_path / "table.md").write_text("| 12.3 ± 0.4 |")
    page = tmp_path / "page.md"
    text = "It has 12.3 and [not](table.md) 45.6, `7.8` aside.\n\n| 9.1 |\n"
    assert unknown(page, text) == ["45.6"] and unknown(page, text, {"45.6"}) == []


def test_the_prose_of_docs_results_is_supported_section_by_section():
    page = ROOT / "docs" / "results.md"
    sections = page.read_text().split("\n## ")[1:]
    assert {section.split("\n")[0]: unknown(page, section) for section in sections if unknown(page, section)} == {}


def test_the_page_on_the_appendix_is_supported(stored):
    """Its table, too; GNNs of preset authors that are set aside are still in the store."""
    text = PAPER_PRESET.read_text()
    table = "\n".join(line for line in text.splitlines() if line.startswith("|"))
    paper = (ROOT / "accord" / "experiments" / "paper.tsv").read_text()
    behind = rounded((PAPER_PRESET.parent / "TABLE.md").read_text()) | rounded(paper) | set_aside(stored[0])
    behind |= {f"{float(figure):.1f}" for figure in crf_full_batch(stored)}
    assert unknown(PAPER_PRESET, text, behind | DECAY_AND_TIMES) == []
    assert figures(table) - behind - rounded((ROOT / "results" / "methods" / "README.md").read_text()) == set()


def set_aside(records):
    wanted = ("spn", "gcnii", "authors", "")
    found = {}
    for record in records:
        cell = record.cell
        if cell.experiment == TRAINING and (cell.method, cell.encoder, cell.preset, cell.variant) == wanted:
            found.setdefault(cell.data, []).append(record.metrics["gnn"].get("graph", 0.0))
    return {f"{100 * mean(values):.1f}" for values in found.values()}


def crf_full_batch(stored):
    results = Results(*stored)
    cells = [cell for cell in results.by_cell if (cell.method, cell.variant) == ("crf", "full batch")]
    return [f"{100 * results.summary(Source(cell, 'crf', 'graph')).mean:.1f}" for cell in cells]


ROWS = {  # of the table of all methods: method, variant, way
    "MLP, no graph": ("gnn", "", "gnn"),
    "GNN": ("spn", "", "gnn"),
    "GNN, smoothed": ("smooth", "", "smooth"),
    "CRF, linear": ("crf", "", "crf"),
    "CRF, maximin game": ("crf", "", "crf"),
    "CRF, pseudolikelihood": ("crf", "pseudolikelihood", "crf"),
    "GMNN": ("gmnn", "", "gmnn"),
    "SPN": ("spn", "", "spn"),
    "SPN, refined": ("spn", "refined", "spn"),
}


def test_the_table_of_all_methods_is_that_of_the_store(stored):
    results = Results(*stored)
    section = (ROOT / "docs" / "results.md").read_text().split("\n## All methods")[1].split("\n## ")[0]
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in section.splitlines() if "±" in line]
    assert [row[0] for row in rows] == list(ROWS)
    for name, encoder, *cells in rows:
        method, variant, way = ROWS[name]
        for data, told in zip(("cora*", "citeseer*", "pubmed*"), cells[::2], strict=True):
            cell = Cell(TRAINING, data, method, encoder, "accord", variant)
            values = [100 * value for value in results.summary(Source(cell, way, "graph")).values.values()][:5]
            assert told == f"{mean(values):.1f} ± {stdev(values):.1f}", (name, data)
