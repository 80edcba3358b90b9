"""The oracle against its definition: sums and maxima over the scores of all labellings."""

import itertools

import pytest
import torch
from hypothesis import given, settings
from inference.exact_cases import EXACT, chain, random_field
from support.strategies import fields
from torch.testing import assert_close

from accord import enumerate_beliefs
from accord.errors import InfeasibleError, TooLargeError


@settings(max_examples=25)
@given(fields(max_nodes=4, replicas=((),)))
def test_beliefs_are_sums_and_maxima_over_labellings(field):
    labellings = torch.tensor(list(itertools.product(range(field.num_states), repeat=field.num_nodes)))
    scores = field.score(labellings)[:, 0]
    total, best = enumerate_beliefs(field), enumerate_beliefs(field, "max")
    assert_close(total.log_partition, scores.logsumexp(0)[None], **EXACT)
    assert_close(best.log_partition, scores.max()[None], **EXACT)
    assert_close(field.score(best.decode()), scores.max()[None], **EXACT)
    for node, state in itertools.product(range(field.num_nodes), range(field.num_states)):
        chosen = scores[labellings[:, node] == state]
        assert_close(total.node[node, state], chosen.logsumexp(0) - scores.logsumexp(0), **EXACT)
        assert_close(best.node[node, state], chosen.max() - scores.max(), **EXACT)
    for number, (source, target) in enumerate(field.edge_index.t().tolist()):
        for pair in itertools.product(range(field.num_states), repeat=2):
            chosen = scores[(labellings[:, [source, target]] == torch.tensor(pair)).all(1)]
            assert_close(total.edge[number][pair], chosen.logsumexp(0) - scores.logsumexp(0), **EXACT)
            assert_close(best.edge[number][pair], chosen.max() - scores.max(), **EXACT)


def test_large_graphs_are_refused():
    with pytest.raises(TooLargeError, match=r"3\*\*13 labellings.*eliminate_beliefs"):
        enumerate_beliefs(random_field(chain(13), 13, 3))
    with pytest.raises(TooLargeError, match="25 nodes"):
        enumerate_beliefs(random_field(chain(25), 25, 1))


def test_infeasible_graphs_are_named():
    field = random_field(chain(2), 2, 2)
    with pytest.raises(InfeasibleError, match="graph 0 has no labelling"):
        enumerate_beliefs(field.with_potentials(edge=torch.full_like(field.edge, -torch.inf)))
