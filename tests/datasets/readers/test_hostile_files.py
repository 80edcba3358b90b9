"""Damaged, foreign and absurd files are refused with a message; none crashes, hangs or is read wrongly."""

import io
import json
import os
import struct
import zipfile

import numpy as np
import pytest
from datasets.readers.graph_files import EDGES, X, write_json, write_npz, write_tables

from accord.datasets import read_graph, read_graphs, write_graph
from accord.errors import AccordError, GraphError, TooLargeError

ARRAYS = {"x": np.array(X), "edge_index": np.array(EDGES)}


def npy(array):
    buffer = io.BytesIO()
    np.save(buffer, array)
    return buffer.getvalue()


def write_members(path, compression=zipfile.ZIP_STORED, **members):
    """An .npz file whose members are arrays or bytes."""
    with zipfile.ZipFile(path, "w", compression) as archive:
        for name, content in (ARRAYS | members).items():
            archive.writestr(f"{name}.npy", content if isinstance(content, bytes) else npy(content))
    return path


def announce(shape, descr="<f8", data=b""):
    """An .npy file with any header."""
    header = f"{{'descr': '{descr}', 'fortran_order': False, 'shape': {shape}, }}".encode().ljust(117) + b"\n"
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header + data


def damage(path):
    """Overwrite bytes in the middle of the first member's data."""
    content = bytearray(path.read_bytes())
    content[60:90] = b"\xff" * 30
    path.write_bytes(content)
    return path


def set_headers(path, place, value):
    """Set one byte of every member's header, and of its entry in the directory, which has two bytes more in front."""
    content = path.read_bytes()
    for signature, start in ((b"PK\x03\x04", place - 4), (b"PK\x01\x02", place - 2)):
        first, *others = content.split(signature)
        content = signature.join([first, *(part[:start] + bytes([value]) + part[start + 1 :] for part in others)])
    path.write_bytes(content)


def hide_members(path):
    """Make the directory's first entry announce a comment so long that it covers all others."""
    content = path.read_bytes()
    first = content.index(b"PK\x01\x02")
    second, end = content.index(b"PK\x01\x02", first + 1), content.index(b"PK\x05\x06")
    path.write_bytes(content[: first + 32] + struct.pack("<H", end - second) + content[first + 34 :])
    with zipfile.ZipFile(path) as archive:
        assert len(archive.namelist()) == 1  # Python's own reader sees nothing wrong


BAD_ARCHIVES = {
    "deflate": lambda p: damage(write_members(p, zipfile.ZIP_DEFLATED, x=np.arange(9999.0)[:, None])),
    "bzip2": lambda p: damage(write_members(p, zipfile.ZIP_BZIP2, x=np.arange(9999.0)[:, None])),
    "lzma": lambda p: damage(write_members(p, zipfile.ZIP_LZMA, x=np.arange(9999.0)[:, None])),
    "encrypted": lambda p: set_headers(write_members(p), 6, 1),
    "unknown compression": lambda p: set_headers(write_members(p), 8, 77),
    "text": lambda p: write_members(p, x=b"hello"),
    "empty": lambda p: write_members(p, y=b""),
    "lying shape": lambda p: write_members(p, x=announce((3, 10**9), data=bytes(48))),
    "shape too small": lambda p: write_members(p, x=announce((1, 2), data=bytes(48))),
    "negative shape": lambda p: write_members(p, x=announce((-3, -2), data=bytes(48))),
    "text without length": lambda p: write_members(p, y=announce((10**15,), "<U0")),
    "version 9": lambda p: write_members(p, x=b"\x93NUMPY\x09\x00" + bytes(99)),
    "broken header": lambda p: write_members(p, x=announce("((((", data=bytes(48))),
    "odd type": lambda p: write_members(p, x=announce((3, 2), "<q9", bytes(48))),
    "hidden members": lambda p: hide_members(write_members(p, y=np.array([0, 1, 1]))),
    "python objects": lambda p: write_members(p, y=np.array([{}, 1, 2], dtype=object)),
}


@pytest.mark.parametrize("case", BAD_ARCHIVES)
def test_damaged_archives_are_refused(tmp_path, case):
    path = tmp_path / "g.npz"
    BAD_ARCHIVES[case](path)
    with pytest.raises(GraphError, match=r"g\.npz: cannot be read as an \.npz file of plain arrays \(.+\)\. Write it"):
        read_graph(path)


def test_archives_may_use_every_compression(tmp_path):
    for method in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED, zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA):
        read = read_graph(write_members(tmp_path / "g.npz", method, x=np.asfortranarray(X), y=np.array([0, 1, -1])))
        assert read.x.tolist() == X and read.y.tolist() == [0, 1, -1]


