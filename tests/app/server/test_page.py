"""The page in a real browser: upload, step, click, clamp, forbid, export; and a server that is killed meanwhile."""

import csv
import io
import signal
import struct

import pytest
import torch
from support.browsing import browser, chromium_path
from support.command_line import NAMES, make_graph
from support.serving import Server

from accord.datasets import read_graph, write_graph
from accord.estimator import NodeClassifier

TOKEN = "a-token-of-the-tests"
SECONDS = 30_000  # milliseconds, for a busy machine


@pytest.fixture(scope="module")
def chromium():
    with browser() as running:
        yield running


@pytest.fixture(scope="module")
def served(trained, data_folder):
    chromium_path()  # do not start a server for tests that are skipped
    with Server(trained, "--data", data_folder, env={"ACCORD_TOKEN": TOKEN}) as running:
        yield running


@pytest.fixture
def page(chromium, served):
    """A tab in which the first graph is shown; anything that the browser complains about fails the test."""
    context = chromium.new_context(viewport={"width": 1280, "height": 800}, accept_downloads=True)
    tab = context.new_page()
    tab.set_default_timeout(SECONDS)
    complaints = []
    tab.on("pageerror", lambda error: complaints.append(str(error)))
    tab.on("console", lambda said: complaints.append(said.text) if said.type in ("error", "warning") else None)
    tab.complaints = complaints
    tab.goto(served.url)
    tab.wait_for_selector("#node-list button")
    settle(tab)
    yield tab
    assert not complaints
    context.close()


def joint_labels(page):
    """The label of every node, as the list of nodes has them."""
    rows = page.locator("#node-list button").all()
    return [row.locator("span").nth(1).inner_text() for row in rows]


def settle(page):
    """Wait until the page has done what it was asked."""
    page.wait_for_selector("body:not(.busy)")  # the page's policy allows no code from outside, so no condition in words


def upload(page, path):
    page.set_input_files("#upload", path)
    settle(page)


def saved(page, button):
    with page.expect_download() as waiting:
        page.click(button)
    return waiting.value.path().read_bytes(), waiting.value.suggested_filename


def test_the_whole_tour(page, trained, graph_file):
    """What a visitor does, in one visit; at each step the page says what the library says."""
    model, graph = NodeClassifier.load(trained), read_graph(graph_file)

    # Upload a graph, and see every part of the model side by side.
    upload(page, graph_file)
    titles = page.locator(".panel h2").all_inner_texts()
    assert [title.split("  ")[0].strip() for title in titles][0] == "True labels" and len(titles) == 4
    assert joint_labels(page) == [NAMES[state] for state in model.predict(graph).tolist()]

    # Click a node in the drawing: its probabilities and its explanation.
    box = page.locator(".canvas[data-part=spn]").bounding_box()
    where = page.evaluate("() => window.accord.stage.panels.get('spn').cy.getElementById('n3').renderedPosition()")
    page.mouse.click(box["x"] + where["x"], box["y"] + where["y"])
    page.wait_for_selector("#node-words p")
    explained = model.explain(graph, 3)
    assert page.inner_text("#node-title") == "Node 3"
    assert f"Label {NAMES[explained.label]}, probability" in page.inner_text("#node-words")
    numbers = page.locator("#node-contributions .number").all_inner_texts()
    assert len(numbers) == 3  # its own evidence and two neighbours
    lead = float(numbers[0].replace("−", "-"))
    assert lead == pytest.approx(explained.log_odds(explained.evidence), abs=0.006)
    page.locator("#node-contributions .drop").first.click()
    page.wait_for_selector('#what-if:has-text("Without the edge to node")')

    # Clamp its label: the rest follows as in the library.
    other = next(name for name in NAMES if name != NAMES[explained.label])
    page.select_option("#clamp", label=other)
    settle(page)
    wanted = [NAMES[state] for state in model.predict(graph, known={3: other}).tolist()]
    assert joint_labels(page) == wanted and wanted[3] == other

    # Forbid a pair as well.
    first, second = (wanted[0], next(name for name in wanted if name != wanted[0]))
    page.select_option("#forbid-a", label=first)
    page.select_option("#forbid-b", label=second)
    page.click("#forbid-add")
    settle(page)
    given = {"known": {3: other}, "forbid": [(first, second)]}
    assert joint_labels(page) == [NAMES[state] for state in model.predict(graph, **given).tolist()]

    # Export the table: the same labels and probabilities, and what was known.
    text, name = saved(page, "#export-csv")
    assert name == "ring.csv"
    rows = list(csv.DictReader(io.StringIO(text.decode())))
    assert [row["label"] for row in rows] == joint_labels(page)
    assert [row["known"] for row in rows] == ["0", "0", "0", "1", "0", "0", "0"]
    assert [row["true"] for row in rows] == [NAMES[state] for state in make_graph(300).y.tolist()]
    table = torch.tensor([[float(row[f"p({name})"]) for name in NAMES] for row in rows])
    torch.testing.assert_close(table, model.predict_proba(graph, **given), atol=1e-4, rtol=0)

    # Export the picture.
    picture, name = saved(page, "#export-png")
    assert name == "ring.png" and picture.startswith(b"\x89PNG")
    width, height = struct.unpack(">II", picture[16:24])
    assert width > 800 and height > 400

    # Step through the sweeps; the first shows each node's own evidence.
    page.focus("#sweep")
    page.keyboard.press("Home")
    page.wait_for_selector('#sweep-text:has-text("Before the first sweep")')
    shown = page.evaluate("() => window.accord.stage.panels.get('spn').cy.nodes().map(n => n.data('text'))")
    sweeps = model.sweeps(graph, **given)
    assert shown == [f"{NAMES[state][:2]}…" for state in sweeps[0].probabilities.argmax(-1).tolist()]
    page.click("#sweep-next")
    page.wait_for_selector('#sweep-text:has-text("After 1 sweep")')
    page.click("text=Play sweeps")
    page.wait_for_selector('#sweep-text:has-text("After 2 sweeps")')

    # Forget all: back to the first labels.
    page.click("#forget")
    settle(page)
    assert joint_labels(page) == [NAMES[state] for state in model.predict(graph).tolist()]


