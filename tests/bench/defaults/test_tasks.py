"""The tasks of `accord bench defaults` are the data that they claim to be."""

import pytest
import torch
from torch_geometric.data import Data

from accord.bench.defaults import load_task
from accord.bench.defaults._made import MADE
from accord.bench.defaults._tasks import _induced
from accord.tuning import may_be_directed


def test_an_induced_subgraph_keeps_each_nodes_own_edges() -> None:
    """Older versions of PyG number the nodes of a subgraph in sorted order, newer ones in the given order."""
    edges = torch.tensor([[0, 1, 1, 2, 2, 3, 3, 4], [1, 0, 2, 1, 3, 2, 4, 3]])
    graph = Data(x=torch.arange(5.0)[:, None], y=torch.arange(5), edge_index=edges)
    part = _induced(graph, torch.tensor([4, 1, 3, 2]))
    joined = {(int(part.y[a]), int(part.y[b])) for a, b in part.edge_index.t()}
    assert joined == {(1, 2), (2, 1), (2, 3), (3, 2), (3, 4), (4, 3)}
    assert part.x.flatten().tolist() == part.y.tolist()


@pytest.mark.parametrize("name", list(MADE))
def test_made_tasks_follow_their_seed(name: str) -> None:
    first, again, other = load_task(name, 0), load_task(name, 0), load_task(name, 1)
    for own, same in zip(first.splits, again.splits, strict=True):
        assert all(
            torch.equal(a.x, b.x) and torch.equal(a.edge_index, b.edge_index) for a, b in zip(own, same, strict=True)
        )
    assert not torch.equal(first.train[0].x, other.train[0].x)
    y = torch.cat([graph.y for graph in first.train])
    assert y.unique().tolist() == list(range(first.num_states))


def test_made_tasks_have_the_traits_that_they_claim() -> None:
    grids, signed, fraud, few = (load_task(name, 0) for name in ("grids", "signed-edges", "fraud", "few-graphs"))
    assert may_be_directed(grids.train) and not may_be_directed(fraud.train)
    steps = torch.cat([(g.y[g.edge_index[1]] - g.y[g.edge_index[0]]) % 4 for g in grids.train])
    assert float((steps == 1).float().mean() - (steps == 3).float().mean()) > 0.2  # turned round, a step of 1 is 3
    equal = torch.cat([g.y[g.edge_index[0]] == g.y[g.edge_index[1]] for g in signed.train])
    attributes = torch.cat([g.edge_attr for g in signed.train])
    right = ((attributes > 0) == equal[:, None]).float().mean(0)
    assert right[0] > 0.95 and right[1] < 0.6
    rare = torch.cat([g.y for g in fraud.train]).float().mean()
    assert 0.02 < rare < 0.045
    assert len(few.train) == 10 and {g.num_nodes for g in few.train} == {8}
