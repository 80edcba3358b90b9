"""Graphs that are streamed from disk train what the same graphs train from memory, bit by bit."""

from dataclasses import replace

import pytest
import torch
from learning.process_cases import CASES, EPOCHS, TRAIN, train, train_together

from accord.datasets import GraphFiles, write_graphs
from accord.errors import OptionError
from accord.learning import TrainingOptions
from accord.learning.training import StateWeights, read_checkpoint
from accord.learning.training._graphs import check_batches, training_batches
from accord.learning.training.processes import Processes, deal, share_of_batch

TOGETHER = ("gnn", "spn", "linear crf", "gmnn")


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """The training graphs of the cases in two Parquet files."""
    folder = tmp_path_factory.mktemp("files")
    write_graphs(TRAIN[:6], folder / "a.parquet")
    write_graphs(TRAIN[6:], folder / "b.parquet")
    return folder


@pytest.fixture(scope="module")
def streamed(files, tmp_path_factory):
    return GraphFiles(files, scratch=tmp_path_factory.mktemp("scratch"))


def checkpoints(folder):
    return {path.relative_to(folder): read_checkpoint(path) for path in sorted(folder.rglob("checkpoint.safetensors"))}


def check_same(left, right):
    """Checkpoints hold weights, Adam's averages, losses, scores and the fingerprint of the data."""
    found, expected = checkpoints(left), checkpoints(right)
    assert found.keys() == expected.keys() and found
    for path, one in expected.items():
        assert one.values == found[path].values
        assert one.tensors.keys() == found[path].tensors.keys()
        for name, value in one.tensors.items():
            torch.testing.assert_close(found[path].tensors[name], value, rtol=0, atol=0, equal_nan=True)


@pytest.mark.parametrize("name", CASES)
def test_a_stream_trains_what_a_list_trains(name, streamed, tmp_path):
    models = [train(name, tmp_path / kind, graphs=graphs) for kind, graphs in (("list", TRAIN), ("stream", streamed))]
    check_same(tmp_path / "stream", tmp_path / "list")
    assert models[0].choice() == models[1].choice() and models[0].history == models[1].history
    for key, value in models[0].tensors().items():
        assert torch.equal(value, models[1].tensors()[key]), key


@pytest.mark.parametrize("name", ["spn", "gmnn"])
def test_a_run_goes_on_from_a_list_with_a_stream_and_the_other_way_round(name, streamed, tmp_path):
    for place, graphs in (
        ("list", (TRAIN, TRAIN)),
        ("to a stream", (TRAIN, streamed)),
        ("to a list", (streamed, TRAIN)),
    ):
        for epochs, own in zip((3, EPOCHS), graphs, strict=True):
            train(name, tmp_path / place, epochs=epochs, graphs=own)
        check_same(tmp_path / place, tmp_path / "list")


def test_processes_that_stream_train_what_one_trains_in_memory(files, tmp_path):
    train_together(TOGETHER, tmp_path, 2, files=files)
    for name in TOGETHER:
        model = train(name, tmp_path / "alone")
        for rank in range(2):
            ended = read_checkpoint(tmp_path / f"{rank}.{name}")
            for key, value in model.tensors().items():
                torch.testing.assert_close(ended.tensors[key], value, rtol=1e-5, atol=1e-5)


@pytest.fixture
def read(streamed, monkeypatch):
    """The numbers of the graphs that are read, in order."""
    numbers = []
    once = type(streamed).read
    monkeypatch.setattr(type(streamed), "read", lambda own, number: numbers.append(number) or once(own, number))
    return numbers


def test_the_graphs_of_a_batch_are_read_when_it_is_their_turn(streamed, read):
    batches = training_batches(streamed, 4, lambda batch: batch)
    assert not read
    for number, _ in enumerate(batches(0)):
        assert len(read) == min(4 * number + 4, len(TRAIN))
    assert sorted(read) == list(range(len(TRAIN)))


def test_a_process_reads_its_own_graphs_only(streamed, read, monkeypatch):
    monkeypatch.setattr(Processes, "sum", lambda _, values: values)
    work = [len(graph.x) for graph in TRAIN]
    found = []
    for rank in range(3):
        share_of_batch(streamed, range(11), work, Processes(rank, 3), triangles=False)
        found.append(list(read))
        read.clear()
    assert found == deal(work, 3)


def test_class_weights_count_over_portions(streamed, monkeypatch):
    expected = StateWeights.balanced(TRAIN, 3)
    monkeypatch.setattr("accord.graphs._stream.PORTION_NUMBERS", 1)  # a graph each
    found = StateWeights.balanced(streamed, 3)
    assert torch.equal(found.node, expected.node) and torch.equal(found.edge, expected.edge)


@pytest.mark.parametrize(
    ("options", "what"),
    [
        (TrainingOptions(batch_graphs=None), "batch_graphs=None takes all 11"),
        (TrainingOptions(batch_graphs=11), "batch_graphs=11 takes all 11"),
        (TrainingOptions(batch_graphs=4, clusters=3), "clusters=3"),
    ],
)
def test_options_that_need_all_graphs_are_refused(streamed, options, what):
    with pytest.raises(OptionError, match=f"{what}.*leave out --stream"):
        check_batches(streamed, options)
    check_batches(TRAIN, options)
    check_batches(streamed, replace(options, batch_graphs=EPOCHS, clusters=None))


def test_batches_of_one_graph_are_streamed_too(streamed):
    places = lambda batch: batch  # noqa: E731
    for (one, _), (other, fixed) in zip(
        training_batches(TRAIN, 1, places)(3), training_batches(streamed, 1, places)(3), strict=True
    ):
        assert not fixed and torch.equal(one.x, other.x)