def test_every_node_is_reached_by_keyboard(page):
    page.focus("#search")
    page.keyboard.press("ArrowDown")
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Enter")
    page.wait_for_selector("#node-words p")
    assert page.inner_text("#node-title") == "Node 1"
    assert page.evaluate("getComputedStyle(document.activeElement).outlineStyle") == "solid"  # focus is visible
    page.keyboard.press("Escape")
    assert page.locator("#node-card").is_hidden()
    page.fill("#search", NAMES[0])
    assert set(joint_labels(page)) <= {NAMES[0], "no node"}


def test_what_cannot_be_is_refused_and_taken_back(page):
    page.click("#node-list li:nth-child(1) button")
    page.select_option("#clamp", label="apple")
    settle(page)
    page.select_option("#forbid-a", label="apple")
    for name in NAMES:
        page.select_option("#forbid-b", label=name)
        page.click("#forbid-add")
        settle(page)
    assert "constraints" in page.inner_text("#notice")
    assert page.locator("#known-list li").count() == 3  # the third pair left nothing beside an apple
    page.complaints.clear()  # the browser reports the refusal as an error of the network


def test_a_bad_file_is_explained(page, tmp_path):
    (tmp_path / "bad.json").write_text('{"x": [[1, 2]], "edge_index": [[0], [0]]}')
    page.set_input_files("#upload", tmp_path / "bad.json")
    page.wait_for_selector('#notice:has-text("2 features")')
    markup = '{"x": [[1, 2, 3]], "edge_index": [[], []], "y": ["<img src=x onerror=alert(1)>"]}'
    (tmp_path / "evil.json").write_text(markup)
    upload(page, tmp_path / "evil.json")
    assert "onerror" in page.inner_text("#notice") and page.locator("#notice img").count() == 0
    page.complaints.clear()


def test_a_narrow_dark_page_shows_one_drawing_and_does_not_scroll_sideways(chromium, served):
    context = chromium.new_context(viewport={"width": 375, "height": 740}, color_scheme="dark", has_touch=True)
    tab = context.new_page()
    tab.goto(served.url)
    tab.wait_for_selector("#node-list button")
    assert tab.locator(".panel").count() == 1
    assert tab.evaluate("document.documentElement.scrollWidth <= innerWidth")
    assert tab.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(13, 17, 23)"
    context.close()


def test_a_token_can_be_typed_in(chromium, served):
    context = chromium.new_context()
    tab = context.new_page()
    tab.goto(served.url.partition("#")[0])
    tab.fill("#token", TOKEN)
    tab.keyboard.press("Enter")
    tab.wait_for_selector("#node-list button")
    assert TOKEN not in tab.url
    context.close()


def test_killing_and_restarting_the_server_loses_nothing(page, served, trained, data_folder, tmp_path):
    """The last test: it kills the server."""
    path = tmp_path / "mine.json"
    write_graph(make_graph(301), path, NAMES)
    model, graph = NodeClassifier.load(trained), read_graph(path)
    upload(page, path)
    page.click("#node-list li:nth-child(3) button")
    page.select_option("#clamp", label="quince")
    settle(page)
    served.process.send_signal(signal.SIGKILL)
    served.process.wait()
    page.click("#node-list li:nth-child(6) button")
    page.wait_for_selector('#notice:has-text("The server does not answer")')
    with Server(trained, "--data", data_folder, port=served.port, env={"ACCORD_TOKEN": TOKEN}):
        page.wait_for_selector("#node-words p", timeout=4 * SECONDS)  # the page has sent the graph again
        page.select_option("#clamp", label="pear")
        settle(page)
        wanted = model.predict(graph, known={2: "quince", 5: "pear"})
        assert joint_labels(page) == [NAMES[state] for state in wanted.tolist()]
    page.complaints.clear()
