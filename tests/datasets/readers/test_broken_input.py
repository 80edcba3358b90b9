"""One table of broken input files: each is refused by a message that says where, what, and how to correct it."""

import gzip
import io
import os
import pickle
import re
import tempfile

import numpy as np
import pytest
import torch
from datasets.readers.graph_files import EDGES, X, write_json, write_npz, write_tables
from torch_geometric.data import Data, HeteroData

from accord.datasets import check_folder, read_folder, read_graphs
from accord.errors import AccordError

NODES, ENDS = "id,label,a\nu,cat,1\nv,dog,2\n", "source,target\nu,v\n"
GRAPHML = """<?xml version="1.0"?>{}<graphml xmlns="http://graphml.graphdrawing.org/xmlns">
<key id="a" for="node" attr.name="a" attr.type="double"/><graph edgedefault="undirected">
<node id="u"><data key="a">{}</data></node><node id="v"><data key="a">2</data></node>
<edge source="u" target="{}"/></graph></graphml>"""


def tables(nodes=NODES, edges=ENDS, mapping=None):
    def write(folder):
        write_tables(folder / "g", nodes, edges)
        if mapping is not None:
            (folder / "g" / "accord.toml").write_text(mapping)
        return folder / "g"

    return write


def text(name, content):
    def write(folder):
        path = folder / name
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return path

    return write


def saved(content):
    def write(folder):
        torch.save(content, folder / "g.pt")
        return folder / "g.pt"

    return write


def two_types():
    graph = HeteroData()
    graph["paper"].x, graph["author"].x = torch.ones(2, 1), torch.ones(3, 1)
    graph["author", "writes", "paper"].edge_index = torch.tensor([[0], [1]])
    return graph


def packed(content):
    buffer = io.BytesIO()
    with gzip.GzipFile(fileobj=buffer, mode="wb") as file:
        file.write(content)
    return buffer.getvalue()


def in_folder(name, content):
    def write(folder):
        write_tables(folder / "g", NODES, None if name.startswith("edges") else ENDS)
        if not name.startswith("edges"):
            (folder / "g" / "nodes.csv").unlink()
        (folder / "g" / name).write_bytes(content)
        return folder / "g"

    return write


def pipe(folder):
    os.mkfifo(folder / "g.npz")
    return folder / "g.npz"


WITNESS = os.path.join(tempfile.gettempdir(), f"accord-broken-input-{os.getpid()}")


class Runs:
    """A pickle that would run a command."""

    def __reduce__(self):
        return os.system, (f"touch {WITNESS}",)


LISTS = "[nodes]\nlabel = 'label'\n[features]\nfile = 'words.json'\n"


def lists(content):
    def write(folder):
        path = tables(mapping=LISTS)(folder)
        (path / "words.json").write_text(content)
        return path

    return write


