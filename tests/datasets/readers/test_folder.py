"""Data folders with train/, val/ and test/."""

import numpy as np
import pytest
from datasets.readers.graph_files import write_npz, write_tables

from accord.datasets import read_folder
from accord.errors import DataNotFoundError, GraphError


def test_a_data_folder(tmp_path):
    write_tables(tmp_path / "train" / "one")
    write_tables(tmp_path / "train" / "two", "id,label,a,b\nu,eel,0,1\n", "source,target\n")
    write_tables(tmp_path / "test" / "three", "id,label,a,b\nu,eel,0,1\n", "source,target\n")
    bench = read_folder(tmp_path)
    assert (len(bench.train), len(bench.val), len(bench.test)) == (2, 0, 1)
    assert bench.label_names == ["cat", "dog", "eel"]
    assert (bench.num_states, bench.num_tasks, bench.num_features, bench.level) == (3, 1, 2, "node")
    assert bench.test[0].y.tolist() == [2]
    assert "train=2" in repr(bench)


def test_states_are_counted_in_training_and_validation_graphs(tmp_path):
    for split, highest in (("train", 1), ("val", 3)):
        (tmp_path / split).mkdir()
        write_npz(tmp_path / split / "g.npz", y=np.array([0, highest, -1]))
    assert read_folder(tmp_path).num_states == 4
    assert read_folder(tmp_path).label_names is None


def test_an_incomplete_data_folder_is_an_error(tmp_path):
    with pytest.raises(DataNotFoundError, match="no such folder"):
        read_folder(tmp_path / "none")
    with pytest.raises(DataNotFoundError, match="has no folder train/"):
        read_folder(tmp_path)
    (tmp_path / "train").mkdir()
    with pytest.raises(DataNotFoundError, match="train: the folder is empty"):
        read_folder(tmp_path)
    write_npz(tmp_path / "train" / "g.npz")
    with pytest.raises(GraphError, match="has labels. Add a column `label`"):
        read_folder(tmp_path)


def test_graphs_of_a_data_folder_have_the_same_columns(tmp_path):
    for split in ("train", "test"):
        (tmp_path / split).mkdir()
    write_npz(tmp_path / "train" / "a.npz", y=np.array([0, 1, 1]))
    write_npz(tmp_path / "test" / "b.npz", x=np.ones((3, 5)))
    with pytest.raises(GraphError, match="b.npz: has 5 features a node, but .*a.npz has 2"):
        read_folder(tmp_path)
    write_npz(tmp_path / "test" / "b.npz", y=np.ones((3, 2), dtype=int))
    with pytest.raises(GraphError, match="b.npz: has 2 labels a node"):
        read_folder(tmp_path)


def test_a_label_that_is_not_in_training_is_refused(tmp_path):
    write_tables(tmp_path / "train" / "one")
    write_tables(tmp_path / "val" / "two", "id,label,a,b\nu,eel,0,1\n", "source,target\n")
    with pytest.raises(GraphError, match="line 2: the label 'eel' is unknown. Known from training: cat, dog"):
        read_folder(tmp_path)
