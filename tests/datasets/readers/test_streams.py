"""Graphs of files as a stream: those of `read_graphs`, in its order; what does not fit is refused by file and row."""

import pytest
import torch
from datasets.readers.graph_files import graph, write_json, write_npz, write_tables

from accord.datasets import GraphFiles, read_folder, read_graphs, stream_folder, write_graph, write_graphs
from accord.errors import DataNotFoundError, GraphError


def stream(path, **more):
    return GraphFiles(path, scratch=path.parent / "scratch", **more)


def check_same(streamed, listed):
    assert len(streamed) == len(listed)
    for one, other in zip(streamed, listed, strict=True):
        assert set(one.keys()) == set(other.keys())
        for key in one.keys():  # noqa: SIM118 - PyG's Data is not a dict
            same = torch.equal(one[key], other[key]) if isinstance(one[key], torch.Tensor) else one[key] == other[key]
            assert same, key


def test_parquet_rows_and_single_files(tmp_path):
    folder = tmp_path / "graphs"
    folder.mkdir()
    write_graphs([graph(), graph((2, 1, 0))], folder / "a.parquet", ["cat", "dog", "emu"])
    write_graphs([graph((0, 0, -1))], folder / "b.parquet", ["bee"])  # other names: states are those of all files
    write_json(folder / "c.json", y=["emu", None, "ant"], node_names=["u", "v", "w"])
    write_npz(folder / "d.npz", train_mask=[True, False, False])
    streamed = stream(folder)
    check_same(streamed, read_graphs(folder))
    assert streamed.label_names == ["ant", "bee", "cat", "dog", "emu"]
    assert repr(streamed) == f"GraphFiles({str(folder)!r}, 5 graphs)"
    assert not list((tmp_path / "scratch").iterdir())  # the temporary file has no name


def test_other_columns_tables_and_sentences(tmp_path):
    for name, kinds in (("a", ["number", "category"]), ("b", ["number", "category"])):
        own = graph(feature_names=["size", f"colour={name}"], feature_kinds=kinds)
        write_graph(own, (tmp_path / "named" / f"{name}.json"))
    write_tables(tmp_path / "tables" / "one", nodes="id,label,a,b\nu,0,0,1\nv,1,2,\n", edges="source,target\nu,v\n")
    write_tables(tmp_path / "tables" / "two", nodes="id,label,a,b\nu,0,0,1\nv,1,2,3\n", edges="source,target\nu,v\n")
    (tmp_path / "words").mkdir()
    (tmp_path / "words" / "all.conll").write_text("One O\ncat B\n\nMice B\n\n")
    for name, columns in (("named", 3), ("tables", 3), ("words", None)):
        streamed = stream(tmp_path / name)
        check_same(streamed, read_graphs(tmp_path / name))
        assert columns is None or streamed[0].x.shape[1] == columns


def write_rows(path, *graphs):
    path.parent.mkdir(exist_ok=True)
    write_graphs(graphs, path)


WIDE = graph()
WIDE.x = torch.zeros(3, 5)
MASKED = graph(train_mask=torch.tensor([True, True, False]), val_mask=torch.tensor([False, True, False]))
ATTRIBUTED = graph(edge_attr=torch.zeros(2, 1))


@pytest.mark.parametrize(
    ("bad", "what"),
    [
        (WIDE, "b.parquet, row 2: has 5 features a row, but .*a.parquet, row 1 has 2"),
        (ATTRIBUTED, "b.parquet, row 2: has 1 edge attributes a row, but .*a.parquet, row 1 has 0"),
        (MASKED, "b.parquet, row 2: 1 nodes are in both train_mask and val_mask"),
    ],
)
def test_a_graph_that_does_not_fit_is_refused_by_file_and_row(tmp_path, bad, what):
    folder = tmp_path / "graphs"
    write_rows(folder / "a.parquet", graph(), graph())
    write_rows(folder / "b.parquet", graph(), bad)
    with pytest.raises(GraphError, match=what):
        stream(folder)


