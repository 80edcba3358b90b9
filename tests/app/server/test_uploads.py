"""Uploads: names of our own, formats, archives that grow, and the number that is kept."""

import io
import zipfile

import numpy as np
import pytest
from starlette.testclient import TestClient

from accord.app.server.limits import Limits, Refused
from accord.app.server.uploads import MOST_UPLOADS, Uploads, graph_path


@pytest.fixture
def uploads(tmp_path):
    return Uploads(tmp_path / "private", Limits(megabytes=1))


@pytest.fixture
def client(app):
    with TestClient(app) as made:
        yield made


def names(folder):
    return sorted(path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file())


def test_no_name_of_a_client_reaches_the_disk(uploads):
    for name in ("../../etc/cron.d/x.json", "..\\..\\x.json", "/etc/passwd.json", "a\0b.json", "x" * 5000 + ".json"):
        identity = uploads.add({name: b"{}"})
        assert names(uploads.folder) == [f"{identity}/graph.json"]
        assert graph_path(uploads.folder, identity) == uploads.folder / identity / "graph.json"


@pytest.mark.parametrize(
    "sent",
    [["run.py"], ["graph"], ["a.pkl"], ["a.pt"], ["nodes.csv"], ["nodes.csv", "x.csv"], ["a.json", "b.json"]],
)
def test_other_files_are_refused(uploads, sent):
    with pytest.raises(Refused, match=r"Send one \.json or \.npz file") as caught:
        uploads.add({name: b"import os" for name in sent})
    assert caught.value.status == 422
    assert not uploads.folder.exists()


def test_the_same_files_have_the_same_id(uploads):
    assert uploads.add({"a.json": b"{}"}) == uploads.add({"b.JSON": b"{}"}) != uploads.add({"a.npz": b"{}"})


def test_an_archive_that_grows_too_much_is_refused(uploads):
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("x.npy", b"\0" * 2**24)
    assert len(packed.getvalue()) < 2**15
    with pytest.raises(Refused, match="takes 16 MB when read; 8 MB are allowed"):
        uploads.add({"a.npz": packed.getvalue()})
    assert names(uploads.folder) == []


def test_old_uploads_are_removed(uploads):
    found = [uploads.add({"a.json": str(number).encode()}) for number in range(MOST_UPLOADS + 3)]
    assert len(names(uploads.folder)) == MOST_UPLOADS
    assert graph_path(uploads.folder, found[0]) is None and graph_path(uploads.folder, found[-1]) is not None


def test_large_uploads_make_room_for_each_other(uploads):
    for number in range(6):
        uploads.add({"a.json": str(number).encode() * 2**20})
    assert len(names(uploads.folder)) == 4


def pickled_array():
    packed = io.BytesIO()
    np.savez(packed, x=np.array([{"a": 1}], dtype=object), edge_index=np.zeros((2, 0), int))
    return packed.getvalue()


HOSTILE = {
    "pickle in npz": ("a.npz", pickled_array(), "never unpickled"),
    "not a zip": ("a.npz", b"PK\3\4" + b"\xff" * 200, "cannot be read as an .npz file"),
    "empty": ("a.npz", b"", "cannot be read as an .npz file"),
    "empty json": ("a.json", b"", "not valid json"),
    "binary json": ("a.json", b"\xff\xfe\0\0", "not text in UTF-8"),
    "deep json": ("a.json", b'{"x": ' + b"[" * 200_000, "nested too deeply"),
    "twice": ("a.json", b'{"x": [[1,2,3]], "x": [[1,2,3]]}', "twice"),
    "script": ("a.json", b"__import__('os').system('true')", "not valid json"),
    "markup": ("a.json", b'{"x": [[1,2,3]], "edge_index": [[],[]], "y": ["<script>alert(1)</script>", 1]}', "labels"),
}  # fmt: skip


@pytest.mark.parametrize("case", HOSTILE)
def test_hostile_files_are_refused_without_our_paths(client, case, tmp_path):
    name, content, words = HOSTILE[case]
    response = client.post("/api/graphs", files={"files": (name, content)})
    message = response.json()["error"]["message"]
    assert response.status_code == 422 and words in message, message
    assert str(tmp_path) not in message and "/tmp" not in message


def test_forms_that_are_none_are_refused(client):
    headers = {"content-type": "multipart/form-data; boundary=b"}
    assert client.post("/api/graphs", content=b"junk", headers=headers).status_code in (400, 422)
    assert client.post("/api/graphs", content=b"", headers={"content-type": "multipart/form-data"}).status_code == 400
    assert client.post("/api/graphs", content=b"{}", headers={"content-type": "text/plain"}).status_code == 415
    many = [("files", (f"{number}.json", b"{}")) for number in range(9)]
    assert client.post("/api/graphs", files=many).status_code == 400
    assert client.post("/api/graphs", data={"files": "text"}, files={"x": ("a.json", b"{}")}).status_code == 422
