"""One sweep at a time: the same beliefs as so many sweeps at once."""

import torch
from hypothesis import given
from support.strategies import fields

from accord.inference import propagate, trace


@given(fields(max_nodes=5, max_states=3))
def test_each_step_equals_that_many_sweeps_at_once(field):
    field = field.forbid([(0, 1)]) if field.num_states > 2 else field
    steps = list(trace(field, damping=0.3, max_sweeps=4))
    for sweeps, beliefs in enumerate(steps):
        torch.testing.assert_close(beliefs.node, propagate(field, damping=0.3, max_sweeps=sweeps).node)
    assert len(steps) == 5 or bool(steps[-1].converged.all())


@given(fields(max_nodes=5, max_states=3, tree=True))
def test_before_the_first_sweep_every_node_has_its_own_evidence_and_at_the_end_the_exact_answer(field):
    first, *_, last = trace(field, max_sweeps=30)
    torch.testing.assert_close(first.node, field.node.expand_as(first.node).log_softmax(-1))
    assert bool(last.converged.all())
    torch.testing.assert_close(last.node, propagate(field).node)