def test_an_array_that_occurs_twice_is_refused(tmp_path):
    with zipfile.ZipFile(write_members(tmp_path / "g.npz"), "a") as archive:
        archive.writestr("x", npy(np.zeros((3, 2))))
    with pytest.raises(GraphError, match="holds 'x' twice"):
        read_graph(tmp_path / "g.npz")


def test_more_than_memory_holds_is_refused_before_it_is_read(tmp_path, monkeypatch):
    path = write_members(tmp_path / "g.npz", zipfile.ZIP_DEFLATED, x=np.zeros((10**5, 10)))
    assert path.stat().st_size < 20_000
    monkeypatch.setattr("accord.datasets._sources.available_memory", lambda device: 10_000_000)
    monkeypatch.setattr(np, "empty", None)  # an allocation would fail
    with pytest.raises(TooLargeError, match=r"g\.npz: reading it needs 0\.0 GB of memory, but 0\.0 GB are available"):
        read_graph(path)


@pytest.mark.parametrize(
    "arrays",
    [
        {"x": np.zeros((10**6, 2), np.uint8)},
        {"x_indptr": np.array([0, 0]), "x_indices": np.zeros(0, int), "x_shape": np.array([1, 10**6])},
    ],
    ids=["small integers", "sparse"],
)
def test_memory_for_converted_numbers_is_counted(tmp_path, monkeypatch, arrays):
    np.savez_compressed(tmp_path / "g.npz", edge_index=np.array(EDGES)[:, :0], **arrays)
    monkeypatch.setattr("accord.datasets._sources.available_memory", lambda device: 12_000_000)
    with pytest.raises(TooLargeError, match=r"g\.npz: x, of shape .* needs 0\.0 GB"):
        read_graph(tmp_path / "g.npz")


@pytest.mark.parametrize("name", ["g.npz", "g.json", "g"])
@pytest.mark.parametrize("place", ["check_edge_index", "check_features"])
def test_memory_that_runs_out_while_a_file_is_read_is_named(tmp_path, monkeypatch, name, place):
    write_graph(read_graph(write_members(tmp_path / "first.npz")), tmp_path / name)

    def fail(*_):
        raise MemoryError("Unable to allocate 16.0 GiB")

    monkeypatch.setattr(f"accord.datasets.readers._raw.{place}", fail)
    with pytest.raises(
        TooLargeError, match=f"{name}(/nodes.csv)?: reading it needs more memory than is available .Unable"
    ):
        read_graph(tmp_path / name)


def test_small_files_are_read_without_asking_for_the_available_memory(tmp_path, monkeypatch):
    monkeypatch.setattr("accord.datasets._sources.available_memory", None)  # a call would fail
    assert read_graph(write_members(tmp_path / "g.npz", x=np.ones((3, 2)))).x.shape == (3, 2)


def test_a_graph_of_a_billion_nodes_without_features_is_refused(tmp_path):
    with pytest.raises(TooLargeError, match=r"x, of shape \[1000000000000, 0\], needs 8,000.0 GB"):
        read_graph(write_members(tmp_path / "g.npz", x=announce((10**12, 0))))


@pytest.mark.parametrize("name", ["g.json", "g/nodes.csv"])
def test_a_text_file_beyond_memory_is_refused(tmp_path, name):
    write_tables(tmp_path / "g")
    with (tmp_path / name).open("ab") as file:
        file.truncate(10**13)  # a hole: takes no room on the disk
    with pytest.raises(TooLargeError, match="reading it needs 20,000.0 GB"):
        read_graph(tmp_path / "g" if name == "g/nodes.csv" else tmp_path / name)


@pytest.mark.parametrize("name", ["g.npz", "g.json", "g/nodes.csv", "g/edges.csv"])
def test_pipes_are_refused(tmp_path, name):
    write_tables(tmp_path / "g")
    (tmp_path / name).unlink(missing_ok=True)
    os.mkfifo(tmp_path / name)
    with pytest.raises(GraphError, match=f"{name}: is not a regular file"):
        read_graph(tmp_path / "g" if "/" in name else tmp_path / name)
    with pytest.raises(GraphError, match=f"{name}: is not a regular file"):
        read_graphs(tmp_path if "/" in name else tmp_path / name)


def test_devices_are_refused(tmp_path):
    (tmp_path / "g.json").symlink_to("/dev/zero")
    with pytest.raises(GraphError, match="is not a regular file"):
        read_graph(tmp_path / "g.json")


