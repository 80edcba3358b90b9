"""Triangle scorers: tables follow their corners, replicas do not see each other, blocks change nothing."""

import pytest
import torch
from torch_geometric.data import Data

from accord.encoders.scorers.triangles import AgreementTriangles, LowRankTriangles, _scorer
from accord.errors import OptionError
from accord.graphs import GraphBatch, topology_triangles

SPECS = [AgreementTriangles(), AgreementTriangles(hidden=4), LowRankTriangles(rank=3), LowRankTriangles(hidden=5)]
EDGES = torch.tensor([[0, 1, 0, 2, 1, 3, 0], [1, 2, 2, 3, 3, 4, 3]])


def batch_of(x, edges):
    return GraphBatch.collate([Data(x=x, edge_index=torch.cat([edges, edges.flip(0)], 1))])


@pytest.fixture
def inputs():
    generator = torch.Generator().manual_seed(0)
    return torch.randn(5, 6, generator=generator), torch.randn(5, 2, 8, generator=generator)


@pytest.mark.parametrize("spec", SPECS, ids=str)
def test_renumbered_nodes_permute_the_tables(spec, inputs):
    x, h = inputs
    scorer = spec.build(8, 3, [0, 1])
    place = torch.tensor([3, 0, 4, 1, 2])  # the new number of each node
    back = place.argsort()
    before, after = batch_of(x, EDGES), batch_of(x[back], place[EDGES])
    tables, renumbered = scorer(h, before), scorer(h[back], after)
    rows = topology_triangles(after.topology).corner.tolist()
    for number, corner in enumerate(topology_triangles(before.topology).corner):
        new = place[corner]
        row, order = rows.index(new.sort().values.tolist()), new.argsort()
        expected = tables[:, number].permute(0, *(1 + axis for axis in order.tolist()))
        torch.testing.assert_close(renumbered[:, row], expected)


@pytest.mark.parametrize("spec", SPECS, ids=str)
def test_replicas_are_independent_and_blocks_change_nothing(spec, inputs, monkeypatch):
    x, h = inputs
    batch = batch_of(x, EDGES)
    both = spec.build(8, 3, [0, 1])(h, batch)
    torch.testing.assert_close(both[1:], spec.build(8, 3, [1])(h[:, 1:], batch))
    monkeypatch.setattr(_scorer, "SCORING_BLOCK_ELEMENTS", 1)
    with torch.no_grad():
        torch.testing.assert_close(spec.build(8, 3, [0, 1])(h, batch), both.detach())


@pytest.mark.parametrize("spec", SPECS, ids=str)
def test_specifications_convert_to_json_and_back(spec):
    assert type(spec).from_config(spec.to_config()) == spec


def test_low_rank_tables_express_parity():
    """The sign of the product of three binary labels: equality of labels cannot tell it, one outer product can."""
    sign = torch.tensor([1.0, -1.0])
    parity = sign[:, None, None] * sign[None, :, None] * sign
    scorer = LowRankTriangles(rank=1).build(1, 2, [0])
    with torch.no_grad():
        scorer.map.weight.zero_()
        scorer.map.bias.copy_(torch.cat([sign, torch.zeros(4)])[None])
    tables = scorer(torch.ones(5, 1, 1), batch_of(torch.ones(5, 1), EDGES))
    torch.testing.assert_close(tables[0, 0], parity)


def test_many_states_are_refused():
    with pytest.raises(OptionError, match="At most 16"):
        AgreementTriangles().build(8, 17, [0])
