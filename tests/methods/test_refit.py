"""Refit: the same seeds trained again on training and validation graphs together, for the chosen number of updates."""

from dataclasses import replace

import pytest
import torch
from support.made_graphs import made_trees
from torch.testing import assert_close
from torch_geometric.data import Data

from accord.encoders import GCN, MLP, Adapter, LinearScorer
from accord.errors import OptionError
from accord.learning import PartOptions, Replicas, TrainingOptions, TrainingRun, hold_out
from accord.learning.training import Trainer
from accord.methods import GMNN, GMNNRecipe, Shape, SPNRecipe, StructuredProxyNetwork, check_refit, merge_labels, refit
from accord.methods._refit import same_updates, updates_per_epoch

TRAIN, VAL = made_trees(20, 0, states=3), made_trees(10, 1, states=3)
SHAPE, REPLICAS = Shape(3, 3), Replicas((3, 4, 5))
PART = PartOptions(learning_rate=2e-2)
RECIPE = SPNRecipe(
    encoder=MLP(hidden=8, dropout=0.3),
    edge_encoder=GCN(hidden=8),
    scorer=LinearScorer(),
    edge_channels=8,
    node=PART,
    edge=PART,
    training=TrainingOptions(max_epochs=12, evaluate_every=2, checkpoint_every=3, accelerator="cpu"),
)


def weights(model):
    return {name: value.clone() for name, value in model.tensors().items()}


def refitted(recipe, folder=None, replicas=REPLICAS, **changes):
    method, run = StructuredProxyNetwork(recipe, **changes), TrainingRun(TRAIN, VAL, folder)
    model = method.fit(run, SHAPE, replicas)
    kept, choice = {name: epochs.tolist() for name, epochs in model.kept.items()}, model.choice()
    refit(model, method, run, SHAPE, replicas)
    assert model.choice() == choice  # what was chosen before stays
    return model, kept


@pytest.mark.parametrize("batch_graphs", [None, 8])
def test_each_network_is_trained_on_all_graphs_for_its_own_number_of_updates(batch_graphs):
    recipe = replace(RECIPE, training=replace(RECIPE.training, batch_graphs=batch_graphs))
    model, kept = refitted(recipe)
    assert len({epoch for epochs in kept.values() for epoch in epochs}) > 1  # replicas and networks differ here
    per_epoch = (1, 1) if batch_graphs is None else (3, 4)  # updates on 20 and on 30 graphs
    method = StructuredProxyNetwork(recipe)
    fresh = method.build(SHAPE, REPLICAS)
    trainer = Trainer(method.objective(fresh), REPLICAS, recipe.training)
    batches, by_epoch = trainer.batches([*TRAIN, *VAL]), [weights(fresh)]
    while trainer.epoch < recipe.training.max_epochs:
        trainer.train_epoch(batches(trainer.epoch))
        trainer.epoch += 1
        by_epoch.append(weights(fresh))
    for name, value in weights(model).items():
        for place, epoch in enumerate(kept[name.split("/")[0]]):
            expected = by_epoch[round(epoch * per_epoch[0] / per_epoch[1])][name]
            assert_close(value[place], expected[place], rtol=1e-4, atol=1e-5)


def test_an_ensemble_is_refitted_member_by_member():
    model, _ = refitted(RECIPE, ensemble=3)
    apart, _ = refitted(RECIPE)
    assert_close(weights(model), weights(apart))


def test_an_interrupted_refit_continues_to_the_same_weights(tmp_path, monkeypatch):
    expected = weights(refitted(RECIPE)[0])
    train_epoch = Trainer.train_epoch

    def interrupted(self, batches):
        if self.path is not None and self.path.parent.name == "refit" and self.epoch == 5:
            raise KeyboardInterrupt
        return train_epoch(self, batches)

    monkeypatch.setattr(Trainer, "train_epoch", interrupted)
    with pytest.raises(KeyboardInterrupt):
        refitted(RECIPE, tmp_path)
    monkeypatch.setattr(Trainer, "train_epoch", train_epoch)
    assert (tmp_path / "refit" / "checkpoint.safetensors").is_file()
    assert_close(weights(refitted(RECIPE, tmp_path)[0]), expected)


def test_a_replica_that_diverges_keeps_the_weights_it_had(monkeypatch):
    method, run = StructuredProxyNetwork(RECIPE), TrainingRun(TRAIN, VAL)
    model = method.fit(run, SHAPE, REPLICAS)
    before = weights(model)
    losses = type(method.objective(model)).losses

    def broken(self, batch, targets, noise):
        found = losses(self, batch, targets, noise)
        lost = noise.seeds == REPLICAS.keys[1]
        return {name: torch.where(lost, torch.nan, value) for name, value in found.items()}

    monkeypatch.setattr(type(method.objective(model)), "losses", broken)
    with pytest.warns(match="Training diverged"):
        refit(model, method, run, SHAPE, REPLICAS)
    for name, value in weights(model).items():
        assert_close(value[1], before[name][1])
        assert not torch.equal(value[0], before[name][0])


def test_held_out_nodes_of_one_graph_are_put_back():
    graph = Data(x=torch.eye(6), edge_index=torch.tensor([[0, 1, 2, 3, 4], [1, 2, 3, 4, 5]]), y=torch.arange(6) % 3)
    graph.y[5] = -1
    train, validation = hold_out([graph], 0)
    (whole,) = merge_labels(train, validation)
    assert torch.equal(whole.y, graph.y)
    assert int((train[0].y >= 0).sum()) == 4  # the graph that was given is unchanged
    other = graph.clone()
    assert len(merge_labels([graph], [other])) == 2  # the same nodes are labelled in both: these are two graphs
    assert len(merge_labels(TRAIN, VAL)) == 30


def test_updates_stay_about_the_same():
    assert [updates_per_epoch(10, size) for size in (None, 1, 4, 10, 99)] == [1, 10, 3, 1, 1]
    assert same_updates(torch.tensor([0, 1, 10, 11]), 4, 5).tolist() == [0, 1, 8, 9]


def test_what_cannot_be_refitted_is_refused():
    method = GMNN(GMNNRecipe(encoder=MLP(hidden=8), label_encoder=MLP(hidden=8)))
    with pytest.raises(OptionError, match="'gmnn' does not support refit=True. Set refit=False"):
        refit(method.build(SHAPE, REPLICAS), method, TrainingRun(TRAIN, VAL), SHAPE, REPLICAS)
    with pytest.raises(OptionError, match="edge_encoder is an Adapter of one module.*factory"):
        check_refit(StructuredProxyNetwork(replace(RECIPE, edge_encoder=Adapter(torch.nn.Identity()))))
    method = StructuredProxyNetwork(RECIPE)
    with pytest.raises(OptionError, match="has not been trained in this process"):
        refit(method.build(SHAPE, REPLICAS), method, TrainingRun(TRAIN, VAL), SHAPE, REPLICAS)
