"""Training on clusters of one graph's nodes."""

from dataclasses import replace

import pytest
import torch
from learning.training_cases import RECIPE, SHAPE, TRAIN, VAL, with_training
from torch.testing import assert_close
from torch_geometric.data import Batch, Data

from accord.errors import InputError, OptionError
from accord.graphs import GraphBatch
from accord.learning import Replicas, TrainingOptions, TrainingRun
from accord.learning.training._graphs import cluster_batches
from accord.methods import GNN, GNNRecipe


def union(graphs):
    """All graphs as one, with edge attributes that number its edges."""
    whole = Batch.from_data_list(graphs)
    attributes = torch.arange(whole.edge_index.shape[1]).float()[:, None]
    return Data(x=whole.x, edge_index=whole.edge_index, y=whole.y, edge_attr=attributes)


WHOLE = union(TRAIN)


def ends_by_attribute(batch):
    """Features of the source and the target of every edge, by the edge's number."""
    pairs = zip(batch.edge_attr, batch.topology.edge_index.t(), strict=True)
    return {int(number): batch.x[edge].tolist() for number, edge in pairs}


def test_an_epoch_takes_every_node_once_with_its_labels_and_edges():
    collated = GraphBatch.collate([WHOLE])
    batches = [batch for batch, fixed in cluster_batches([WHOLE], 10, 3)(0) if not fixed]
    assert len(batches) == 4
    rows = torch.cat([torch.cat([batch.x, batch.y[:, None].float()], 1) for batch in batches])
    wanted = torch.cat([collated.x, collated.y[:, None].float()], 1)
    assert torch.equal(rows[rows[:, 0].argsort()], wanted[wanted[:, 0].argsort()])
    ends = {
        int(a): collated.x[e].tolist()
        for a, e in zip(collated.edge_attr, collated.topology.edge_index.t(), strict=True)
    }
    for batch in batches:
        for attribute, edge in zip(batch.edge_attr, batch.topology.edge_index.t(), strict=True):
            assert batch.x[edge].tolist() == ends[int(attribute)]


def test_epochs_differ_and_are_repeatable():
    batches = cluster_batches([WHOLE], 10, 3)
    first, again, other = ([batch.x for batch, _ in batches(epoch)] for epoch in (0, 0, 1))
    assert all(torch.equal(a, b) for a, b in zip(first, again, strict=True))
    assert any(a.shape != b.shape or not torch.equal(a, b) for a, b in zip(first, other, strict=True))


def gnn(**training):
    return GNN(GNNRecipe(encoder=RECIPE.encoder, node=RECIPE.node, training=with_training(**training).training))


def trained(method, folder=None):
    model = method.fit(TrainingRun([WHOLE], VAL, folder), SHAPE, Replicas((0,)))
    return model, model.node_logits(GraphBatch.collate(VAL))


def test_all_clusters_at_once_are_the_whole_graph():
    """The order of nodes stays, so even dropout is the same."""
    assert_close(trained(gnn(max_epochs=5))[1], trained(gnn(max_epochs=5, clusters=6, batch_clusters=6))[1])


def test_training_on_clusters_learns():
    truth = torch.cat([graph.y for graph in VAL])
    for options in ({}, {"clusters": 12, "batch_clusters": 3}):
        logits = trained(gnn(max_epochs=20, **options))[1]
        assert (logits[0].argmax(-1) == truth).double().mean() > 0.5


def test_a_checkpoint_of_other_clusters_is_refused(tmp_path):
    trained(gnn(max_epochs=1, clusters=6), tmp_path)
    with pytest.raises(InputError, match="other seeds, settings"):
        trained(gnn(max_epochs=1, clusters=7), tmp_path)


def test_options_are_checked():
    for changes in ({"clusters": 0}, {"clusters": True}, {"batch_clusters": 0}):
        with pytest.raises(OptionError, match=next(iter(changes))):
            replace(TrainingOptions(), **changes)
