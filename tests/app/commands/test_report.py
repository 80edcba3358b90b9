import json
import re
import shutil
from html.parser import HTMLParser

import pytest
from support.command_line import call, refused

from accord._files import CHECKSUM

PNG = b"\x89PNG\r\n"


class Page(HTMLParser):
    """Collects tags and text."""

    def __init__(self, text):
        super().__init__()
        self.tags, self.text = [], ""
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        self.tags.append((tag, dict(attributes)))

    def handle_data(self, data):
        self.text += data


def test_the_report_has_table_pictures_and_settings_in_one_file(trained):
    source = (trained / "report.html").read_text()
    page = Page(source)
    for word in ("GNN", "edge GNN", "SPN", "node accuracy", "graph accuracy", "unseen nodes", "calibration error"):
        assert word in page.text, word
    for section in ("What joint labelling can gain here", "of the edges join equal labels", "Networks that were tried"):
        assert section in page.text, section
    assert "recipe: node.learning rate" in page.text and "chosen: sharpness" in page.text
    pictures = [attributes["src"] for tag, attributes in page.tags if tag == "img"]
    assert len(pictures) >= 3  # curves, reliability, at least one graph
    loaded = [attributes.get(key) for _, attributes in page.tags for key in ("src", "srcset", "href")]
    assert all(link.startswith("data:image/png;base64,") for link in loaded if link)
    assert not re.search(r"https?:|@import|url\(", re.sub(r"base64,[\w+/=]+", "", source))
    assert not any(tag in ("script", "link", "iframe") for tag, _ in page.tags)


def test_the_report_can_be_written_again_without_the_data(trained, tmp_path):
    run = shutil.copytree(trained, tmp_path / "run")
    before = (run / "report.html").read_bytes()
    for name in ("report.html", "curves.png"):
        (run / name).unlink()
    result = call("report", run)
    assert result.exit_code == 0 and "report.html" in result.stdout
    assert (run / "report.html").read_bytes() == before
    assert (run / "curves.png").read_bytes().startswith(PNG)


def test_the_report_tells_what_is_doubtful(trained, tmp_path):
    """Runs of earlier versions have no diagnosis, and their report no such section."""
    run = shutil.copytree(trained, tmp_path / "run")
    results = json.loads((run / "results.json").read_text())
    found = results["diagnosis"]
    assert 0 <= found["disagreeing"] <= found["nodes"] == 42 and found["graphs"] == 6
    text = (trained / "report.html").read_text()
    assert "What is doubtful" in text and f"{found['unlikely']} of {found['edges']}" in text
    del results["diagnosis"], results[CHECKSUM]
    (run / "results.json").write_text(json.dumps(results))
    assert call("report", run).exit_code == 0
    assert "What is doubtful" not in (run / "report.html").read_text()


def test_cases_are_graphs_on_which_the_parts_differ(trained):
    cases = json.loads((trained / "cases.json").read_text())["cases"]
    assert cases
    for case in cases:
        assert len({*map(tuple, case["labels"].values())}) > 1
        assert len(case["truth"]) == 7 and len(case["edges"][0]) == 7


def test_names_from_files_cannot_break_the_page(trained, tmp_path):
    run = shutil.copytree(trained, tmp_path / "run")
    config = json.loads((run / "config.json").read_text())
    config["data"]["name"] = "<script>alert(1)</script>"
    config["label_names"] = ["$a_b$", "<b>", "\\frac"]
    del config["sha256"]
    (run / "config.json").write_text(json.dumps(config))
    assert call("report", run).exit_code == 0
    assert "<script>" not in (run / "report.html").read_text()


def without(*keys):
    def change(value):
        inside = value
        for key in keys[:-1]:
            inside = inside[key]
        del inside[keys[-1]]

    return change


def change_file(trained, tmp_path, file, *changes):
    run = shutil.copytree(trained, tmp_path / "run")
    value = json.loads((run / file).read_text())
    for change in changes:
        change(value)
    (run / file).write_text(json.dumps(value))
    return run


@pytest.mark.parametrize(
    ("file", "change"),
    [
        ("results.json", without("titles")),
        ("config.json", without("data", "name")),
        ("config.json", lambda value: value["settings"].update(seed=5)),
        ("cases.json", lambda value: value["cases"][0]["truth"].reverse()),
    ],
)
def test_damage_is_found_by_checksums(trained, tmp_path, file, change):
    run = change_file(trained, tmp_path, file, change)
    assert f"{file}: is damaged: its content does not match its checksum" in refused("report", run)


@pytest.mark.parametrize(
    ("file", "change", "message"),
    [
        ("config.json", without("settings"), "config.json: is damaged: settings.method, settings.seed, settings.level"),
        ("config.json", without("data", "source"), "config.json: is damaged: data.source cannot be found"),
        ("config.json", without("data", "graphs", "val"), "config.json, results.json or cases.json is damaged"),
        ("cases.json", without("cases", 0, "truth"), "config.json, results.json or cases.json is damaged"),
        ("cases.json", without("cases"), "config.json, results.json or cases.json is damaged"),
    ],
)
def test_damaged_files_without_a_checksum_are_refused_in_words(trained, tmp_path, file, change, message):
    run = change_file(trained, tmp_path, file, change, without("sha256"))
    assert message in refused("report", run)


def test_cases_of_older_runs_are_a_list(trained, tmp_path):
    run = shutil.copytree(trained, tmp_path / "run")
    before = (run / "report.html").read_bytes()
    cases = json.loads((run / "cases.json").read_text())["cases"]
    (run / "cases.json").write_text(json.dumps(cases))
    assert call("report", run).exit_code == 0 and (run / "report.html").read_bytes() == before


def test_results_without_a_checksum_are_read(trained, tmp_path):
    run = shutil.copytree(trained, tmp_path / "run")
    results = json.loads((run / "results.json").read_text())
    del results["sha256"], results["titles"]
    (run / "results.json").write_text(json.dumps(results))
    assert "is damaged (KeyError: 'titles')" in refused("report", run)


def test_a_run_chosen_by_f1_has_a_report(data_folder, tmp_path):
    run = tmp_path / "run"
    options = ["--level", "f1", "--encoder", "mlp", "--max-epochs", "3", "--accelerator", "cpu"]
    done = call("fit", data_folder, *options, "--run", run)
    assert done.exit_code == 0, done.output
    assert "the score asked for by the node network alone" in (run / "report.html").read_text()
