"""Networks trained apart are those that an SPN trains together."""

from dataclasses import replace

import pytest
import torch
from support.made_graphs import made_trees

from accord.encoders import GCN, MLP, BilinearScorer
from accord.learning import CombinationGrid, PartOptions, Replicas, TrainingOptions, TrainingRun
from accord.learning.training import learned
from accord.methods import Shape, SPNRecipe, StructuredProxyNetwork
from accord.tuning import combine_parts, train_edge_part, train_node_part

RECIPE = SPNRecipe(
    encoder=GCN(hidden=8, dropout=0.3),
    edge_encoder=MLP(hidden=8, dropout=0.3),
    edge_channels=4,
    scorer=BilinearScorer(dropout=0.2),
    node=PartOptions(learning_rate=0.03, weight_decay=1e-3),
    edge=PartOptions(learning_rate=0.02),
    training=TrainingOptions(max_epochs=6, evaluate_every=2, batch_graphs=5, accelerator="cpu"),
    grid=CombinationGrid(sharpness=(1.0, 0.0), power=(1.0,), node_weight=(1.0,)),
)
RUN = TrainingRun(made_trees(12, seed=0), made_trees(8, seed=1))
SHAPE = Shape(num_features=2, num_states=2)


def test_networks_trained_apart_are_those_of_an_spn():
    replicas = Replicas((3, 4))
    together = StructuredProxyNetwork(RECIPE).fit(RUN, SHAPE, replicas)
    node = train_node_part(RECIPE, RUN, SHAPE, replicas)
    edge = train_edge_part(RECIPE, RUN, SHAPE, replicas)
    combined = combine_parts(RECIPE, node, edge, RUN, SHAPE, replicas)
    assert combined.tensors().keys() == together.tensors().keys()
    for name, value in together.tensors().items():
        torch.testing.assert_close(combined.tensors()[name], value, rtol=1e-4, atol=1e-5)
    assert combined.choice() == together.choice()


@pytest.mark.parametrize("train", [train_node_part, train_edge_part])
def test_replicas_with_rates_of_their_own_train_as_if_alone(train):
    rates = [PartOptions(learning_rate=0.03), PartOptions(learning_rate=0.002, weight_decay=0.1)]
    both = train(RECIPE, RUN, SHAPE, Replicas((5, 5)), options=rates)
    for place, own in enumerate(rates):
        alone = train(replace(RECIPE, node=own, edge=own), RUN, SHAPE, Replicas((5,)))
        part = both.subset([place])
        torch.testing.assert_close(part.loss, alone.loss, rtol=1e-4, atol=1e-5)
        for found, wanted in zip(learned(part.part).values(), learned(alone.part).values(), strict=True):
            torch.testing.assert_close(found, wanted, rtol=1e-3, atol=1e-5)
    assert not torch.allclose(both.loss[0], both.loss[1])


def test_survivors_continue_and_the_others_stay(tmp_path):
    longer = replace(RECIPE, training=replace(RECIPE.training, max_epochs=12))
    rates = [PartOptions(learning_rate=rate) for rate in (0.03, 0.01, 0.003)]
    run = replace(RUN, folder=tmp_path)
    replicas = Replicas((5, 5, 5))
    first = train_node_part(RECIPE, run, SHAPE, replicas, options=rates)
    second = train_node_part(longer, run, SHAPE, replicas, options=rates, only=[2])
    torch.testing.assert_close(second.loss[:2], first.loss[:2])
    whole = train_node_part(longer, RUN, SHAPE, Replicas((5,)), options=rates[2:])
    torch.testing.assert_close(second.loss[2:], whole.loss, rtol=1e-4, atol=1e-5)
    again = train_node_part(longer, run, SHAPE, replicas, options=rates, only=[2])
    torch.testing.assert_close(again.loss, second.loss)