# What is written, and patterns in the message: where, what, how to correct it.
BROKEN = {
    # tables
    "no id column": (tables("key_of_node,a\nu,1\n"), ["nodes.csv, line 1", "no column id", "Add or rename"]),
    "semicolons": (tables("id;a\nu;1\n"), ["nodes.csv, line 1", "separated by ';'", "use commas"]),
    "id twice": (tables("id,a\nu,1\nu,2\n"), ["nodes.csv, line 3", "'u' is already used in line 2", "id of its own"]),
    "empty id": (tables("id,a\nu,1\n,2\n"), ["nodes.csv, line 3", "id is empty", "id of its own"]),
    "row too short": (tables("id,a,b\nu,1\n"), ["nodes.csv, line 2", "2 cells.*3 columns", "Complete the line"]),
    "text among numbers": (
        tables("id,a\nu,1\nv,2\nw,many\n", "source,target\n"),
        ["nodes.csv, line 4", "column 'a' holds 'many'", "leave it empty.*`categories`.*`missing`"],
    ),
    "number too large": (tables("id,a\nu,1\nv,1e39\n"), ["nodes.csv, line 3", "too large for float32", "Correct it"]),
    "infinity": (tables("id,a\nu,1\nv,inf\n"), ["nodes.csv, line 3", "'inf'.*not a finite", "Correct it"]),
    "unknown end": (tables(edges="source,target\nu,z\n"), ["edges.csv, line 2", "target 'z' is not an id", "Add the"]),
    "no features": (tables("id,label\nu,cat\nv,dog\n"), ["nodes.csv", "no feature columns", "Add at least one"]),
    "only free text": (
        tables("id,note\n" + "".join(f"n{i},t{i}\n" for i in range(30)), "source,target\n"),
        ["nodes.csv", "no column can be used", "`categories` in the mapping"],
    ),
    "column twice": (tables("id,a,a\nu,1,2\n"), ["nodes.csv, line 1", "'a' occurs twice", "Rename"]),
    "column without name": (tables(",id,a\n0,u,1\n"), ["nodes.csv, line 1", "column 1 has no name", "Name it"]),
    "open quote": (tables('id,a\nu,1\n"v,2\n'), ["nodes.csv, line 3", "cannot be read as csv", "Close every quote"]),
    "NUL": (tables("id,a\nu\0,1\n"), ["nodes.csv, line 2", "NUL", "Remove it"]),
    "latin-1": (in_folder("nodes.csv", b"id,a\n\xff,1\n"), ["nodes.csv", "not text in UTF-8", "Save it again"]),
    "empty table": (tables(""), ["nodes.csv", "is empty", "first line must name"]),
    "no table of edges": (tables(edges=None), ["has no edges.csv", "write the line `source,target`"]),
    "unknown split": (
        tables("id,part,a\nu,train,1\nv,later,2\n", mapping="[nodes]\nsplit = 'part'\n"),
        ["nodes.csv, line 3", "'later'", "train, val or test is needed"],
    ),
    "mask of 2": (tables("id,train_mask,a\nu,1,1\nv,2,2\n"), ["nodes.csv, line 3", "train_mask is 2", "0 or 1"]),
    "edge between graphs": (
        tables("id,graph,a\nu,one,1\nv,two,2\n"),
        ["edges.csv, line 2", "joins graph 'one' and graph 'two'", "Remove the edge"],
    ),
    "two tables of nodes": (
        lambda folder: in_folder("nodes.csv.gz", packed(NODES.encode()))(folder) and tables()(folder),
        ["nodes.csv and nodes.csv.gz", "both could be", "Remove one"],
    ),
    "damaged gzip": (in_folder("nodes.csv.gz", packed(NODES.encode())[:-12]), ["nodes.csv.gz", "unpacked", "again"]),
    "damaged Parquet": (in_folder("nodes.parquet", b"PAR1 no table PAR1"), ["nodes.parquet", "Parquet", "Write it"]),
    # mapping files
    "mapping without TOML": (tables(mapping="[nodes\n"), ["accord.toml", "not valid TOML", "Correct it"]),
    "mapping with another key": (
        tables(mapping="[nodes]\nlables = 'a'\n"),
        ["accord.toml", "no key 'lables'", "label"],
    ),
    "mapping of another column": (
        tables(mapping="[nodes]\nfeatures = ['b']\n"),
        ["nodes.csv", "no column b, which the mapping names", "It has id"],
    ),
    "mapping of another folder": (
        tables(mapping="[nodes]\nfile = '../nodes.csv'\n"),
        ["accord.toml", r"'\.\./nodes\.csv'", "own folder"],
    ),
    "list of an unknown node": (lists('{"w": [1]}'), ["words.json", "'w' is not the id", "Add the node or remove"]),
    "list of lists": (lists('{"u": [[1]]}'), ["words.json", "node 'u' is not a flat list", "Write"]),
    # arrays
    "damaged npz": (text("g.npz", b"PK cut short"), ["g.npz", "cannot be read as an .npz", "numpy.savez"]),
    "Python objects": (
        lambda p: write_npz(p / "g.npz", y=np.array([1, None, 2], dtype=object)),
        ["g.npz", "plain arrays", "dtype=str"],
    ),
    "edge to nowhere": (
        lambda p: write_npz(p / "g.npz", edge_index=np.array([[0], [3]])),
        ["g.npz", "names node 3", "numbered 0 to 2"],
    ),
    "NaN": (lambda p: write_npz(p / "g.npz", x=np.array([[1, np.nan]])), ["g.npz", "x holds nan", "Fill in"]),
    "json cut short": (
        lambda p: write_json(p / "g.json", '{"x":\n [[1'),
        ["g.json, line 2", "not valid json", "Correct"],
    ),
    "labels too few": (lambda p: write_json(p / "g.json", y=[0, 1]), ["g.json", "for each of 3 nodes"]),
    "names too few": (
        lambda p: write_npz(p / "g.npz", node_names=np.array(["u", "v"])),
        ["g.npz", "2 node_names for 3", "Give one for each"],
    ),
    "unknown kind": (
        lambda p: write_npz(p / "g.npz", feature_names=np.array(["a", "b"]), feature_kinds=np.array(["number", "x"])),
        ["g.npz", "feature_kinds holds 'x'", "Choose among"],
    ),
    "pipe": (pipe, ["g.npz", "pipe", "Copy it to a file"]),
    "unknown form": (text("g.xls", "1"), [r"g\.xls", r"cannot be read from \.xls", "Give .npz"]),
    # GraphML
    "GraphML with entities": (
        text("g.graphml", GRAPHML.format('<!DOCTYPE a [<!ENTITY b "b">]>', 1, "v")),
        ["g.graphml", "document type", "Remove <!DOCTYPE"],
    ),
    "GraphML cut short": (
        text("g.graphml", GRAPHML.format("", 1, "v")[:-20]),
        ["g.graphml", "cannot be read as GraphML", "Write it again"],
    ),
    "GraphML without a number": (
        text("g.graphml", GRAPHML.format("", "one", "v")),
        ["g.graphml", "cannot be read as GraphML .could not convert", "Write it again"],
    ),
    # files of torch
    "several node types": (saved(two_types()), ["g.pt", "2 types of nodes .paper, author", "to_homogeneous"]),
    "pickle that runs code": (saved(Runs()), ["g.pt", "weights_only=True, which runs no code", "torch.save"]),
    "plain pickle": (text("g.pt", pickle.dumps(Runs())), ["g.pt", "file of torch.save", "Save the graph"]),
    "other content": (saved({"x": torch.ones(1)}), ["g.pt", "holds a dict", r"torch\.save\(list\(dataset\)"]),
    "no features in torch": (saved(Data(edge_index=torch.tensor(EDGES))), ["g.pt", "no 'x'", "A graph needs"]),
}