def test_graphs_have_the_same_number_of_labels(tmp_path):
    folder = tmp_path / "graphs"
    write_rows(folder / "a.parquet", graph())
    write_rows(folder / "b.parquet", graph(y=[[0, 1], [1, 1], [0, 0]]))
    with pytest.raises(GraphError, match=r"b.parquet, row 1: has 2 labels a node, but .*a.parquet, row 1 has 1"):
        stream(folder)


def test_labels_are_names_everywhere_or_nowhere(tmp_path):
    folder = tmp_path / "graphs"
    write_rows(folder / "a.parquet", graph())
    write_json(folder / "b.json", y=["cat", "dog", None])
    with pytest.raises(GraphError, match=r"b.json: has names for labels, but .*a.parquet, row 1 has numbers"):
        stream(folder)


def test_tokens_are_everywhere_or_nowhere(tmp_path):
    folder = tmp_path / "graphs"
    folder.mkdir()
    (folder / "a.conll").write_text("One O\ncat B\n\n")
    own = graph()
    own.x = own.x[:, :0]
    write_rows(folder / "b.parquet", own)
    with pytest.raises(GraphError, match=r"b.parquet, row 1: has no tokens"):
        stream(folder)


def test_names_and_damage_are_refused_by_file(tmp_path):
    folder = tmp_path / "graphs"
    folder.mkdir()
    write_json(folder / "a.json", feature_names=["size", "age"])
    write_json(folder / "b.json", feature_names=["size", "weight"])
    with pytest.raises(GraphError, match=r"b.json: feature names differ from those of .*a.json: column 1 is 'weight'"):
        stream(folder)
    (folder / "b.json").write_text("{")
    with pytest.raises(GraphError, match=r"b.json, line 1"):
        stream(folder)


def test_columns_of_text_in_tables_are_refused(tmp_path):
    write_tables(
        tmp_path / "tables" / "one", nodes="id,label,a,colour\nu,0,0,red\nv,1,2,blue\n", edges="source,target\nu,v\n"
    )
    with pytest.raises(GraphError, match=r"nodes.csv: column 'colour' holds text.*write a Parquet file of the graphs"):
        stream(tmp_path / "tables")


def test_a_scratch_folder_that_cannot_be_used_is_named(tmp_path):
    write_rows(tmp_path / "graphs" / "a.parquet", graph())
    (tmp_path / "file").touch()
    with pytest.raises(OSError, match=r"Choose a folder with room: .*GraphFiles\(..., scratch=FOLDER\).*file"):
        GraphFiles(tmp_path / "graphs", scratch=tmp_path / "file")


def make_folder(folder, names=("cat", "dog")):
    for split, seeds in (("train", range(4)), ("val", range(2)), ("test", range(1))):
        (folder / split).mkdir(parents=True)
        write_graphs([graph((seed % 2, 1, -1)) for seed in seeds], folder / split / "all.parquet", list(names))
    return folder


def test_a_data_folder_is_that_of_read_folder(tmp_path):
    folder = make_folder(tmp_path / "data")
    streamed, read = stream_folder(folder, scratch=tmp_path), read_folder(folder)
    for name in ("name", "num_states", "num_tasks", "level", "label_names", "task_names", "source"):
        assert getattr(streamed, name) == getattr(read, name), name
    assert isinstance(streamed.train, GraphFiles) and str(streamed) == str(read)
    for split in ("train", "val", "test"):
        for one, other in zip(getattr(streamed, split), getattr(read, split), strict=True):
            assert torch.equal(one.x, other.x) and torch.equal(one.y, other.y)


def test_a_data_folder_needs_validation_graphs_and_no_test_masks(tmp_path):
    folder = make_folder(tmp_path / "data")
    (folder / "val" / "all.parquet").rename(tmp_path / "kept.parquet")
    (folder / "val").rmdir()
    with pytest.raises(DataNotFoundError, match=r"has no folder val/.*Leave out --stream"):
        stream_folder(folder, scratch=tmp_path)
    (folder / "test").rename(folder / "val")
    masked = graph((0, 1, 0), test_mask=torch.tensor([True, False, False]))
    write_graphs([masked], folder / "train" / "more.parquet", ["cat", "dog"])
    with pytest.raises(GraphError, match=r"test_mask.*Put test graphs into test/"):
        stream_folder(folder, scratch=tmp_path)
