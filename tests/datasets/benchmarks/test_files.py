from pathlib import Path

import numpy as np
import pytest

from accord._files import cache_folder
from accord.datasets import find_file
from accord.datasets.benchmarks._files import read_arrays, search_folders
from accord.errors import GraphError


def test_the_chosen_folder_comes_before_the_cache(no_files, monkeypatch, tmp_path):
    assert find_file("a.npz") is None
    (no_files / "a.npz").touch()
    assert find_file("a.npz") == no_files / "a.npz"
    (tmp_path / "data" / "a.npz").touch()
    assert find_file("a.npz") == tmp_path / "data" / "a.npz"


def test_without_variables_the_cache_is_the_usual_one(monkeypatch, tmp_path):
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    monkeypatch.setenv("ACCORD_DATA", "")
    monkeypatch.setattr(Path, "home", lambda: tmp_path)
    assert cache_folder() == tmp_path / ".cache" / "accord"
    assert search_folders() == (cache_folder(),)


def test_a_folder_is_not_a_file(no_files):
    (no_files / "a.npz").mkdir()
    assert find_file("a.npz") is None


def test_only_what_is_asked_for_is_read(tmp_path):
    path = tmp_path / "a.npz"
    np.savez(path, one=np.arange(2), two=np.arange(3), three=np.arange(4))
    arrays = read_arrays(path, ["one"], optional=["two", "four"])
    assert sorted(arrays) == ["one", "two"]
    assert arrays["two"].tolist() == [0, 1, 2]


def test_a_missing_array_is_named(tmp_path):
    np.savez(tmp_path / "a.npz", one=np.arange(2))
    with pytest.raises(GraphError, match="no array two.*it holds one"):
        read_arrays(tmp_path / "a.npz", ["two"])


@pytest.mark.parametrize("content", [b"", b"not an archive", b"PK\x03\x04 cut short"])
def test_a_broken_file_is_named(tmp_path, content):
    (tmp_path / "a.npz").write_bytes(content)
    with pytest.raises(GraphError, match="cannot be read as an .npz file.*replace or remove"):
        read_arrays(tmp_path / "a.npz", ["one"])


def test_a_file_that_is_no_archive_is_named(tmp_path):
    with (tmp_path / "a.npz").open("wb") as file:
        np.save(file, np.arange(3))
    with pytest.raises(GraphError, match="cannot be read"):
        read_arrays(tmp_path / "a.npz", ["one"])


def test_pickled_objects_are_refused(tmp_path):
    np.savez(tmp_path / "a.npz", one=np.array([{"not": "data"}], dtype=object))
    with pytest.raises(GraphError, match="allow_pickle"):
        read_arrays(tmp_path / "a.npz", ["one"])
