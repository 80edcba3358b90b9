"""The answers of the server equal those of the library, and bad requests are refused with what to fix."""

import json

import numpy as np
import pytest
import torch
from starlette.testclient import TestClient
from support.command_line import NAMES, make_graph

from accord.datasets import read_graph

RING = {
    "x": [[1.0, 0.0, 0.0], [0.9, 0.1, 0.0], [0.2, 0.3, 0.4], [0.0, 0.0, 1.0]],
    "edge_index": [[0, 1, 2, 3], [1, 2, 3, 0]],
}


@pytest.fixture
def client(app):
    with TestClient(app) as made:
        yield made


def as_data(content):
    graph = make_graph(0)
    graph.x, graph.edge_index = torch.tensor(content["x"]), torch.tensor(content["edge_index"])
    graph.y = graph.node_id = None
    return graph


def refusal(response):
    """Status, code and message of a refused request."""
    return response.status_code, response.json()["error"]["code"], response.json()["error"]["message"]


def test_predictions_equal_the_librarys(client, model):
    body = {"graphs": [{"graph": RING}, {"graph": {"id": "test-2"}}], "marginals": True}
    first, second = client.post("/api/predict", json=body).json()["graphs"]
    for found, graph in ((first, as_data(RING)), (second, make_graph(202, with_labels=False))):
        assert found["labels"] == [NAMES[state] for state in model.predict(graph).tolist()]
        np.testing.assert_allclose(found["marginals"], model.predict_proba(graph), atol=1e-5)
        assert found["nodes"] == list(map(str, range(len(graph.x))))


def test_constraints_equal_the_librarys(client, model):
    rules = {"forbid": [["apple", "quince"]], "require": [], "forbid_directed": [["pear", "apple"]]}
    body = {"graphs": [{"graph": RING, "known": {"2": "pear", "0": None}}], "marginals": True, **rules}
    found = client.post("/api/predict", json=body).json()["graphs"][0]
    given = {"known": {2: "pear"}, "forbid": [("apple", "quince")], "forbid_directed": [("pear", "apple")]}
    assert found["labels"] == [NAMES[state] for state in model.predict(as_data(RING), **given).tolist()]
    np.testing.assert_allclose(found["marginals"], model.predict_proba(as_data(RING), **given), atol=1e-5)


def test_an_error_says_which_graph_it_is_about(client):
    small = {"x": [[1.0, 2.0]], "edge_index": [[], []]}
    status, _, message = refusal(client.post("/api/predict", json={"graphs": [{"graph": RING}, {"graph": small}]}))
    assert status == 422 and message.startswith("graphs[1]: the graph has 2 features")
    body = {"graphs": [{"graph": RING}, {"graph": RING, "known": {"0": 0, "1": 1}}], "forbid": [[0, 1]]}
    status, _, message = refusal(client.post("/api/predict", json=body))
    assert status == 422 and message.startswith("graphs[1]: ") and "constraints" in message


def test_parts_and_sweeps_equal_the_librarys(client, model):
    body = {"graph": {"id": "test-1"}, "known": {"3": 1}, "forbid": [[0, 2]]}
    found = client.post("/api/answers", json=body).json()
    graph, given = make_graph(201), {"known": {3: 1}, "forbid": [(0, 2)]}
    assert found["truth"] == graph.y.tolist()
    assert list(found["parts"]) == ["gnn", "edge", "spn"]
    assert found["parts"]["spn"]["labels"] == model.predict(graph, **given).tolist()
    np.testing.assert_allclose(found["parts"]["spn"]["marginals"], model.predict_proba(graph, **given), atol=1e-5)
    swept = client.post("/api/sweeps", json=body | {"max_sweeps": 50}).json()["sweeps"]
    assert swept[-1]["converged"] and not swept[0]["converged"]
    np.testing.assert_allclose(swept[-1]["marginals"], model.predict_proba(graph, **given), atol=1e-4)


def test_sweeps_with_impossible_states_are_plain_json(client, model):
    """Messages become minus infinity, which JSON does not have."""
    body = {"graph": {"id": "test-1"}, "known": {"3": 1}, "forbid": [[0, 1]], "max_sweeps": 12}
    found = client.post("/api/sweeps", json=body).json()["sweeps"]
    given = {"known": {3: 1}, "forbid": [(0, 1)]}
    wanted = model.sweeps(make_graph(201), max_sweeps=12, **given)
    for one, sweep in zip(found, wanted, strict=True):
        np.testing.assert_allclose(one["marginals"], sweep.probabilities, atol=1e-5)
    assert found[1]["residual"] is None


