"""A gain counts only beyond noise, by the paired differences on the same graphs."""

import math

import pytest
import torch

from accord.evaluation import Judged, is_better, score_gain
from accord.graphs import topology

GRAPHS, SIZE = 30, 4


def several_graphs(count=GRAPHS):
    nodes = torch.arange(count * SIZE).view(count, SIZE)
    edges = torch.stack([nodes[:, :-1].flatten(), nodes[:, 1:].flatten()])
    return topology(edges, count * SIZE, torch.arange(count).repeat_interleave(SIZE))


def judged(truth, right):
    """Answers that are right where `right` says so, with a probability of 0.9."""
    labels = torch.where(right, truth, 1 - truth)
    probabilities = torch.full((*truth.shape, 2), 0.1).scatter(-1, labels[..., None], 0.9)
    return Judged(labels, probabilities)


@pytest.fixture
def case():
    generator = torch.Generator().manual_seed(0)
    truth = torch.randint(0, 2, (1, GRAPHS * SIZE), generator=generator)
    before, after = (torch.rand(truth.shape, generator=generator) < share for share in (0.6, 0.8))
    return truth, before, after


def test_with_one_graph_a_group_the_error_is_that_of_a_mean(case):
    truth, before, after = case
    gain, error = score_gain("node", judged(truth, before), judged(truth, after), truth, several_graphs())
    each = (after.double() - before.double()).view(GRAPHS, SIZE).mean(1)
    assert gain == pytest.approx(float(each.mean()))
    assert error == pytest.approx(float(each.std(correction=1)) / math.sqrt(GRAPHS))


@pytest.mark.parametrize("level", ["node", "graph", "f1", "likelihood", "auc"])
def test_a_clear_gain_counts_at_every_level_and_a_loss_never_does(level):
    truth = torch.arange(GRAPHS * SIZE)[None] % 2
    before = (torch.arange(GRAPHS * SIZE) % 3 > 0)[None]
    worse, better = judged(truth, before), judged(truth, torch.ones_like(before))
    assert is_better(level, worse, better, truth, several_graphs())
    assert not is_better(level, better, worse, truth, several_graphs())
    assert not is_better(level, worse, worse, truth, several_graphs())


def test_one_lucky_node_is_noise():
    truth = torch.zeros(1, GRAPHS * SIZE, dtype=torch.long)
    before = torch.arange(GRAPHS * SIZE)[None] % 5 > 0
    after = before.clone()
    after[0, 0] = True
    assert not is_better("node", judged(truth, before), judged(truth, after), truth, several_graphs())


def test_with_few_graphs_nodes_are_the_units():
    truth = torch.zeros(1, SIZE, dtype=torch.long)
    right = torch.tensor([[True, False, False, False]])
    gain, error = score_gain("node", judged(truth, right), judged(truth, ~right), truth, several_graphs(1))
    assert gain == pytest.approx(0.5) and 0 < error < math.inf
    assert score_gain("graph", judged(truth, right), judged(truth, ~right), truth, several_graphs(1))[1] == math.inf


def test_nodes_without_a_true_label_do_not_count(case):
    truth, before, after = case
    hidden = truth.clone()
    hidden[:, 10 * SIZE :] = -1
    first, second = judged(truth, before), judged(truth, after)
    whole = score_gain("node", first, second, hidden, several_graphs())
    part = slice(0, 10 * SIZE)
    few = (Judged(own.labels[:, part], own.probabilities[:, part]) for own in (first, second))
    assert whole == pytest.approx(score_gain("node", *few, truth[:, part], several_graphs(10)))
