"""README and docs: their Python runs, their links lead to files, and their figures equal those of results/."""

import json
import re
from pathlib import Path
from statistics import mean

import pytest

import accord

ROOT = Path(__file__).parent.parent
PAGES = [
    ROOT / "README.md",
    ROOT / "CONTRIBUTING.md",
    ROOT / "SECURITY.md",
    ROOT / "benchmarks" / "README.md",
    ROOT / "examples" / "README.md",
    *sorted((ROOT / "docs").rglob("*.md")),
]
LINK = re.compile(r"\]\(([^)\s]+)\)")
QUICK = ('benchmark="cora*"', 'benchmark="cora*", max_epochs=2')  # the README's own training takes minutes
README_WORDS = 1000
ADR_WORDS = 500


def python_blocks(page):
    return re.findall(r"```python\n(.*?)```", page.read_text(), flags=re.DOTALL)


def table_rows(text):
    """Cells of every table row, without headers and rules."""
    lines = text.splitlines()
    rules = [place for place, line in enumerate(lines) if re.fullmatch(r"\|[-:| ]+\|", line)]
    for rule in rules:
        for line in lines[rule + 1 :]:
            if not line.startswith("|"):
                break
            yield [cell.strip() for cell in line.strip("|").split("|")]


def broken_links(page, text):
    targets = {target.split("#")[0] for target in LINK.findall(text) if "://" not in target}
    return sorted(target for target in targets if target and not (page.parent / target).exists())


def run_block(code, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    exec(compile(code, "<block>", "exec"), {"__name__": "__main__"})


@pytest.mark.data("planetoid_cora.npz")
@pytest.mark.filterwarnings("ignore::accord.errors.ConvergenceWarning")  # two epochs make a poor field
def test_the_readme_trains_predicts_and_saves(tmp_path, monkeypatch):
    code = python_blocks(ROOT / "README.md")[0]
    assert code.count(QUICK[0]) == 1
    run_block(code.replace(*QUICK), tmp_path, monkeypatch)
    assert (tmp_path / "runs" / "cora" / "model.safetensors").is_file()


OTHER_BLOCKS = [
    pytest.param(code, id=f"{page.relative_to(ROOT)}-{place}")
    for page in PAGES
    for place, code in enumerate(python_blocks(page))
    if (page.name, place) != ("README.md", 0) or page.parent != ROOT
]


@pytest.mark.parametrize("code", OTHER_BLOCKS)
def test_every_other_block_runs_in_an_empty_folder(code, tmp_path, monkeypatch):
    run_block(code, tmp_path, monkeypatch)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_relative_links_lead_to_files(page):
    assert broken_links(page, page.read_text()) == []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_paths_in_the_text_exist(page):
    named = re.findall(r"`((?:accord|benchmarks|docs|examples|results|tests)/[\w./-]+)`", page.read_text())
    assert [name for name in named if not (ROOT / name).exists() and not (ROOT / f"{name}.py").exists()] == []


def test_the_link_test_can_fail():
    text = "[a](README.md) [b](no/such/file.md#part) [c](https://example.org/x) [d](#here)"
    assert broken_links(ROOT / "README.md", text) == ["no/such/file.md"]


def test_the_readme_shows_the_figures_of_the_citation_results():
    source = {}
    for row in table_rows((ROOT / "results" / "citation" / "README.md").read_text()):
        data, encoder, preset, _, *values = row
        if preset == "accord":
            gnn_graph, spn_graph, _, gnn_node, spn_node, *_ = (value.split(" ± ")[0] for value in values)
            source[data, encoder] = [gnn_graph, spn_graph, gnn_node, spn_node, values[-1]]
    shown = {(row[0], row[1]): row[2:] for row in table_rows((ROOT / "README.md").read_text())}
    assert shown == source | sequence_figures()


def sequence_figures():
    """Rows of the README about sequences: softmax and SPN, of whole sequences and of single positions."""
    tasks = {"ocr": ("OCR letters", "word", "letter"), "ewt": ("UD EWT", "sentence", "token")}
    return {
        (title, "bilstm"): [sequence_mean(name, method, m) for m in metrics for method in ("softmax", "spn")] + ["-"]
        for name, (title, *metrics) in tasks.items()
    }


def sequence_mean(task, method, metric):
    """Mean over seeds of the mean over folds in percent, from the records and rounded once."""
    text = (ROOT / "results" / "sequences" / f"{task}.jsonl").read_text()
    seeds = {}
    for record in map(json.loads, text.splitlines()):
        if record["method"] == method:
            seeds.setdefault(record["seed"], []).append(100 * record["test"][metric])
    assert len(seeds) == 5
    return f"{mean(map(mean, seeds.values())):.1f}"


def test_the_readme_says_where_the_spn_is_below_another_method():
    ours, theirs = (sequence_mean("wnut", method, "entity F1") for method in ("spn", "pytorch-crf"))
    text = " ".join((ROOT / "README.md").read_text().split())
    assert f"(F1 on WNUT-17: SPN {ours}, pytorch-crf {theirs})" in text


JOBS = "learning_jobs.txt"  # output of commands, not a table


def unsupported_rows(section, folder):
    """Table rows of a section that are in no table of a file it links to; times need all their figures in JOBS."""
    files = [folder / target.split("#")[0] for target in LINK.findall(section)]
    known = [row for path in files if path.is_file() for row in table_rows(path.read_text())]
    printed = set()
    for path in files:
        if path.name == JOBS:
            printed |= set(re.findall(r"\d+\.\d+", path.read_text()))
    for row in table_rows(section):
        figures = re.findall(r"\d+\.\d+", " ".join(row))
        if row not in known and not (figures and printed.issuperset(figures)):
            yield row


def test_docs_results_shows_the_figures_of_its_sources():
    page = ROOT / "docs" / "results.md"
    sections = page.read_text().split("\n## ")[1:]
    assert sum(len([*table_rows(section)]) for section in sections) > 20
    for section in sections:
        assert [*unsupported_rows(section, page.parent)] == []


def test_choosing_a_method_shows_the_figures_of_its_source():
    page = ROOT / "docs" / "choosing_a_method.md"
    section = page.read_text().split("\n## When joint labels pay")[1].split("\n## ")[0]
    assert len([*table_rows(section)]) > 5
    assert [*unsupported_rows(section, page.parent)] == []


def test_the_test_of_figures_can_fail():
    section = "[results/methods](../results/methods/README.md)\n\n| a |\n|---|\n| GNN 12.3 |\n"
    assert [*unsupported_rows(section, ROOT / "docs")] == [["GNN 12.3"]]


def test_pages_stay_short():
    assert len((ROOT / "README.md").read_text().split()) <= README_WORDS
    for page in sorted((ROOT / "docs" / "adr").glob("*.md")):
        assert len(page.read_text().split()) <= ADR_WORDS, page.name


def test_the_citation_names_the_packaged_version():
    assert f"\nversion: {accord.__version__}\n" in (ROOT / "CITATION.cff").read_text()


def test_every_fault_names_a_test_that_exists():
    rows = table_rows((ROOT / "docs" / "faults.md").read_text())
    named = [re.fullmatch(r"`([\w/]+\.py)::(test_\w+)`", row[-1]) for row in rows]
    assert len(named) > 60 and all(named)
    for place, name in (found.groups() for found in named):
        assert f"\ndef {name}(" in (ROOT / "tests" / place).read_text(), name
