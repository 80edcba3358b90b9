import pytest
from support.command_line import make_data

from accord.app.commands.fit import build_model
from accord.app.settings import FitSettings
from accord.app.sources import benchmark_name, load_data
from accord.datasets import make_digits
from accord.errors import DataNotFoundError


def test_a_folder_is_read_and_is_no_benchmark(tmp_path):
    data = load_data(str(make_data(tmp_path / "fruit", train=2, val=1, test=1)))
    assert (len(data.train), len(data.val), len(data.test)) == (2, 1, 1)
    assert data.label_names == ["apple", "pear", "quince"]
    assert benchmark_name(data) is None


def test_digits_are_made_from_the_seed(monkeypatch):
    seeds = []
    monkeypatch.setattr(
        "accord.app.sources.make_digits", lambda seed: (seeds.append(seed), make_digits(2, 1, 1, seed))[1]
    )
    assert benchmark_name(load_data("Digits", seed=3)) is None
    assert seeds == [3]


def test_a_folder_with_the_name_of_a_benchmark_is_no_benchmark(tmp_path):
    data = load_data(str(make_data(tmp_path / "ppi-1", train=2, val=1, test=1)))
    assert benchmark_name(data) is None
    assert build_model(data, FitSettings()).benchmark is None


@pytest.mark.data("planetoid_cora.npz")
def test_benchmarks_have_several_names():
    assert {benchmark_name(load_data(name)) for name in ("cora", "Cora*")} == {"cora*"}


def test_unknown_names_are_refused():
    with pytest.raises(DataNotFoundError, match=r"fruit: is neither a folder nor a benchmark.*cora\*.*digits"):
        load_data("fruit")
