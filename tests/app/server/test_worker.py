"""The worker's loop, without a process: what it says when the model cannot be loaded, and when the server is gone."""

import shutil
import signal
from multiprocessing import Pipe

import pytest
from support.command_line import NAMES

from accord.app.server.limits import Limits
from accord.app.server.worker import FAILED, READY, Job, work


@pytest.fixture
def ends(monkeypatch):
    monkeypatch.setattr(signal, "signal", lambda *_: None)  # Ctrl-C must still end the tests
    ours, theirs = Pipe()
    yield ours, theirs
    ours.close()


def test_a_damaged_model_is_reported(ends, trained, tmp_path):
    shutil.copytree(trained, tmp_path / "run")
    (tmp_path / "run" / "model.safetensors").write_bytes(b"junk")
    work(ends[1], Job(tmp_path / "run", tmp_path, Limits()))
    word = ends[0].recv_bytes()
    assert word.startswith(FAILED) and b"model.safetensors" in word


def test_requests_are_answered_until_the_server_is_gone(ends, trained, tmp_path):
    private = tmp_path / "private"
    (private / "uploads").mkdir(parents=True)
    for message in (b"model", b"", b"predict", b"{"):
        ends[0].send_bytes(message)
    _, theirs = ends
    answers = []

    class Watched:
        """Ends as a killed server does: after its last answer there is nothing more to read."""

        def send_bytes(self, content):
            answers.append(content)

        def recv_bytes(self):
            if len(answers) >= 5:
                raise EOFError
            return theirs.recv_bytes()

    work(Watched(), Job(trained, private / "uploads", Limits(), private=private))
    assert answers[0] == READY
    assert answers[1] == b"200" and all(name.encode() in answers[2] for name in NAMES)
    assert answers[3] == b"400"
    assert not private.exists()
