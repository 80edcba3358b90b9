"""The made set of triples: its labels follow its field, and pairs of labels tell nothing."""

import pytest
import torch

from accord import enumerate_beliefs
from accord.datasets import TriplesOptions, make_triples
from accord.errors import OptionError
from accord.graphs import graph_topology, topology_triangles
from accord.inference import eliminate_beliefs


@pytest.fixture(scope="module")
def bench():
    return make_triples(300, 2, 2, options=TriplesOptions(faithful=0.9))


def test_pairs_are_independent_and_triples_follow_the_rule(bench):
    triples = [graph.y[topology_triangles(graph_topology(graph)).corner] for graph in bench.train]
    labels = torch.cat(triples)
    share = float((labels.sum(1) % 3 == 0).double().mean())
    assert abs(share - 0.9) < 0.02
    pairs = torch.bincount(labels[:, 0] * 3 + labels[:, 1], minlength=9) / len(labels)
    assert float((pairs - 1 / 9).abs().max()) < 0.02


def test_the_true_field_has_these_marginals():
    graph = make_triples(1, 1, 1, options=TriplesOptions(min_triangles=3, max_triangles=3, faithful=0.9)).train[0]
    truth = make_triples(1, 1, 1, options=TriplesOptions(faithful=0.9)).truth
    prior = enumerate_beliefs(truth.field(graph, evidence=False))
    torch.testing.assert_close(prior.node.exp(), torch.full_like(prior.node, 1 / 3))
    torch.testing.assert_close(prior.factors[0].exp(), torch.full_like(prior.factors[0], 1 / 9))
    table = prior.factors[1].exp()[0]
    assert abs(float(table[0, 1, 2]) - 0.9 / 9) < 1e-6 and abs(float(table[0, 0, 1]) - 0.05 / 9) < 1e-6


def test_evidence_and_the_field_together_beat_evidence_alone(bench):
    right = {"alone": 0.0, "together": 0.0, "count": 0.0}
    for graph in bench.train[:40]:
        field = bench.truth.field(graph)
        right["alone"] += int((field.node.argmax(-1) == graph.y).sum())
        right["together"] += int((eliminate_beliefs(field).node.argmax(-1) == graph.y).sum())
        right["count"] += len(graph.y)
    assert right["together"] - right["alone"] > 0.05 * right["count"]


def test_the_same_seed_gives_the_same_set():
    one, two = (make_triples(2, 1, count) for count in (1, 3))
    assert torch.equal(one.train[1].x, two.train[1].x) and torch.equal(one.test[0].y, two.test[0].y)


def test_bad_options_are_refused():
    with pytest.raises(OptionError, match="faithful"):
        TriplesOptions(faithful=1.0)
    with pytest.raises(OptionError, match="num_val"):
        make_triples(num_val=0)