def test_drawing_shows_the_surroundings_of_a_node_in_a_large_graph(client):
    whole = client.post("/api/draw", json={"graph": {"id": "test-1"}}).json()
    assert whole["shown"] == list(range(7)) and len(whole["edges"][0]) == 7
    part = client.post("/api/draw", json={"graph": {"id": "test-1"}, "centre": "4", "most": 3}).json()
    assert part["shown"] == [3, 4, 5] and part["total"] == 7
    assert sorted(map(sorted, zip(*part["edges"], strict=True))) == [[0, 1], [1, 2]]


def test_uploads_are_read_by_the_readers(client, model, graph_file):
    sent = client.post("/api/graphs", files={"files": ("C:\\x\\..\\ring.JSON", graph_file.read_bytes())}).json()
    assert (sent["nodes"], sent["edges"], sent["labelled"]) == (7, 7, True)
    found = client.post("/api/predict", json={"graphs": [{"graph": {"id": sent["id"]}}]}).json()["graphs"][0]
    assert found["labels"] == [NAMES[state] for state in model.predict(read_graph(graph_file)).tolist()]
    tables = [
        ("files", ("nodes.csv", b"id,x0,x1,x2\nx,1,0,0\ny,0,1,0\n")),
        ("files", ("edges.csv", b"source,target\nx,y\n")),
    ]
    sent = client.post("/api/graphs", files=tables).json()
    found = client.post("/api/predict", json={"graphs": [{"graph": {"id": sent["id"]}, "known": {"y": "pear"}}]}).json()
    assert found["graphs"][0]["nodes"] == ["x", "y"] and found["graphs"][0]["labels"][1] == "pear"


def test_nodes_go_by_name_first_and_by_number_otherwise(client, model):
    tables = [
        ("files", ("nodes.csv", b"id,x0,x1,x2\n2,1,0,0\n0,0,1,0\na,0,0,1\n")),
        ("files", ("edges.csv", b"source,target\n2,0\n0,a\n")),
    ]
    identity = client.post("/api/graphs", files=tables).json()["id"]
    for text, node in (("2", 0), ("0", 1), ("a", 2), ("1", 1)):
        body = {"graph": {"id": identity}, "node": text}
        found = client.post("/api/explain", json=body).json()
        assert (found["node"], found["name"]) == (node, ["2", "0", "a"][node])
        body = {"graph": {"id": identity}, "known": {text: "quince"}}
        assert client.post("/api/answers", json=body).json()["parts"]["spn"]["labels"][node] == 2


def test_explanations_equal_the_librarys_and_add_up(client, model):
    body = {"graph": {"id": "test-1"}, "node": "2", "known": {"3": "pear"}}
    found = client.post("/api/explain", json=body).json()
    wanted = model.explain(make_graph(201), 2, known={3: "pear"})
    assert found["label"] == wanted.label and found["text"] == str(wanted)
    total = np.array(found["evidence"]) + sum(np.array(one["message"]) for one in found["messages"])
    assert np.ptp(total - np.array(found["log_belief"])) < 1e-5
    assert {one["node"] for one in found["messages"]} == {1, 3}
    np.testing.assert_allclose(
        found["probabilities"], model.predict_proba(make_graph(201), known={3: "pear"})[2], atol=1e-5
    )
    cut = client.post("/api/explain", json=body | {"without": "3"}).json()
    assert cut["text"] == str(wanted.without(3)) and [one["node"] for one in cut["messages"]] == [1]
    assert refusal(client.post("/api/explain", json=body | {"without": "5"}))[0] == 422


def test_labels_that_the_model_does_not_know_are_left_out_with_a_note(client):
    sent = {**RING, "y": ["apple", "pear", "melon", None]}
    found = client.post("/api/answers", json={"graph": sent}).json()
    assert found["truth"] is None and "melon" in found["warnings"][0]


