"""Departure: when joint labels differ from the node network's too often."""

import torch

from accord.evaluation import most_departures, usual_departure
from accord.graphs import topology

GENERATOR = torch.Generator().manual_seed(0)


def graphs(count, size):
    return topology(torch.empty(2, 0, dtype=torch.long), count * size, torch.arange(count * size) // size)


def usual(shares, size=50):
    differs = torch.cat([torch.rand(size, generator=GENERATOR) < share for share in shares])
    return usual_departure(differs, graphs(len(shares), size))


def test_chance_is_not_out_of_the_usual_and_far_more_is():
    seen = usual([0.1] * 40)
    assert seen[0] == 2000 and 150 < seen[1] < 250 and seen[2] < 0.03
    for nodes in (1, 10, 100, 10_000):
        draws = torch.binomial(torch.full((2000,), float(nodes)), torch.full((2000,), 0.1), generator=GENERATOR)
        assert (draws > most_departures(seen, nodes)).double().mean() < 2e-3
    assert most_departures(seen, 3) >= 3  # never on tiny graphs
    assert most_departures(seen, 1000) < 300


def test_graphs_that_vary_allow_more():
    even, varied = usual([0.2] * 40), usual([0.0, 0.4] * 20)
    assert varied[2] > 0.15
    assert most_departures(varied, 1000) > most_departures(even, 1000) + 300


def test_few_validation_nodes_promise_little():
    few, many = usual([0.0], 10), usual([0.0], 10_000)
    assert most_departures(few, 100) > 5 * most_departures(many, 100)
