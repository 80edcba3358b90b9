"""The arcs of a batch in compressed form."""

import pytest
import torch
from encoders.encoder_cases import random_batch

from accord.encoders.replica import arc_pattern


@pytest.mark.parametrize("loops", [False, True])
def test_every_arc_is_listed_once_by_target_and_source(loops):
    batch = random_batch()
    pattern, arcs = arc_pattern(batch, loops), batch.topology.arcs
    listed = list(zip(pattern.target.tolist(), pattern.source.tolist(), strict=True))
    wanted = list(zip(arcs.target.tolist(), arcs.source.tolist(), strict=True))
    wanted += [(node, node) for node in range(batch.num_nodes) if loops]
    assert listed == sorted(wanted)
    assert (pattern.num_nodes, pattern.num_arcs) == (batch.num_nodes, len(wanted))
    counts = torch.bincount(pattern.target, minlength=batch.num_nodes)
    assert pattern.start.diff().tolist() == counts.tolist()


@pytest.mark.parametrize("loops", [False, True])
def test_a_pattern_holds_the_reverse_of_every_arc(loops):
    pattern = arc_pattern(random_batch(), loops)
    assert torch.equal(pattern.source[pattern.reverse].long(), pattern.target)
    assert torch.equal(pattern.target[pattern.reverse], pattern.source.long())


def test_patterns_are_built_once():
    batch = random_batch()
    assert arc_pattern(batch, True) is arc_pattern(batch, True)
    assert arc_pattern(batch, True) is not arc_pattern(batch, False)
