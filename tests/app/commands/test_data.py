"""`accord data check` and `accord data split`, and tables through fit, predict and evaluate."""

import csv
import re

import pytest
from support.command_line import call, refused

from accord.datasets import read_folder, read_graphs


def write_pages(folder, count=60, first=0):
    """Pages of two kinds in a ring of rings, with a column of text that shows the kind, as tables with other names."""
    folder.mkdir(parents=True)
    names = [f"p{first + number}" for number in range(count)]
    kinds = ["shop" if (number // 10) % 2 else "team" for number in range(count)]
    rows = [
        f"{name},{kind},{'red' if (kind == 'shop') ^ (number % 7 == 0) else 'blue'},{number % 5 or ''}"
        for number, (name, kind) in enumerate(zip(names, kinds, strict=True))
    ]
    (folder / "pages.csv").write_text("page,type,colour,size\n" + "\n".join(rows) + "\n")
    links = [f"{names[n]},{names[(n // 10) * 10 + (n + 1) % 10]}" for n in range(count)]
    links += [f"{names[n]},{names[(n + 10) % count]}" for n in range(0, count, 10)]
    (folder / "links.csv").write_text("a,b\n" + "\n".join(links) + "\n")
    return folder


MAPPING = """
[nodes]
file = "pages.csv"
id = "page"
label = "type"
[edges]
file = "links.csv"
source = "a"
target = "b"
"""


@pytest.fixture
def pages(tmp_path):
    folder = write_pages(tmp_path / "pages")
    (folder / "accord.toml").write_text(MAPPING)
    return folder


def plain(text):
    """Output without the lines of tables, in one line."""
    return re.sub(r"[\s┃│]+", " ", text)


def test_a_check_says_what_was_understood(pages):
    result = call("data", "check", pages)
    assert result.exit_code == 0
    shown = plain(result.stdout)
    for part in (
        "Mapping file:",
        "pages.csv colour feature: 2 categories",
        "pages.csv size feature: numbers; 12 of 60 missing, filled with the training mean",
        "pages.csv type label",
        "nodes 60",
        "edges 66",
        "shop 50.0 %, team 50.0 %",
        "90.9 % of the edges between labelled nodes join equal labels; by chance it would be 50.0 %",
        "No problems found.",
    ):
        assert part in shown, part


def test_a_check_lists_every_problem_and_fails(pages):
    nodes = (pages / "pages.csv").read_text().replace("p3,team,", "p3,").replace("p5,", "p4,")
    (pages / "pages.csv").write_text(nodes)
    result = call("data", "check", pages)
    assert result.exit_code == 1
    shown = plain(result.stdout)
    assert "pages.csv, line 5: has 3 cells" in shown and "pages.csv, line 7: the id 'p4' is already used" in shown
    assert "links.csv, line 4: b 'p3' is not an id" in shown and "links.csv, line 5: a 'p3' is not an id" in shown
    assert re.search(r"\d+ problems:", shown)


def test_columns_may_be_named_by_options(pages, tmp_path):
    (pages / "accord.toml").rename(tmp_path / "other.toml")
    assert call("data", "check", pages).exit_code == 1
    result = call("data", "check", pages, "--mapping", tmp_path / "other.toml", "--map", "nodes.ignore=colour,size")
    assert "no column can be used as a feature" in plain(result.stdout) or "no feature columns" in plain(result.stdout)
    assert (
        call("data", "check", pages, "--mapping", tmp_path / "other.toml", "--map", "nodes.ignore=size").exit_code == 0
    )
    assert "SECTION.KEY=VALUE" in refused("data", "check", pages, "--map", "label")
    assert "has no key 'lable'" in refused("data", "check", pages, "--map", "nodes.lable=type")


@pytest.mark.parametrize("form", ["npz", "json", "tables"])
def test_a_split_is_a_data_folder_with_all_names(pages, tmp_path, form):
    out = tmp_path / "split"
    result = call("data", "split", pages, out, "--shares", "50,25,25", "--form", form, "--seed", "1")
    assert result.exit_code == 0, result.output
    assert re.search(r"\d+ of 66 edges \(\d+\.\d %\) joined two parts and were cut", plain(result.stdout))
    bench = read_folder(out)
    names = [name for part in (bench.train, bench.val, bench.test) for graph in part for name in graph.node_names]
    assert sorted(names) == sorted(f"p{number}" for number in range(60))
    assert bench.label_names == ["shop", "team"]
    assert sorted(bench.feature_names) == ["colour=blue", "colour=red", "size", "size is missing"]


@pytest.mark.filterwarnings("always::accord.errors.UnseenCategoriesWarning")
def test_a_table_with_a_split_column_is_fitted_and_new_files_are_labelled(tmp_path):
    folder = write_pages(tmp_path / "pages")
    rows = (folder / "pages.csv").read_text().splitlines()
    splits = ["split", *(("train", "train", "val", "test")[number // 10 % 4] for number in range(60))]
    (folder / "pages.csv").write_text("\n".join(f"{row},{part}" for row, part in zip(rows, splits, strict=True)))
    (tmp_path / "pages.toml").write_text(MAPPING)
    run, mapping = tmp_path / "run", ["--mapping", tmp_path / "pages.toml"]
    quick = ["--method", "gnn", "--encoder", "mlp", "--max-epochs", "2", "--accelerator", "cpu"]
    result = call("fit", folder, "--run", run, *quick, *mapping)
    assert result.exit_code == 0, result.output
    assert "nodes in test_mask" in plain(result.stdout)
    assert "split: train, val or test" in plain(result.stderr)
    new = write_pages(tmp_path / "new", 20, first=500)
    nodes = (new / "pages.csv").read_text().replace("type,", "").replace("shop,", "").replace("team,", "")
    (new / "pages.csv").write_text(nodes.replace("red", "pink", 1))
    labelled = call("predict", run, new, *mapping)
    assert labelled.exit_code == 0, labelled.output
    rows = list(csv.DictReader(labelled.stdout.splitlines()))
    assert [row["node"] for row in rows] == [f"p{500 + number}" for number in range(20)]
    assert {row["label"] for row in rows} <= {"shop", "team"}
    assert "column 'colour' holds values that no training graph has: 'pink' (at 1)" in labelled.stderr


def test_ego_networks_are_written_one_file_each(pages, tmp_path):
    assert call("data", "split", pages, tmp_path / "egos", "--egos", "6", "--shares", "60,20,20").exit_code == 0
    assert [len(read_graphs(tmp_path / "egos" / part)) for part in ("train", "val", "test")] == [6, 2, 2]


def test_splits_that_cannot_be_made_are_refused(pages, tmp_path):
    assert "is not a list of numbers" in refused("data", "split", pages, tmp_path / "a", "--shares", "x")
    assert "three positive numbers" in refused("data", "split", pages, tmp_path / "a", "--shares", "50,50")
    assert "--form 'xls' is unknown" in refused("data", "split", pages, tmp_path / "a", "--form", "xls")
    assert "not an empty folder" in refused("data", "split", pages, pages)
    assert "holds 2 graphs" in refused("data", "split", two_graphs(tmp_path / "two"), tmp_path / "a")


def two_graphs(folder):
    folder.mkdir()
    (folder / "nodes.csv").write_text("id,graph,a\nu,1,1\nv,2,2\n")
    (folder / "edges.csv").write_text("source,target\n")
    return folder