DEEP = "[" * 100_000 + "]" * 100_000
BAD_JSON = {
    "deep": (f'{{"x": {DEEP}, "edge_index": []}}', "nested too deeply"),
    "deep labels": (
        {"x": X, "edge_index": EDGES, "y": [json.loads("[" * 80 + "]" * 80), 1, 2]},
        "label a list is neither",
    ),
    "deep features": ({"x": json.loads("[" * 80 + "1" + "]" * 80), "edge_index": EDGES}, "x "),
    "5,000 digits": (f'{{"x": [[{"9" * 5000}]], "edge_index": []}}', "number that cannot be read"),
    "500 digits": (f'{{"x": [[{"9" * 500}]], "edge_index": []}}', "x "),
    "500 digits in a label": (f'{{"x": [[1]], "edge_index": [], "y": [{"9" * 500}]}}', "y has type object"),
    "500 digits beside a float": (f'{{"x": [[0.5], [{"9" * 500}]], "edge_index": []}}', "x "),
    "key twice": ('{"x": [[1]], "x": [[2]], "edge_index": []}', "holds 'x' twice"),
    "1e39": ({"x": [[1e39]], "edge_index": []}, "x holds 1e\\+39 in row 0, column 0, but .*float32"),
    "infinity": ('{"x": [[Infinity]], "edge_index": []}', "x holds inf"),
    "null feature": ({"x": [[1, None]], "edge_index": []}, "x holds null"),
    "text beside numbers": ({"x": [[1, "2"]], "edge_index": []}, "x holds '2'"),
    "object": ({"x": [[{"a": 1}]], "edge_index": []}, "x holds an object"),
    "NUL in a label": ({"x": [[1], [2]], "edge_index": [], "y": ["cat", "cat\0"]}, "node 1: .* NUL"),
    "long label": ({"x": [[1], [2]], "edge_index": [], "y": ["cat", "c" * 10**6]}, "has 1000000 characters"),
    "NUL in a feature name": ({"x": [[1, 2]], "edge_index": [], "feature_names": ["a", "a\0"]}, "NUL"),
    "no feature name": ({"x": [[1, 2]], "edge_index": [], "feature_names": ["a", ""]}, "'' is empty"),
    "a label": ({"x": [[1]], "edge_index": [], "y": "a"}, "one entry for each"),
    "labels of different lengths": ({"x": [[1], [2]], "edge_index": [], "y": [[1, 2], [1]]}, "label a list"),
}


@pytest.mark.parametrize("case", BAD_JSON)
def test_absurd_json_is_refused(tmp_path, case):
    content, message = BAD_JSON[case]
    with pytest.raises(AccordError, match=f"g.json.*{message}"):
        read_graph(write_json(tmp_path / "g.json", content))


BAD_NUMBERS = {
    "features beyond float32": ({"x": np.array([[1, 2], [3, 4], [5, -1e300]])}, "x holds -1e.300 in row 2, column 1"),
    "attributes beyond float32": ({"edge_attr": np.array([1.0, 1e39])}, r"edge_attr holds 1e.39 in row 1, column 0"),
    "NUL in a label": ({"y": np.array(["c\0t", "dog", ""])}, "the label .* contains a NUL"),
    "uint64 labels": ({"y": np.array([0, 1, 2**64 - 1], np.uint64)}, r"y\[2\] is 18446744073709551615, too large"),
    "uint64 edges": ({"edge_index": np.array([[0], [2**64 - 1]], np.uint64)}, r"edge_index\[1, 0\] is 1844"),
    "float ids": ({"node_id": np.array([0, 2.0**53 + 2, 1])}, r"node_id\[1\] is 9007199254740994.0, too large"),
    "float32 ids": ({"node_id": np.array([0, 2**24 + 2, 1], np.float32)}, r"node_id\[1\] is 16777218.0, too large"),
    "infinite ids": ({"node_id": np.array([0, np.inf, 1])}, r"node_id\[1\] is inf, too large"),
}


@pytest.mark.parametrize("case", BAD_NUMBERS)
def test_numbers_that_would_change_are_refused(tmp_path, case):
    arrays, message = BAD_NUMBERS[case]
    with pytest.raises(GraphError, match=f"g.npz: {message}"):
        read_graph(write_npz(tmp_path / "g.npz", **arrays))


def test_negative_zero_is_node_0(tmp_path):
    assert read_graph(write_npz(tmp_path / "g.npz", edge_index=np.array([[-0.0], [1]]))).edge_index.tolist() == [
        [0],
        [1],
    ]
