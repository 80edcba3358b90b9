"""`NodeClassifier.fit` on graphs that are streamed from disk: the model of the same graphs in memory."""

from dataclasses import replace

import pytest
import torch
from torch_geometric.data import Data

import accord
from accord.datasets import GraphFiles, read_graphs, write_graphs, write_sentences
from accord.encoders import GCN, MLP
from accord.errors import GraphError, OptionError
from accord.estimator import find_settings
from accord.graphs import GraphBatch
from accord.methods import preset_recipe

NAMES = ["ant", "bee", "cat"]
METHODS = ("spn", "gnn", "crf", "gmnn", "smooth")


def made_graphs(count, seed):
    """Chains of different lengths with edge attributes, on features of different scales; some labels are missing."""
    generator = torch.Generator().manual_seed(seed)
    graphs = []
    for number in range(count):
        size = 3 + int(torch.randint(0, 9, (), generator=generator))
        start = torch.arange(size - 1)
        y = torch.randint(0, 3, (size,), generator=generator)
        x = torch.randn(size, 4, generator=generator) * torch.tensor([1.0, 30.0, 0.1, 1.0])
        x[:, 0] += y
        attributes = (y[1:] == y[:-1]).float()[:, None] + 0.3 * torch.randn(size - 1, 1, generator=generator)
        lost = torch.rand(size, generator=generator) < 0.2
        graph = Data(x=x, edge_index=torch.stack([start, start + 1]), y=y.masked_fill(lost, -1), edge_attr=attributes)
        if number % 3 == 0:
            graph.train_mask = torch.rand(size, generator=generator) < 0.8
        graphs.append(graph)
    return graphs


@pytest.fixture(scope="module")
def graphs(tmp_path_factory):
    """Training graphs as a stream and as a list, and validation graphs."""
    folder = tmp_path_factory.mktemp("graphs")
    train = made_graphs(50, 0)
    for first in (0, 20, 40):
        write_graphs(train[first : first + 20], folder / "train" / f"{first}.parquet", NAMES)
    write_graphs(made_graphs(8, 1), folder / "val.parquet", NAMES)
    streamed = GraphFiles(folder / "train", scratch=folder / "scratch")
    return streamed, read_graphs(folder / "train"), read_graphs(folder / "val.parquet")


def check_same(one, other):
    assert one.choice_ == other.choice_ and one.candidates_scores == other.candidates_scores
    assert one.label_names_ == other.label_names_ and one.shape_ == other.shape_
    assert one.treatment_.equals(other.treatment_) and one.columns_ == other.columns_
    for name, value in one.model_.tensors().items():
        assert torch.equal(value, other.model_.tensors()[name]), name


def fit_both(graphs, **changes):
    """Two fitted models, the first on the stream, the second on the list."""
    streamed, listed, validation = graphs
    models = []
    for train in (streamed, listed):
        model = accord.NodeClassifier(**{"max_epochs": 4, "accelerator": "cpu", **changes}).fit(train, validation)
        model.candidates_scores = [row["score"] for row in model.candidates_]
        models.append(model)
    return models


@pytest.fixture
def small_portions(monkeypatch):
    """Passes over the stream take a few graphs at a time."""
    monkeypatch.setattr("accord.graphs._stream.PORTION_NUMBERS", 100)


@pytest.mark.parametrize("method", METHODS)
def test_every_method_learns_the_same(graphs, method, small_portions):
    recipe = preset_recipe(encoder=GCN(hidden=6), edge_encoder=MLP(hidden=6), method=method)
    recipe = replace(recipe, training=replace(recipe.training, batch_graphs=8))
    check_same(*fit_both(graphs, method=method, recipe=recipe))


def test_what_is_chosen_by_the_data_is_the_same(graphs, small_portions):
    """Networks, direction, edge columns, class weights and scaled features."""
    one, other = fit_both(graphs, method="spn", class_weight="balanced", max_epochs=2)
    check_same(one, other)
    assert len(one.candidates_) > 3 and one.treatment_.name == "standardised"
    assert one.recipe_.training.batch_graphs is not None


def test_ensembles_refinement_triangles_and_a_start(graphs):
    small = {"encoder": MLP(hidden=4), "edge_encoder": GCN(hidden=4), "max_epochs": 2}
    for changes in ({"ensemble": 2}, {"refine": True}, {"order": 3}):
        check_same(*fit_both(graphs, **small, **changes))
    streamed, listed, validation = graphs
    first = accord.NodeClassifier(**small).fit(listed, validation)
    again = [accord.NodeClassifier(**small).fit(train, validation, start=first) for train in (streamed, listed)]
    for name, value in again[0].model_.tensors().items():
        assert torch.equal(value, again[1].model_.tensors()[name]), name


def test_words_are_counted_over_the_stream(tmp_path):
    (tmp_path / "train").mkdir()
    for part in range(3):
        sentences = [(["the", f"word{number % 7}", "Ends"], ["O", "B-x", "O"]) for number in range(10 + part)]
        write_sentences(sentences, tmp_path / "train" / f"{part}.conll")
    streamed, listed = GraphFiles(tmp_path / "train", scratch=tmp_path), read_graphs(tmp_path / "train")
    one, other = (
        accord.NodeClassifier(max_epochs=1, encoder="convolution").fit(train, listed[:6])
        for train in (streamed, listed)
    )
    assert one.treatment_.equals(other.treatment_) and one.treatment_.vocabulary.known("word6")
    for name, value in one.model_.tensors().items():
        assert torch.equal(value, other.model_.tensors()[name]), name


def test_no_pass_and_no_update_collates_all_graphs(graphs, monkeypatch, small_portions):
    streamed, _, validation = graphs
    sizes = []
    collate = GraphBatch.collate.__func__
    monkeypatch.setattr(
        GraphBatch, "collate", classmethod(lambda cls, given: sizes.append(len(given)) or collate(cls, given))
    )
    recipe = preset_recipe(encoder=GCN(hidden=6), edge_encoder=MLP(hidden=6), method="spn")
    recipe = replace(recipe, training=replace(recipe.training, batch_graphs=8))
    accord.NodeClassifier(recipe=recipe, max_epochs=1).fit(streamed, validation)
    assert max(sizes) == 8 and len(validation) == 8


@pytest.mark.parametrize(
    ("parameters", "given", "what"),
    [
        ({"refit": True}, {}, "refit trains on training and validation graphs"),
        ({"search": 2}, {}, "search trains many settings"),
        ({}, {"unlabelled": made_graphs(2, 3)}, "unlabelled trains on"),
    ],
)
def test_what_needs_all_graphs_in_memory_is_refused(graphs, parameters, given, what):
    streamed, _, validation = graphs
    with pytest.raises(OptionError, match=f"{what}.*Leave out {next(iter(parameters | given))}"):
        accord.NodeClassifier(**parameters).fit(streamed, validation, **given)


def test_a_stream_needs_validation_graphs_and_batches(graphs):
    streamed, _, validation = graphs
    with pytest.raises(GraphError, match="none of them are held out. Give validation graphs"):
        accord.NodeClassifier().fit(streamed)
    with pytest.raises(OptionError, match="search"):
        find_settings(accord.NodeClassifier(), streamed, validation)
    with pytest.raises(OptionError, match="batch_graphs=None takes all 50 training graphs at once"):
        accord.NodeClassifier(method="gmnn", max_epochs=1).fit(streamed, validation)
