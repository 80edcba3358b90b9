"""Clusters have similar sizes and few edges between them."""

import pytest
import torch

from accord.errors import OptionError
from accord.graphs import cluster_nodes


def communities(groups=8, size=40, inside=5, between=20, seed=0):
    """Random edges inside groups, and some between them; nodes are shuffled."""
    generator = torch.Generator().manual_seed(seed)
    group = torch.arange(groups).repeat_interleave(size)[torch.randperm(groups * size, generator=generator)]
    source = torch.randint(0, len(group), (inside * len(group) * groups,), generator=generator)
    target = torch.randint(0, len(group), (inside * len(group) * groups,), generator=generator)
    alike = (group[source] == group[target]) & (source < target)
    some = torch.randint(0, len(group), (2, between), generator=generator)
    return torch.cat([torch.stack([source, target])[:, alike], some[:, some[0] < some[1]]], 1), group


def test_communities_are_found():
    edges, group = communities()
    cluster = cluster_nodes(edges, len(group), 8)
    cut, planted = ((own[edges[0]] != own[edges[1]]).double().mean() for own in (cluster, group))
    assert planted < 0.05 and cut < 0.25  # without an order, 7 of 8 edges would be cut
    sizes = torch.bincount(cluster, minlength=8)
    assert int(sizes.max()) <= 1.1 * len(group) / 8 + 1 and int(sizes.min()) > 0


def test_the_same_seed_gives_the_same_clusters():
    edges, group = communities()
    assert torch.equal(cluster_nodes(edges, len(group), 5, 3), cluster_nodes(edges, len(group), 5, 3))


@pytest.mark.parametrize("nodes", [0, 1, 5])
def test_few_nodes_and_no_edges(nodes):
    empty = torch.empty(2, 0, dtype=torch.long)
    assert sorted(cluster_nodes(empty, nodes, 10).tolist()) == list(range(nodes))
    assert set(cluster_nodes(empty, nodes, 1).tolist()) <= {0}


def test_a_count_that_is_no_count_is_refused():
    for wrong in (0, 1.5, True):
        with pytest.raises(OptionError, match="clusters is"):
            cluster_nodes(torch.empty(2, 0, dtype=torch.long), 3, wrong)
