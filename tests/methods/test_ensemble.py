"""Ensembles: the average of what their members say, and one field made of it."""

import pytest
import torch
from support.made_graphs import made_trees
from torch.testing import assert_close

from accord.encoders import GCN, MLP, LinearScorer
from accord.errors import OptionError
from accord.graphs import GraphBatch
from accord.learning import PartOptions, RefinementOptions, Replicas, TrainingOptions, TrainingRun
from accord.learning.selection import choose_combination
from accord.methods import (
    CRF,
    GMNN,
    GNN,
    CRFRecipe,
    Ensemble,
    GMNNRecipe,
    GNNRecipe,
    Shape,
    SmoothedGNN,
    SPNRecipe,
    StructuredProxyNetwork,
)

TRAIN, VAL, TEST = made_trees(40, 0, states=3), made_trees(20, 1, states=3), made_trees(30, 2, states=3)
SHAPE, MEMBERS = Shape(3, 3), 3
TRAINING = TrainingOptions(max_epochs=15, accelerator="cpu")
PART = PartOptions(learning_rate=2e-2)
GNN_RECIPE = GNNRecipe(encoder=MLP(hidden=8, dropout=0.3), node=PART, training=TRAINING)
SPN_RECIPE = SPNRecipe(
    encoder=MLP(hidden=8, dropout=0.3),
    edge_encoder=GCN(hidden=8),
    scorer=LinearScorer(),
    edge_channels=8,
    node=PART,
    edge=PART,
    training=TRAINING,
    rule="score",
    shrinkage=0.0,
)


def two_tasks(graphs):
    changed = [graph.clone() for graph in graphs]
    for graph in changed:
        graph.y = torch.stack([(graph.y == 0).long(), (graph.y == 1).long()], 1)
    return changed


def average(logs):
    """The log of the members' mean probability, by hand."""
    return torch.stack(logs).double().exp().mean(0).log().float()


def test_an_ensemble_is_the_average_of_members_that_were_trained_alone():
    run, batch, held_out = TrainingRun(TRAIN, VAL), GraphBatch.collate(TEST), GraphBatch.collate(VAL)
    model = StructuredProxyNetwork(SPN_RECIPE, ensemble=MEMBERS).fit(run, SHAPE, Replicas((7, 8, 9)))
    alone = [StructuredProxyNetwork(SPN_RECIPE).fit(run, SHAPE, Replicas((seed,))) for seed in (7, 8, 9)]

    def by_hand(batch):
        node = average([one.node_logits(batch).log_softmax(-1) for one in alone])
        edge = average([one.edge_logits(batch).flatten(-2).log_softmax(-1) for one in alone])
        return node, edge.unflatten(-1, (3, 3))

    node, edge = by_hand(batch)
    assert_close(model.logits(batch), (node, edge), rtol=1e-5, atol=1e-5)
    assert_close(model.node_logits(batch), node, rtol=1e-5, atol=1e-5)
    assert_close(model.edge_logits(batch), edge, rtol=1e-5, atol=1e-5)
    targets, grid = held_out.y[None], SPN_RECIPE.grid
    chosen = choose_combination(*by_hand(held_out), targets, held_out.topology, "node", grid, SPN_RECIPE.damping)
    assert model.chosen.to_config() == chosen.to_config()
    field = chosen.field(node, edge, batch.topology)
    answers = model.answers(batch)
    assert torch.equal(model.labels(batch), chosen.labels(field, SPN_RECIPE.damping))
    assert_close(answers["gnn"].probabilities, node.softmax(-1), rtol=1e-4, atol=1e-5)
    marginals = chosen.beliefs(field, "sum", SPN_RECIPE.damping).node.exp()
    assert_close(model.beliefs(batch).node.exp(), marginals, rtol=1e-4, atol=1e-5)  # before calibration


@pytest.mark.parametrize("method", [GNN, SmoothedGNN])
def test_an_ensemble_without_edge_network_averages_its_node_networks(method):
    run, batch = TrainingRun(TRAIN, VAL), GraphBatch.collate(TEST)
    model = method(GNN_RECIPE, ensemble=MEMBERS).fit(run, SHAPE, Replicas((7, 8, 9)))
    alone = [GNN(GNN_RECIPE).fit(run, SHAPE, Replicas((seed,))) for seed in (7, 8, 9)]
    expected = average([one.node_logits(batch).log_softmax(-1) for one in alone])
    assert_close(model.node_logits(batch), expected, rtol=1e-5, atol=1e-5)
    assert model.labels(batch).shape == (1, len(batch.y))
    if method is GNN:
        assert torch.equal(model.labels(batch), expected.argmax(-1))


def test_seeds_form_several_ensembles_of_several_tasks():
    run, batch = TrainingRun(two_tasks(TRAIN), two_tasks(VAL)), GraphBatch.collate(TEST)
    shape = Shape(3, 2, num_tasks=2)
    both = GNN(GNN_RECIPE, ensemble=2).fit(run, shape, Replicas((0, 1, 5, 6), 2))
    second = GNN(GNN_RECIPE, ensemble=2).fit(run, shape, Replicas((5, 6), 2))
    assert both.node_logits(batch).shape[0] == 4  # two ensembles, two tasks
    assert_close(both.node_logits(batch)[2:], second.node_logits(batch), rtol=1e-5, atol=1e-5)
    joint = StructuredProxyNetwork(SPN_RECIPE, ensemble=2).fit(run, shape, Replicas((5, 6), 2))
    assert [len(values) for values in joint.choice().values()] == [2] * len(joint.choice())
    assert_close(joint.node_logits(batch), second.node_logits(batch), rtol=1e-5, atol=1e-5)


def test_one_member_is_not_changed():
    scores = torch.randn(2, 4, 3)
    assert Ensemble(1, 2).average_nodes(scores) is scores


def test_one_member_that_is_surely_wrong_does_not_outvote_the_others():
    right, wrong = torch.tensor([[[3.0, 0.0]]]), torch.tensor([[[-1e6, 0.0]]])
    averaged = Ensemble(4).average_nodes(torch.cat([right, right, right, wrong]))
    assert_close(averaged.exp(), 0.75 * right.softmax(-1) + 0.25 * wrong.softmax(-1))
    tables = torch.full((4, 1, 2, 2), -1e6)
    tables[:, :, 0, 0] = 0
    assert bool(Ensemble(4).average_edges(tables).isfinite().all())  # no probability is rounded to log 0


def test_what_cannot_be_an_ensemble_is_refused():
    gmnn = GMNNRecipe(encoder=MLP(hidden=8), label_encoder=MLP(hidden=8))
    with pytest.raises(OptionError, match="'gmnn' does not support ensemble=2. Set ensemble=1"):
        GMNN(gmnn, ensemble=2)
    crf = CRFRecipe(encoder=MLP(hidden=8), edge_encoder=MLP(hidden=8))
    with pytest.raises(OptionError, match="'crf' does not support ensemble=2"):
        CRF(crf, ensemble=2)
    refined = SPNRecipe(encoder=MLP(), edge_encoder=MLP(), refinement=RefinementOptions())
    with pytest.raises(OptionError, match="refinement does not support ensemble=2.*refine=False"):
        StructuredProxyNetwork(refined, ensemble=2)
    with pytest.raises(OptionError, match="multiple of 2 seeds"):
        GNN(GNN_RECIPE, ensemble=2).fit(TrainingRun(TRAIN, VAL), SHAPE, Replicas((1, 2, 3)))