def test_the_table_has_thirty_kinds():
    assert len(BROKEN) >= 30


@pytest.mark.parametrize("case", BROKEN)
def test_broken_input_is_refused_with_a_clear_message(tmp_path, case):
    write, patterns = BROKEN[case]
    path = write(tmp_path)
    with pytest.raises(AccordError) as caught:
        read_graphs(path)
    message = str(caught.value)
    assert "\n" not in message
    for pattern in [re.escape(str(tmp_path)), *patterns]:
        assert re.search(pattern, message), f"{pattern} is not in: {message}"
    assert not os.path.exists(WITNESS)


@pytest.mark.parametrize("case", BROKEN)
def test_a_check_reports_broken_input_without_an_exception(tmp_path, case):
    write, patterns = BROKEN[case]
    path = write(tmp_path)
    if case.startswith("mapping") and case != "mapping of another column":
        with pytest.raises(AccordError):  # nothing can be read without the mapping
            check_folder(path)
        return
    found = check_folder(path).findings.problems
    assert any(all(re.search(pattern, problem) for pattern in patterns) for problem in found), found


def test_a_check_reports_every_problem(tmp_path):
    nodes = "id,label,a,b\nu,cat,1,x\nu,dog,two,y\nw,dog,3\n,dog,4,x\nz,owl,5,x\nq,cat,6,y\n"
    write_tables(tmp_path / "train" / "one", nodes, "source,target\nu,nobody\nnobody,z\n")
    write_tables(tmp_path / "train" / "two", "id,label,a,b\nu,cat,1,x\n", "source,target\n")
    write_tables(tmp_path / "val" / "three", "id,label,a,b\nu,emu,1,x\nv,cat,2,x\nw,elk,2,y\n", "source,target\n")
    write_npz(tmp_path / "train" / "bad.npz", x=np.array(X)[:, :1], y=np.array(["cat", "dog", "dog"]))
    write_json(tmp_path / "val" / "bad.json", "{")
    found = check_folder(tmp_path)
    patterns = [
        "one/nodes.csv, line 4: has 3 cells",
        "one/nodes.csv, line 3: the id 'u' is already used",
        "one/nodes.csv, line 5: the id is empty",
        "one/nodes.csv, line 3: column 'a' holds 'two'",
        "one/edges.csv, line 2: target 'nobody'",
        "one/edges.csv, line 3: source 'nobody'",
        "three/nodes.csv, line 2: the label 'emu' is unknown",
        "three/nodes.csv, line 4: the label 'elk' is unknown",
        "bad.json, line 1: is not valid json",
        "one/nodes.csv: has 3 features a node, but .*bad.npz has 1",
    ]
    assert len(found.findings.problems) == len(patterns), found.findings.problems
    for pattern in patterns:
        assert any(re.search(pattern, problem) for problem in found.findings.problems), pattern
    with pytest.raises(AccordError):
        read_folder(tmp_path)
