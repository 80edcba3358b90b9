"""`accord serve` as a process: start, limits, kills of worker and server, and what is left behind."""

import os
import signal
import socket
import sys
import threading
import time
from pathlib import Path

import pytest
from support.command_line import refused
from support.serving import Server

from accord.app.commands.serve import check_token, is_loopback, read_token
from accord.errors import OptionError

ASKED = {"graphs": [{"graph": {"id": "test-0"}}]}


@pytest.fixture(scope="module")
def server(trained, data_folder, tmp_path_factory):
    options = ("--data", data_folder, "--max-megabytes", "2", "--max-seconds", "30", "--max-waiting", "4")
    place = tmp_path_factory.mktemp("private")  # tests beside this one start servers too
    with Server(trained, *options, env={"TMPDIR": str(place)}) as running:
        running.place = place
        yield running


def workers_of(pid):
    """Processes that a process started, by what they run."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdecimal():
            try:
                parent = int((entry / "stat").read_text().rsplit(")", 1)[1].split()[1])
                if parent == pid and b"spawn_main" in (entry / "cmdline").read_bytes():
                    found.append(int(entry.name))
            except (OSError, IndexError):
                continue
    return found


def test_it_answers_many_clients_at_once_and_turns_away_what_does_not_fit(server):
    statuses = []

    def ask():
        response = server.client.post("/api/predict", json=ASKED)
        statuses.append(response.status_code)
        assert response.status_code == 200 or response.headers["retry-after"] == "1"

    threads = [threading.Thread(target=ask) for _ in range(24)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(statuses) == 24 and set(statuses) <= {200, 503} and 200 in statuses
    assert server.client.get("/api/health").json()["waiting"] == 0


def test_answers_are_sent_without_delay(server):
    """Without TCP_NODELAY the second part of an answer waits 40 ms for the first to be acknowledged."""
    seconds = []
    for _ in range(20):
        began = time.perf_counter()
        server.client.get("/api/health")
        seconds.append(time.perf_counter() - began)
    assert min(seconds) < 0.03


def test_a_large_body_is_refused_while_it_arrives(server):
    with socket.create_connection(("127.0.0.1", server.port), timeout=20) as raw:
        raw.sendall(
            b"POST /api/predict HTTP/1.1\r\nhost: 127.0.0.1\r\ncontent-type: application/json\r\n"
            b"transfer-encoding: chunked\r\n\r\n"
        )
        answer = b""
        try:
            for _ in range(64):
                raw.sendall(b"10000\r\n" + b" " * 2**16 + b"\r\n")
        except OSError:
            pass
        try:
            while piece := raw.recv(2**16):
                answer += piece
        except OSError:
            pass
    assert answer.startswith(b"HTTP/1.1 413"), answer[:100]
    assert server.client.post("/api/predict", json=ASKED).status_code == 200


def test_a_killed_worker_is_replaced(server):
    (worker,) = workers_of(server.process.pid)
    before = server.client.post("/api/predict", json=ASKED).json()
    os.kill(worker, signal.SIGKILL)
    for _ in range(60):
        response = server.client.post("/api/predict", json=ASKED)
        if response.status_code == 200:
            break
        assert response.status_code == 503
        time.sleep(0.5)
    assert response.json() == before
    assert workers_of(server.process.pid) != [worker]


def test_a_port_in_use_is_refused(trained, server):
    assert f"cannot listen on 127.0.0.1, port {server.port}" in refused("serve", trained, "--port", server.port)


def test_serving_others_needs_a_good_token(trained, tmp_path):
    message = refused("serve", trained, "--host", "0.0.0.0", "--port", 0)
    assert "needs a token" in message and "--token-file" in message
    assert "at least 16" in refused("serve", trained, "--host", "0.0.0.0", "--token", "short")
    (tmp_path / "token").write_text("a-long-enough-token\n")
    assert read_token(None, tmp_path / "token") == "a-long-enough-token"
    assert "not both" in refused("serve", trained, "--token", "x" * 20, "--token-file", tmp_path / "token")
    assert "no such file" in refused("serve", trained, "--token-file", tmp_path / "absent")
    with pytest.raises(OptionError, match="16 plain characters"):
        check_token("sixteen characters with spaces", True, "localhost")


def test_what_is_loopback():
    assert is_loopback("localhost") and is_loopback("127.0.0.1") and is_loopback("::1") and is_loopback("127.9.9.9")
    assert not any(map(is_loopback, ("0.0.0.0", "::", "192.168.0.1", "example.org", "localhost.evil.example")))


def test_bad_arguments(tmp_path, trained):
    assert "no such folder" in refused("serve", tmp_path / "absent")
    assert "--max-nodes: is 0" in refused("serve", trained, "--max-nodes", 0)


def test_missing_packages_are_named(trained, monkeypatch):
    monkeypatch.setitem(sys.modules, "uvicorn", None)
    assert "pip install 'accord[serve]'" in refused("serve", trained)


def test_a_killed_server_leaves_nothing_behind(server):
    """The last test: it ends the server."""
    (worker,) = workers_of(server.process.pid)
    (folder,) = server.place.glob("accord-serve-*")
    server.process.send_signal(signal.SIGKILL)
    server.process.wait()
    for _ in range(100):
        if not folder.exists() and not Path(f"/proc/{worker}").exists():
            break
        time.sleep(0.1)
    assert not folder.exists() and not Path(f"/proc/{worker}").exists()
