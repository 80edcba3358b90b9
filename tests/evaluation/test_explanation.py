"""Contributions of neighbours to beliefs add up, and paths carry the difference that far evidence makes."""

import torch
from hypothesis import given
from hypothesis import strategies as st
from support.strategies import DTYPE, fields
from torch.testing import assert_close

from accord import PairwiseField, propagate
from accord.errors import InfeasibleError
from accord.evaluation import contributions, strongest_paths, without_edges

ADDS_UP = {"rtol": 0, "atol": 1e-6}


def chain(nodes=5, states=3, seed=0):
    generator = torch.Generator().manual_seed(seed)
    index = torch.stack([torch.arange(nodes - 1), torch.arange(1, nodes)])
    node = torch.randn(nodes, states, generator=generator, dtype=DTYPE)
    return PairwiseField(index, node, torch.randn(nodes - 1, states, states, generator=generator, dtype=DTYPE))


@given(
    fields(max_nodes=6, max_states=3, replicas=((), (2,))),
    st.sampled_from([0.0, 0.5]),
    st.sampled_from([1.0, 0.6, "spanning"]),
    st.sampled_from([1, 200]),
    st.booleans(),
)
def test_evidence_and_messages_add_up_to_the_belief(field, damping, appearance, sweeps, narrow):
    """Whether or not messages have converged, in both precisions, plain and reweighted."""
    field = field.to(torch.float32) if narrow else field
    beliefs = propagate(field, damping=damping, edge_appearance=appearance, max_sweeps=sweeps)
    logs = beliefs.node.reshape(-1, field.num_nodes, field.num_states)
    for replica in range(len(logs)):
        for node in range(field.num_nodes):
            terms = contributions(beliefs, node, replica)
            total = terms.evidence + sum(terms.messages.values())
            gap = total - terms.log_belief
            assert_close(gap, gap.mean().expand_as(gap), **ADDS_UP)
            assert_close(terms.log_belief, logs[replica, node].double(), rtol=0, atol=1e-4 if narrow else 1e-9)
            neighbours = field.edge_index[:, (field.edge_index == node).any(0)].flatten().tolist()
            assert set(terms.messages) == set(neighbours) - {node}


@given(fields(max_nodes=5, max_states=3, replicas=((),), barred=0.2))
def test_impossible_states_stay_impossible(field):
    try:
        beliefs = propagate(field)
    except InfeasibleError:
        return
    for node in range(field.num_nodes):
        terms = contributions(beliefs, node)
        assert torch.equal(terms.log_belief == -torch.inf, beliefs.node[node] == -torch.inf)
        total = terms.evidence + sum(terms.messages.values())
        possible = terms.log_belief > -torch.inf
        gap = (total - terms.log_belief)[possible]
        assert_close(gap, gap.mean().expand_as(gap), **ADDS_UP)


@given(fields(max_nodes=6, min_states=2, max_states=3, tree=True, replicas=((),)), st.integers(0, 5))
def test_a_path_carries_the_difference_that_far_evidence_makes(field, node):
    """On a forest one path leads from each node; without that node's evidence, the belief changes by its nats."""
    node = node % field.num_nodes
    before = propagate(field)
    paths = strongest_paths(before, node, 0, 1, most=100)
    ends = [path.nodes[0] for path in paths]
    assert len(set(ends)) == len(ends) and all(path.nodes[-1] == node for path in paths)
    for path in paths:
        flat = field.node.clone()
        flat[path.nodes[0]] = 0.0
        after = propagate(field.with_potentials(node=flat)).node[node]
        change = (before.node[node, 0] - before.node[node, 1]) - (after[0] - after[1])
        assert abs(float(change) - path.nats) < 1e-6


def test_a_path_leads_from_the_strong_evidence():
    field = chain()
    strong = field.node.clone() * 0.1
    strong[4] = torch.tensor([8.0, 0.0, 0.0])
    friendly = (2.5 * torch.eye(3, dtype=DTYPE)).expand(4, 3, 3)
    beliefs = propagate(field.with_potentials(strong, friendly))
    best = strongest_paths(beliefs, 0, 0, 1)[0]
    assert best.nodes == [4, 3, 2, 1, 0] and best.nats > 1


def test_without_an_edge_its_message_is_gone():
    field = chain()
    cut = without_edges(field, 2, 1)
    assert cut.edge_index.tolist() == [[0, 2, 3], [1, 3, 4]]
    before, after = contributions(propagate(field), 2), contributions(propagate(cut), 2)
    assert set(after.messages) == {3}
    # On a tree nothing else changes, so the message accounts for the whole difference.
    assert_close((before.log_belief - before.messages[1]).log_softmax(-1), after.log_belief)
