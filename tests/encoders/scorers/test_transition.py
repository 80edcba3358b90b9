"""One table for all edges."""

import torch
from encoders.encoder_cases import SEEDS, random_batch

from accord.encoders import TransitionScorer, scorer_from_config


def test_every_edge_has_the_table_of_its_replica_and_shares_its_memory():
    batch, scorer = random_batch(), TransitionScorer().build(4, 3, SEEDS)
    with torch.no_grad():
        scorer.table.normal_(generator=torch.Generator().manual_seed(0))
    tables = scorer(torch.zeros(batch.num_nodes, len(SEEDS), 4), batch)
    assert tables.shape == (len(SEEDS), batch.num_edges, 3, 3) and tables.stride(1) == 0
    assert torch.equal(tables, scorer.table[:, None].expand_as(tables))
    tables.sum().backward()
    assert torch.equal(scorer.table.grad, torch.full_like(scorer.table, float(batch.num_edges)))


def test_a_symmetric_table_equals_its_transpose():
    batch, scorer = random_batch(), TransitionScorer(symmetric=True).build(4, 3, [1])
    with torch.no_grad():
        scorer.table.normal_(generator=torch.Generator().manual_seed(0))
    table = scorer(torch.zeros(batch.num_nodes, 1, 4), batch)[0, 0]
    assert torch.equal(table, table.t()) and not torch.equal(scorer.table[0], scorer.table[0].t())


def test_its_configuration_is_read_back():
    assert scorer_from_config(TransitionScorer().to_config()) == TransitionScorer()
