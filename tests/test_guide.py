"""The guide: its hooks for mkdocs, its navigation, its pictures, its commands and its figures."""

import importlib.util
import re
import shlex
import sys
from pathlib import Path

import griffe
import pytest
import yaml
from typer.testing import CliRunner

from accord.app.cli import app

ROOT = Path(__file__).parent.parent
DOCS = ROOT / "docs"


def load_tool(name):
    spec = importlib.util.spec_from_file_location(f"docs_{name}", DOCS / "tools" / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # dataclasses look their module up
    spec.loader.exec_module(module)
    return module


hooks = load_tool("hooks")


def read_settings():
    return yaml.safe_load((ROOT / "mkdocs.yml").read_text())


@pytest.mark.parametrize(
    "uri, link, expected",
    [
        ("results.md", "../results/citation/README.md#a", "repository/results/citation/README.md#a"),
        ("attack.md", "../results/attack", "repository/results/attack/index.md"),
        ("adr/0005-plain-shapes.md", "../../results/demo/README.md", "../repository/results/demo/README.md"),
        ("README.md", "quick_start.md", "quick_start.md"),
        ("repository/benchmarks/README.md", "../docs/inference.md", "../../inference.md"),
        ("repository/results/README.md", "citation/README.md", "citation/README.md"),
        ("versions.md", "https://semver.org", "https://semver.org"),
        ("versions.md", "no/such/file.md", "no/such/file.md"),
    ],
)
def test_links_lead_to_pages_of_the_site(uri, link, expected):
    assert hooks.rewrite_links(f"see [x]({link}).", uri) == f"see [x]({expected})."


def test_a_folder_without_a_readme_is_listed():
    text = hooks.list_folder(ROOT / "results" / "attack")
    assert text.startswith("# results/attack\n") and "- [runs.json](runs.json)" in text
    linked = {path.name for path in hooks.linked(text, ROOT / "results" / "attack" / "index.md")}
    assert linked == {path.name for path in (ROOT / "results" / "attack").iterdir()}


def test_a_picture_follows_the_colours_of_the_page():
    text = "![a\nb](x.png) and ![c](y.png)"
    both = "![a\nb](x.png#only-light)![a\nb](x.dark.png#only-dark) and ![c](y.png)"
    assert hooks.add_dark_pictures(text, lambda name: name == "x.dark.png") == both


def test_what_other_hosts_supply_is_found():
    assert hooks.loaded_elsewhere('<script defer src="https://cdn.example/x.js"></script>') == [
        "https://cdn.example/x.js"
    ]
    assert hooks.loaded_elsewhere('<link rel="stylesheet" href="//fonts.example/a.css">') == ["//fonts.example/a.css"]
    assert hooks.loaded_elsewhere("@import url(https://fonts.example/b.css)") == ["https://fonts.example/b.css"]
    assert hooks.loaded_elsewhere('<a href="https://example.org">x</a><img src="a.png">') == []


def test_every_page_is_in_the_navigation_once():
    entries = [*hooks._entries(hooks.expand_nav(read_settings()["nav"]))]
    pages = {path.relative_to(DOCS).as_posix() for path in DOCS.rglob("*.md")}
    assert sorted(entry for entry in entries if not entry.startswith("repository/")) == sorted(pages)
    assert len(entries) == len(set(entries))


def test_every_public_module_is_in_the_reference():
    text = "\n".join(page.read_text() for page in (DOCS / "api").glob("*.md"))
    named = set(re.findall(r"^::: (accord[\w.]*)", text, flags=re.MULTILINE))
    public = re.findall(r"`(accord\.\w+)`", (DOCS / "versions.md").read_text().split("Everything else may change")[0])
    assert {name for name in public if not name.endswith("__")} <= named


def test_the_comment_of_a_field_describes_it():
    lines = ["class A:", "    x: int  # [*replicas, nodes]", "    y: int", "    z: int", "    'Its own.'"]
    code = "\n".join([*lines, "w: int = 1  # of a module"])
    extensions = griffe.load_extensions(load_tool("comments").FieldComments())
    with griffe.temporary_visited_module(code, extensions=extensions) as module:
        found = {name: field.docstring and field.docstring.value for name, field in module["A"].members.items()}
        assert found == {"x": r"\[\*replicas, nodes]", "y": None, "z": "Its own."}
        assert module["w"].docstring is None


def test_ci_builds_the_guide_and_warnings_are_errors():
    assert "make docs" in (ROOT / ".ci" / "run").read_text().splitlines()
    recipe = re.search(r"^docs:.*\n((?:\t.*\n)+)", (ROOT / "Makefile").read_text(), re.MULTILINE)[1]
    assert "mkdocs build" in recipe and "--strict" in recipe
    assert "quiet" not in recipe  # it hides warnings from --strict too


PICTURES = {path.name.split(".")[0] for path in (DOCS / "pictures").iterdir()}


def test_every_picture_is_shown_and_has_a_dark_version():
    shown = re.findall(r"\]\(pictures/(\w+)\.png\)", "".join(page.read_text() for page in DOCS.glob("*.md")))
    assert PICTURES == set(shown)
    for name in PICTURES:
        assert (DOCS / "pictures" / f"{name}.png").is_file() and (DOCS / "pictures" / f"{name}.dark.png").is_file()


@pytest.mark.matrix
def test_the_pictures_can_be_drawn_again(tmp_path):
    load_tool("pictures").main(tmp_path, graphs=20, epochs=6)
    drawn, stored = ({path.name for path in folder.iterdir()} for folder in (tmp_path, DOCS / "pictures"))
    assert drawn == stored


def test_the_commands_of_the_quick_start_run(tmp_path, monkeypatch):
    text = (DOCS / "quick_start.md").read_text()
    commands = re.findall(r"^    accord (.+)$", text, flags=re.MULTILINE)
    assert len(commands) >= 4
    code = re.search(r"```python\n(.*?)```", text, flags=re.DOTALL)[1]
    assert "max_epochs=40" in code
    monkeypatch.chdir(tmp_path)
    exec(compile(code.replace("max_epochs=40", "max_epochs=3"), "quick_start.md", "exec"), {})
    for command in commands:
        result = CliRunner().invoke(app, shlex.split(command), catch_exceptions=False)
        assert result.exit_code == 0, (command, result.output)
    assert (tmp_path / "labels.csv").read_text().startswith("node,label")


def rows_of(name):
    lines = (ROOT / "results" / name / "README.md").read_text().splitlines()
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines if line.startswith("| ")][1:]


def test_gains_of_ensembles_and_refitting_are_those_of_the_results():
    found = {}
    for data, encoder, model, refit, _, _, *scores in rows_of("ensembles"):
        if refit in ("yes", "no"):  # of the page's tables, only the first says it
            found[data, encoder, "single" in model, refit] = float(scores[0].split(" ")[0])
    keys = {key[:2] for key in found}
    together = [found[(*key, False, "no")] - found[(*key, True, "no")] for key in keys]
    again = [found[(*key, True, "yes")] - found[(*key, True, "no")] for key in keys]
    text = " ".join((DOCS / "choosing_a_method.md").read_text().split())
    assert f"by {min(together):.1f} to {max(together):+.1f} points" in text
    assert f"models by {min(again):+.1f} to {max(again):+.1f} (" in text


def test_the_training_time_is_that_of_the_results():
    ratios = [float(row[5].rstrip("x")) for row in rows_of("run-time") if row[5].endswith("x")]
    text = " ".join((DOCS / "how_it_works.md").read_text().split())
    assert f"[{min(ratios)} to {max(ratios)} times as long]" in text
