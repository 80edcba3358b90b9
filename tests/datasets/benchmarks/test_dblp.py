"""DBLP from a small made sample in the format of the public dump, and the networks that stand beside it."""

import gzip
import json

import numpy as np
import pytest
import torch

from accord.datasets import build_dblp, load_benchmark
from accord.errors import DataNotFoundError, GraphError

ICML, CVPR, ACL = (
    "International Conference on Machine Learning",
    "computer vision and pattern recognition",
    "meeting of the association for computational linguistics",
)


def paper(number, year, venue, references=(), title="a graph", abstract=None):
    entry = {"id": number, "authors": [{"name": "A. Nonymous", "id": 1}], "title": title, "year": year}
    entry |= {"venue": {"raw": venue, "id": 7, "type": "C"}, "references": list(references), "n_citation": 3}
    if abstract is not None:
        entry["indexed_abstract"] = {"IndexLength": 3, "InvertedIndex": abstract}
    return entry


PAPERS = [
    paper(10, 1999, ICML, [11, 11, 10, 99], "Graph MODELS!", {"graph,": [0, 2], "unknownword": [1]}),
    paper(11, 1990, CVPR, [10], "models"),
    paper(12, 1995, ICML, [], "nothing known here"),
    paper(20, 2000, ACL, [10, 21]),
    paper(21, 2009, "NIPS", [30]),
    paper(30, 2010, CVPR, [21, 31]),
    paper(31, 2020, ACL, [12, 33]),
    paper(33, 2015, ICML + " Workshop", [31]),
    paper(34, 2015, "journal of machine learning research", [31]),
    {"id": 35, "title": "no venue", "year": 2012},
    {"id": 36, "title": "no year", "venue": {"raw": "ICML"}},
]


@pytest.fixture
def sources(tmp_path):
    """The dump is one list with a paper a line, commas first; the vectors are text."""
    lines = [("" if place == 0 else ",") + json.dumps(entry) for place, entry in enumerate(PAPERS)]
    (tmp_path / "dblp.v12.json").write_text("[\n" + "\n".join(lines) + "\n]\n")
    (tmp_path / "glove.txt").write_text("the 9 9\ngraph 1 0\nmodels 0 1\na 4 2\n")
    return tmp_path


def build(folder, dump="dblp.v12.json", vectors="glove.txt"):
    return build_dblp(folder / dump, folder / vectors, folder / "data" / "dblp.npz")


def test_graphs_are_as_the_paper_describes_them(sources, monkeypatch):
    path = build(sources)
    monkeypatch.setenv("ACCORD_DATA", str(path.parent))
    bench = load_benchmark("DBLP")
    assert (bench.num_states, bench.level, bench.num_features) == (3, "node", 2)
    train, val, test = bench.train[0], bench.val[0], bench.test[0]
    assert train.y.tolist() == [0, 1, 0] and val.y.tolist() == [2, 0] and test.y.tolist() == [1, 2]
    # 10 and 11 cite each other (twice) and 10 cites itself: one edge; citations across splits are none.
    assert sorted(train.edge_index.t().tolist()) == [[0, 1], [1, 0]]
    assert sorted(val.edge_index.t().tolist()) == [[0, 1], [1, 0]]
    assert sorted(test.edge_index.t().tolist()) == [[0, 1], [1, 0]]
    # graph: once in the title, twice in the abstract; models: once; other words have no vector.
    torch.testing.assert_close(train.x, torch.tensor([[0.75, 0.25], [0.0, 1.0], [0.0, 0.0]]))
    torch.testing.assert_close(val.x[0], torch.tensor([2.5, 1.0]))  # "a graph"


def test_gzipped_sources_give_the_same(sources):
    plain = dict(np.load(build(sources)))
    for name in ("dblp.v12.json", "glove.txt"):
        (sources / f"{name}.gz").write_bytes(gzip.compress((sources / name).read_bytes()))
    packed = dict(np.load(build(sources, "dblp.v12.json.gz", "glove.txt.gz")))
    assert all(np.array_equal(plain[key], packed[key]) for key in plain)


def test_other_files_are_refused_with_the_line(sources):
    (sources / "bad.json").write_text('[\n{"id": 1, "venue": {"raw": "ICML"}, "year": 1990}\n{"id": \n')
    with pytest.raises(GraphError, match="bad.json, line 3"):
        build(sources, dump="bad.json")
    (sources / "few.json").write_text(json.dumps(PAPERS[0]) + "\n")
    with pytest.raises(GraphError, match="none for some of train, val, test"):
        build(sources, dump="few.json")
    (sources / "bad.txt").write_text("graph 1 x\n")
    with pytest.raises(GraphError, match="bad.txt, line 1"):
        build(sources, vectors="bad.txt")
    (sources / "none.txt").write_text("other 1 2\n")
    with pytest.raises(GraphError, match="no vectors"):
        build(sources, vectors="none.txt")


def test_without_a_file_the_error_says_how_to_build_it(no_files):
    with pytest.raises(DataNotFoundError, match="accord data dblp DUMP VECTORS"):
        load_benchmark("dblp")
    with pytest.raises(DataNotFoundError, match="citation_domains.npz"):
        load_benchmark("citation-domains")


@pytest.mark.data("citation_domains.npz")
def test_citation_domains_are_three_networks_over_the_same_words():
    bench = load_benchmark("citation-domains")
    sizes = [(int(g.num_nodes), g.edge_index.shape[1] // 2) for g in (bench.train[0], bench.val[0], bench.test[0])]
    assert sizes == [(9360, 15556), (8935, 15098), (5484, 8117)]
    assert (bench.num_features, bench.num_states, bench.level) == (6775, 5, "node")
