"""Hosts, origins, tokens and sizes, checked before anything is read."""

import pytest
from starlette.testclient import TestClient
from support.serving import here_app

from accord.app.server.limits import Limits

TOKEN = "0123456789abcdef"


@pytest.fixture
def client(app):
    with TestClient(app) as made:
        yield made


@pytest.mark.parametrize("host", ["evil.example", "testserver.evil.example", "127.0.0.1.evil.example:80", ""])
def test_other_names_of_the_server_are_refused(client, host):
    response = client.get("/api/model", headers={"host": host})
    assert (response.status_code, response.json()["error"]["code"]) == (421, "wrong_host")


def test_a_name_with_a_port_is_accepted(client):
    assert client.get("/api/health", headers={"host": "testserver:8642"}).status_code == 200


@pytest.mark.parametrize(
    "origin", ["http://evil.example", "null", "http://testserver.evil.example", "http://testserver:1"]
)
def test_pages_of_other_sites_are_refused(client, origin):
    sent = client.post("/api/graphs", files={"files": ("a.json", b"{}")}, headers={"origin": origin})
    assert (sent.status_code, sent.json()["error"]["code"]) == (403, "origin")
    assert "access-control-allow-origin" not in sent.headers


def test_the_servers_own_page_is_accepted(client):
    assert client.get("/api/health", headers={"origin": "http://testserver"}).status_code == 200


def test_every_answer_has_the_headers_that_protect_the_page(client):
    for path in ("/", "/page/main.js", "/api/health", "/nowhere"):
        headers = client.get(path).headers
        assert headers["content-security-policy"].startswith("default-src 'none'; script-src 'self'")
        assert headers["x-content-type-options"] == "nosniff" and headers["x-frame-options"] == "DENY"
    assert client.get("/api/health").headers["cache-control"] == "no-store"
    assert client.get("/page/main.js").headers["content-type"].startswith("text/javascript")


@pytest.mark.parametrize("path", ["/page/../app.py", "/page/%2e%2e/app.py", "/page//etc/passwd", "/page/vendor", "/x"])
def test_only_files_of_the_page_are_given_out(client, path):
    response = client.get(path)
    assert response.status_code == 404 and response.json()["error"]["message"].startswith("There is nothing at")


def test_a_body_sent_in_chunks_is_counted(client):
    chunks = (b"x" * 2**18 for _ in range(8))
    response = client.post("/api/answers", content=chunks, headers={"content-type": "application/json"})
    assert (response.status_code, response.json()["error"]["code"]) == (413, "too_large")
    form = (
        b"--b\r\ncontent-disposition: form-data; name=files; filename=a.json\r\n\r\n" + b"x" * 2**18 for _ in range(8)
    )
    sent = client.post("/api/graphs", content=form, headers={"content-type": "multipart/form-data; boundary=b"})
    assert sent.status_code == 413


def test_a_token_is_needed_for_everything_but_the_page_and_health(model, tmp_path):
    with TestClient(here_app(model, tmp_path, Limits(), token=TOKEN)) as client:
        for path in ("/api/model", "/api/graphs", "/openapi.json"):
            assert client.get(path).status_code == 401
            for wrong in (TOKEN, f"Bearer {TOKEN}x", "Bearer ", f"bearer {TOKEN}", "Bearer é".encode()):
                assert client.get(path, headers={"authorization": wrong}).status_code == 401
            assert client.get(path, headers={"authorization": f"Bearer {TOKEN}"}).status_code == 200
        assert client.get("/").status_code == client.get("/api/health").status_code == 200
        assert client.get("/api/model").headers["www-authenticate"] == "Bearer"
