"""Separate and shared networks have one interface; objectives tell whether their replicas are independent."""

from dataclasses import replace

import pytest
import torch
from learning.training_cases import LEAVING, RECIPE, SEEDS, SHAPE, TRAIN, VAL, presence

from accord.encoders import Noise
from accord.graphs import GraphBatch
from accord.learning import PartOptions, Replicas, TrainingRun
from accord.learning.objectives import FieldObjective, NodeObjective, SeparateNetworks, SharedNetworks, raw_field
from accord.learning.training import Objective, Trainer
from accord.methods import StructuredProxyNetwork

BATCH = GraphBatch.collate(TRAIN[:5])
NODE, EDGE = PartOptions(learning_rate=1e-2, label_smoothing=0.1), PartOptions(learning_rate=1e-3, label_smoothing=0.2)


def networks_of(shared):
    return StructuredProxyNetwork(replace(RECIPE, shared=shared)).build(SHAPE, Replicas((0, 1))).networks


@pytest.mark.parametrize("shared", [False, True])
@pytest.mark.parametrize("noise", [None, Noise(torch.tensor([3, 4]), 7)])
def test_scores_of_nodes_and_edges_together_equal_those_asked_apart(shared, noise):
    networks = networks_of(shared)
    node, edge = networks.logits(BATCH, noise)
    assert node.shape == (2, BATCH.num_nodes, 3) and edge.shape == (2, BATCH.topology.num_edges, 3, 3)
    assert torch.equal(networks.node_logits(BATCH, noise), node)
    assert torch.equal(networks.edge_logits(BATCH, noise), edge)


def test_part_names_options_and_scores():
    apart, together = networks_of(False), networks_of(True)
    assert isinstance(apart, SeparateNetworks) and isinstance(together, SharedNetworks)
    assert apart.options(NODE, EDGE) == {"node": NODE, "edge": EDGE} and apart.edge is apart.parts["edge"]
    assert together.options(NODE, EDGE) == {"shared": NODE} and together.edge is None
    assert apart.label_smoothing(apart.options(NODE, EDGE)) == (0.1, 0.2)
    assert together.label_smoothing(together.options(NODE, EDGE)) == (0.1, 0.1)
    node, edge = torch.tensor([0.5, 0.5]), torch.tensor([1.0, torch.nan])
    assert apart.part_scores(node, edge) == {"node": node, "edge": edge}
    assert together.part_scores(node, edge)["shared"].tolist() == [0.75, 0.5]
    for networks in (apart, together):
        other = networks_of(networks is together)
        assert type(networks.with_parts(other.parts)) is type(networks)
        assert networks.with_parts(other.parts).parts == other.parts


class Delegating(Objective):
    """A node network's objective that the loop has never heard of."""

    def __init__(self, inner, separable):
        self.inner, self.separable = inner, separable
        self.parts, self.options, self.identity = inner.parts, inner.options, inner.identity

    def losses(self, batch, targets, noise):
        return self.inner.losses(batch, targets, noise)

    def scores(self, batch, targets):
        return self.inner.scores(batch, targets)


@pytest.mark.parametrize("separable", [True, False])
def test_replicas_leave_the_batch_if_the_objective_is_separable(separable, monkeypatch):
    counts = presence(monkeypatch)
    replicas = Replicas(SEEDS)
    model = StructuredProxyNetwork(LEAVING).build(SHAPE, replicas)
    inner = NodeObjective(model.parts["node"], LEAVING.node, "graph")
    Trainer(Delegating(inner, separable), replicas, LEAVING.training).fit(TrainingRun(TRAIN, VAL))
    assert (counts[-1] < len(SEEDS)) == separable


def test_objectives_of_whole_fields_are_not_separable():
    networks = networks_of(False)
    objective = FieldObjective(networks, networks.options(NODE, EDGE), "node", raw_field, None, None)
    assert not objective.separable
    with pytest.raises(NotImplementedError, match="FieldObjective is not separable"):
        objective.with_parts(networks.parts)
