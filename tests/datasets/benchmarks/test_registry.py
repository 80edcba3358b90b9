import pytest
import torch

from accord.datasets import list_benchmarks, load_benchmark, resolve_benchmark
from accord.errors import DataNotFoundError, InputTypeError, OptionError

NAMES = ["cora*", "citeseer*", "pubmed*", "ppi-1", "ppi-2", "ppi-10", "ppi-20", "dblp", "citation-domains"]

# The paper's table of data sets: graphs, nodes and edges a graph, for train, val and test, to one decimal.
PAPER = [
    ("cora*", "planetoid_cora.npz", (140, 5.6, 7.0), (500, 4.9, 5.8), (1000, 4.7, 5.3)),
    ("citeseer*", "planetoid_citeseer.npz", (120, 4.0, 4.3), (500, 3.8, 4.0), (1000, 3.8, 3.8)),
    ("pubmed*", "planetoid_pubmed.npz", (60, 6.0, 6.7), (500, 5.4, 5.8), (1000, 5.6, 6.7)),
    ("ppi", "ppi_recon.npz", (20, 2245.3, 61318.4), (2, 3257.0, 99460.0), (2, 2762.0, 80988.0)),
]


@pytest.mark.parametrize(
    ("name", "train", "val", "test"),
    [pytest.param(name, *splits, marks=pytest.mark.data(file), id=name) for name, file, *splits in PAPER],
)
def test_sizes_equal_the_papers_table(name, train, val, test):
    statistics = load_benchmark(name).statistics()
    for split, expected in (("train", train), ("val", val), ("test", test)):
        found = statistics[split]
        assert (found.graphs, round(found.average_nodes, 1), round(found.average_edges, 1)) == expected
        assert found.counted == ("arcs" if name == "ppi" else "edges")


def test_every_name_is_listed_with_a_line_about_it():
    entries = list_benchmarks()
    assert [entry.name for entry in entries] == NAMES
    assert all(entry.description and "\n" not in entry.description for entry in entries)


def test_listing_says_what_is_here(no_files):
    assert not any(entry.present for entry in list_benchmarks())
    (no_files / "planetoid_cora.npz").touch()
    fetched = no_files / "pyg" / "ppi" / "processed" / "train.pt"
    fetched.parent.mkdir(parents=True)
    fetched.touch()
    assert [entry.name for entry in list_benchmarks() if entry.present] == ["cora*", *NAMES[3:7]]


def test_all_are_present_where_the_files_are(benchmark_files):
    assert all(entry.present for entry in list_benchmarks() if entry.name != "dblp")  # built by its users


@pytest.mark.parametrize("name", ["core", "ppi-3", "", "digits"])
def test_unknown_names_are_refused_with_the_choices(name):
    with pytest.raises(OptionError) as caught:
        load_benchmark(name)
    assert all(choice in str(caught.value) for choice in (*NAMES, repr(name)))


@pytest.mark.parametrize(
    ("given", "name"),
    [("cora*", "cora*"), ("Cora", "cora*"), (" CiteSeer* ", "citeseer*"), ("PPI", "ppi-20"), ("ppi-2", "ppi-2")],
)
def test_names_are_resolved_in_one_place(given, name):
    assert resolve_benchmark(given) == name


def test_other_names_may_be_accepted_too():
    assert resolve_benchmark("Digits", also=("digits",)) == "digits"


def test_a_name_is_a_string():
    with pytest.raises(InputTypeError, match="int"):
        load_benchmark(1)


def test_unknown_features_are_refused_before_anything_is_fetched(no_files):
    with pytest.raises(OptionError, match="raw, row-normalised, standardised"):
        load_benchmark("cora*", features="scaled")


@pytest.mark.parametrize("name", NAMES[:7])
def test_data_that_is_nowhere_is_an_error_that_says_what_to_do(name, no_files, monkeypatch):
    import torch_geometric.datasets

    def fail(self):
        raise OSError("no route to host")

    # The classes themselves are PyG's; only what would reach the network is replaced.
    monkeypatch.setattr(torch_geometric.datasets.Planetoid, "download", fail)
    monkeypatch.setattr(torch_geometric.datasets.PPI, "download", fail)
    with pytest.raises(DataNotFoundError, match="no route to host") as caught:
        load_benchmark(name)
    message = str(caught.value)
    assert ".npz was not found in" in message and str(no_files) in message and "ACCORD_DATA" in message
    assert isinstance(caught.value, FileNotFoundError)


@pytest.mark.data("planetoid_cora.npz")
def test_a_short_name_loads_the_same_benchmark():
    assert load_benchmark(" Cora").name == "cora*"


@pytest.mark.data("planetoid_cora.npz")
def test_citation_defaults_to_raw_features():
    default, raw = load_benchmark("cora*"), load_benchmark("cora*", features="raw")
    assert all(torch.equal(a.x, b.x) for a, b in zip(default.test, raw.test, strict=True))
