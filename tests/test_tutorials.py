"""The tutorial's commands, run as they stand on files of the same form."""

import json
import random
import re
import shlex
import shutil
from pathlib import Path

import pytest
from support.command_line import call
from support.serving import Server

from accord.datasets import find_file

# Words of test pages may be missing in training, and two epochs make a poor field.
pytestmark = [
    pytest.mark.filterwarnings("ignore::accord.errors.UnseenCategoriesWarning"),
    pytest.mark.filterwarnings("ignore::accord.errors.ConvergenceWarning"),
]
PAGE = Path(__file__).parent.parent / "docs" / "facebook_pages.md"
TYPES = ("company", "government", "politician", "tvshow")
QUICK = {"60": "2"}  # epochs


def blocks(language):
    return re.findall(rf"```{language}\n(.*?)```", PAGE.read_text(), flags=re.DOTALL)


def write_sample(folder, count=160, seed=0):
    """Pages in communities of one type; each type has words of its own."""
    rng = random.Random(seed)
    folder.mkdir()
    types = [TYPES[(page // 8) % 4] for page in range(count)]
    rows = [f'{page},{10**9 + page},"Page, no. {page} 中",{types[page]}' for page in range(count)]
    (folder / "target.csv").write_text(
        "id,facebook_id,page_name,page_type\n" + "\n".join(rows) + "\n", encoding="utf-8"
    )
    links = [(page, 8 * (page // 8) + rng.randrange(8)) for page in range(count) for _ in range(3)]
    links += [(rng.randrange(count), rng.randrange(count)) for _ in range(count // 4)]
    (folder / "edges.csv").write_text("id_1,id_2\n" + "".join(f"{a},{b}\n" for a, b in links))
    words = {
        page: rng.sample(range(40), 3) + [40 + 10 * TYPES.index(types[page]) + rng.randrange(10)]
        for page in range(count)
    }
    (folder / "features.json").write_text(json.dumps(words))


def run_page(tmp_path, monkeypatch):
    """Run every command of the page; gives what each printed."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "facebook_pages" / "accord.toml").write_text(blocks("toml")[0])
    said = {}
    for command in [line for block in blocks("sh") for line in block.splitlines() if line]:
        words = [QUICK.get(word, word) for word in shlex.split(command)]
        assert words[0] == "accord"
        if words[1] == "serve":
            said[command] = ask_server(*words[2:])
            continue
        result = call(*words[1:])
        assert result.exit_code == 0, f"{command}: {result.output}"
        said[command] = result.output
    return said


def ask_server(run, *options):
    """Start the server of the page; gives the labels of the first graph that it offers."""
    with Server(run, *options) as server:
        graphs = server.client.get("/api/graphs").json()["graphs"]
        answer = server.client.post("/api/predict", json={"graphs": [{"graph": {"id": graphs[0]["id"]}}]})
        assert answer.status_code == 200, answer.text
        return answer.json()["graphs"][0]["labels"]


def test_the_tutorial_runs_on_a_sample(tmp_path, monkeypatch):
    write_sample(tmp_path / "facebook_pages")
    said = run_page(tmp_path, monkeypatch)
    assert "No problems found" in said["accord data check facebook_pages"]
    labels = (tmp_path / "labels.csv").read_text().splitlines()
    assert labels[0] == "node,label,probability"
    assert {line.split(",")[1] for line in labels[1:]} <= set(TYPES)
    assert len((tmp_path / "all_labels.csv").read_text().splitlines()) == 161
    assert "own evidence" in said["accord explain runs/pages facebook_pages --node 0"]
    served = said["accord serve runs/pages --data pages"]
    assert served == [line.split(",")[1] for line in labels[1:]]


@pytest.mark.matrix
def test_the_tutorial_runs_on_the_published_files(tmp_path, monkeypatch):
    """Takes about two minutes."""
    target = find_file("facebook_pages/target.csv")
    if target is None:
        pytest.skip("facebook_pages/ is not under $ACCORD_DATA")
    shutil.copytree(target.parent, tmp_path / "facebook_pages", copy_function=shutil.copyfile)
    (tmp_path / "facebook_pages").chmod(0o755)
    said = run_page(tmp_path, monkeypatch)
    split = next(text for command, text in said.items() if "data split" in command)
    assert "26745 of 170823 edges (15.7 %)" in " ".join(split.split())
    assert len((tmp_path / "all_labels.csv").read_text().splitlines()) == 22471