REFUSED = {
    "no JSON": (b"{", 400, "request", "Invalid JSON"),
    "deep JSON": (b"[" * 100_000, 400, "request", "Invalid JSON"),
    "not an object": (b"[]", 422, "request", "The request"),
    "no graph": (b"{}", 422, "request", "graph"),
    "unknown key": (b'{"graph": {"id": "test-0"}, "knwon": {}}', 422, "request", "knwon"),
    "path as id": (b'{"graph": {"id": "../../etc/passwd"}}', 422, "request", "graph.id"),
    "unknown id": (b'{"graph": {"id": "abcdef"}}', 404, "unknown_graph", "Upload it again"),
    "number of no graph": (b'{"graph": {"id": "test-99999999999999"}}', 404, "unknown_graph", "Upload it again"),
    "id and arrays": (b'{"graph": {"id": "test-0", "x": [[1]]}}', 422, "request", "one of the two"),
    "no edges": (b'{"graph": {"x": [[1, 2, 3]]}}', 422, "graph", "edge_index"),
    "text as features": (b'{"graph": {"x": "rm -rf", "edge_index": [[], []]}}', 422, "graph", "x holds 'rm -rf'"),
    "nan": (b'{"graph": {"x": [[NaN, 1, 2]], "edge_index": [[], []]}}', 422, "graph", "graph"),
    "edge to nowhere": (b'{"graph": {"x": [[1, 2, 3]], "edge_index": [[0], [7]]}}', 422, "graph", "7"),
    "negative node": (b'{"graph": {"x": [[1, 2, 3]], "edge_index": [[0], [-1]]}}', 422, "graph", "-1"),
    "huge number": (b'{"graph": {"x": [[1' + b"0" * 5000 + b"]]}}", 400, "request", "out of range"),
    "too few features": (b'{"graph": {"x": [[1, 2]], "edge_index": [[], []]}}', 422, "graph", "2 features"),
    "unknown label": (b'{"graph": {"id": "test-0"}, "known": {"0": "melon"}}', 422, "input", "melon"),
    "unknown node": (b'{"graph": {"id": "test-0"}, "known": {"x": "pear"}}', 422, "node", "there is no node 'x'"),
    "no such task": (b'{"graph": {"id": "test-0"}, "task": 3}', 422, "request", "tasks 0 to 0"),
    "impossible": (
        b'{"graph": {"id": "test-0"}, "known": {"0": 0, "1": 1}, "forbid": [[0, 1]]}', 422, "input", "constraints"
    ),
    "half a surrogate pair": (b'{"graph": {"id": "test-0"}, "known": {"\\ud800": 0}}', 400, "request", "escape"),
}  # fmt: skip


@pytest.mark.parametrize("case", REFUSED)
def test_bad_requests_are_refused_with_what_to_fix(client, case):
    body, status, code, words = REFUSED[case]
    response = client.post("/api/answers", content=body, headers={"content-type": "application/json"})
    found = refusal(response)
    assert found[:2] == (status, code) and words in found[2], found
    assert "/tmp" not in found[2] and ".json:" not in found[2]  # no path of ours


def test_limits_of_nodes_edges_and_graphs(client):
    many = {"x": [[0.0, 0.0, 0.0]] * 201, "edge_index": [[], []]}
    assert refusal(client.post("/api/answers", json={"graph": many}))[:2] == (413, "too_large")
    dense = {"x": [[0.0, 0.0, 0.0]] * 2, "edge_index": [[0] * 401, [1] * 401]}
    status, _, message = refusal(client.post("/api/answers", json={"graph": dense}))
    assert status == 413 and "--max-edges" in message
    body = {"graphs": [{"graph": {"id": "test-0"}}] * 4}
    assert refusal(client.post("/api/predict", json=body))[0] == 413
    assert refusal(client.post("/api/answers", content=b"x" * 2**21, headers={"content-type": "application/json"}))[
        :2
    ] == (413, "too_large")
    assert client.post("/api/answers", content=json.dumps({"graph": RING}).encode()).status_code == 415


def test_a_bug_is_a_500_without_its_details(client, model, monkeypatch, caplog):
    monkeypatch.setattr(type(model), "answers", lambda *_, **__: 1 / 0)
    response = client.post("/api/answers", json={"graph": RING})
    assert refusal(response)[:2] == (500, "failure") and "division" not in response.text
    assert "ZeroDivisionError" in caplog.text
