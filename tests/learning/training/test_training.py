"""The training loop: snapshots, early stopping, and replicas that leave the batch."""

import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from learning.training_cases import (
    LEAVING,
    RECIPE,
    SEEDS,
    SHAPE,
    TEST,
    TRAIN,
    VAL,
    fit,
    made_graphs,
    presence,
    same,
    with_training,
)
from support.made_recipes import recipe_for
from torch.testing import assert_close
from torch_geometric.data import Data

from accord.encoders import GCN, Adapter
from accord.errors import DivergenceWarning, InputError, InputTypeError, OptionError
from accord.evaluation import graph_accuracy
from accord.graphs import GraphBatch
from accord.learning import PartOptions, Replicas, hold_out
from accord.learning.objectives import ProxyObjective
from accord.learning.training import _loop, read_checkpoint
from accord.methods import GNN, StructuredProxyNetwork

TESTS = str(Path(__file__).parents[2])


def test_training_lowers_the_loss_and_joint_labels_are_better():
    model = fit(with_training(max_epochs=60))
    losses = [row["node_loss"] for row in model.history if "node_loss" in row]
    assert losses[-1] < losses[0] - 0.1
    test = GraphBatch.collate(TEST)
    alone = graph_accuracy(model.node_logits(test).argmax(-1), test.y[None], test.topology)
    joint = graph_accuracy(model.labels(test), test.y[None], test.topology)
    assert float(joint) > float(alone) + 0.05


def test_the_gnn_alone_is_the_node_network_of_the_spn():
    alone, joint = fit(recipe_for(GNN, vars(RECIPE)), method=GNN), fit()
    same(alone.tensors(), {k: v for k, v in joint.tensors().items() if k.startswith("node/")}, rtol=0, atol=0)


def test_replicas_equal_separate_runs():
    together = fit(seeds=(3, 7, 11)).tensors()
    for place, seed in enumerate((3, 7, 11)):
        alone = fit(seeds=(seed,)).tensors()
        same({k: v[place : place + 1] for k, v in together.items()}, alone, rtol=1e-4, atol=1e-4)


def test_a_replica_does_not_depend_on_the_others():
    one, other = fit(seeds=(3, 7)).tensors(), fit(seeds=(5, 7)).tensors()
    same({k: v[1] for k, v in one.items()}, {k: v[1] for k, v in other.items()}, rtol=1e-4, atol=1e-4)


def test_foreign_modules_train_one_copy_per_replica():
    recipe = replace(RECIPE, encoder=Adapter(Plain))
    together, alone = fit(recipe, seeds=(0, 1)), fit(recipe, seeds=(1,))
    batch = GraphBatch.collate(TEST)
    assert_close(together.node_logits(batch)[1:], alone.node_logits(batch), rtol=1e-4, atol=1e-4)


class Plain(torch.nn.Module):
    def __init__(self, inputs, outputs):
        super().__init__()
        self.map = torch.nn.Linear(inputs, outputs)

    def forward(self, x, edge_index=None):
        return self.map(x)


def test_missing_labels_are_allowed_and_not_counted():
    model = fit(train=made_graphs(40, 0, missing=0.4), val=made_graphs(20, 1, missing=0.4))
    assert all(value.isfinite().all() for name, value in model.tensors().items())
    with pytest.raises(InputError, match="need labels"):
        fit(train=[Data(x=graph.x, edge_index=graph.edge_index) for graph in TRAIN])


def test_early_stopping_ends_the_run():
    model = fit(with_training(max_epochs=2000, patience=3))
    assert model.history[-1]["epoch"] < 2000


def test_batches_contain_every_graph():
    full, batches = fit(with_training(max_epochs=5)), fit(with_training(max_epochs=5, batch_graphs=7))
    assert batches.history[-1]["node_loss"] < full.history[-1]["node_loss"]  # six updates per epoch instead of one


def test_each_network_has_its_learning_rate():
    base = fit(with_training(max_epochs=1, evaluate_every=1)).tensors()
    faster = replace(with_training(max_epochs=1, evaluate_every=1), edge=PartOptions(learning_rate=2e-1))
    other = fit(faster).tensors()
    for name in base:
        if name.startswith("node/"):
            assert_close(other[name], base[name], rtol=0, atol=0)
    assert any(not torch.equal(other[name], base[name]) for name in base if name.startswith("edge/"))


def test_snapshots_are_the_best_on_validation(tmp_path):
    model = fit(with_training(max_epochs=40, evaluate_every=2), folder=tmp_path)
    held_out = GraphBatch.collate(VAL)
    score = graph_accuracy(model.node_logits(held_out).argmax(-1), held_out.y[None], held_out.topology)
    assert float(score) == pytest.approx(max(row["node_score"] for row in model.history))


def test_one_encoder_can_serve_both(tmp_path):
    recipe = replace(RECIPE, shared=True, encoder=GCN(hidden=8, layers=2))
    model = fit(recipe, seeds=(0, 1))
    assert list(model.parts) == ["shared"]
    test = GraphBatch.collate(TEST)
    alone = graph_accuracy(model.node_logits(test).argmax(-1), test.y[None], test.topology)
    assert bool((graph_accuracy(model.labels(test), test.y[None], test.topology) >= alone - 0.05).all())
    again = StructuredProxyNetwork(recipe, "graph").build(SHAPE, Replicas((0, 1)))
    again.load(model.tensors(), model.choice())
    assert torch.equal(again.labels(test), model.labels(test))
    same(fit(recipe, seeds=(1,)).tensors(), {k: v[1:] for k, v in model.tensors().items()}, rtol=1e-4, atol=1e-4)


def test_mixed_precision_trains_to_about_the_same():
    half = fit(with_training(precision="bf16-mixed"))
    test = GraphBatch.collate(TEST)
    gap = graph_accuracy(half.labels(test), test.y[None], test.topology) - graph_accuracy(
        fit().labels(test), test.y[None], test.topology
    )
    assert abs(float(gap)) < 0.2
    assert all(value.isfinite().all() for value in half.tensors().values())


def test_hold_out_splits_graphs_or_the_nodes_of_one():
    train, val = hold_out(TRAIN, seed=0)
    assert len(train) == 32 and len(val) == 8
    assert not {id(graph) for graph in train} & {id(graph) for graph in val}
    (train,), (val,) = hold_out(TRAIN[:1], seed=0)
    known, held = train.y >= 0, val.y >= 0
    assert not bool((known & held).any()) and bool((known | held).all()) and int(held.sum()) >= 1


def test_several_processes_divide_the_graphs_and_agree(tmp_path):
    """Two processes on the CPU: gradients are averaged, so both end with the same networks."""
    script = tmp_path / "two.py"
    script.write_text(
        "import sys, torch; from pathlib import Path; sys.path[:0] = [sys.argv[1]]\n"
        "from learning.training_cases import StructuredProxyNetwork, TRAIN, VAL, SHAPE, with_training\n"
        "from accord.learning.training import Replicas, TrainingRun, write_checkpoint\n"
        "method = StructuredProxyNetwork(with_training(devices=2, max_epochs=10), 'graph')\n"
        "model, group = method.fit(TrainingRun(TRAIN, VAL), SHAPE, Replicas((0,))), torch.distributed\n"
        "path = Path(sys.argv[2]) / f'{group.get_rank()}.safetensors'\n"
        "write_checkpoint(path, model.tensors(), {'world': group.get_world_size()})\n"
    )
    command = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2"]
    command += [str(script), TESTS, str(tmp_path)]
    done = subprocess.run(
        command, capture_output=True, text=True, timeout=240, env={**os.environ, "OMP_NUM_THREADS": "1"}
    )
    assert done.returncode == 0, done.stderr[-2000:]
    first, second = (read_checkpoint(tmp_path / f"{rank}.safetensors") for rank in (0, 1))
    assert first.values == {"world": 2}
    same(first.tensors, second.tensors, rtol=0, atol=0)
    # The mean gradient of two halves of twenty graphs is nearly the gradient of all forty.
    whole = fit(with_training(max_epochs=10)).tensors()
    name = next(name for name in whole if name.startswith("node/"))
    assert float((first.tensors[name] - whole[name].detach()).abs().max()) < 0.2


def edgeless(graphs):
    return [Data(x=g.x, edge_index=torch.empty(2, 0, dtype=torch.long), y=g.y) for g in graphs]


def test_without_a_validation_score_the_latest_networks_are_kept():
    """No validation edge scores the edge network; its latest weights are kept, not the first ones."""
    for recipe in (RECIPE, replace(RECIPE, shared=True)):
        start = StructuredProxyNetwork(recipe, "graph").build(SHAPE, Replicas((0,))).tensors()
        model = fit(recipe, val=edgeless(VAL)).tensors()
        names = [name for name in start if "scorer" in name]
        assert names and all(not torch.equal(model[name], start[name]) for name in names)
        assert all(value.isfinite().all() for value in model.values())


def test_untrained_networks_win_no_tie():
    easy = [Data(x=g.x, edge_index=g.edge_index, y=torch.zeros_like(g.y)) for g in TRAIN]
    start = StructuredProxyNetwork(RECIPE, "node").build(SHAPE, Replicas((0,))).tensors()
    one = [Data(x=g.x, edge_index=g.edge_index, y=torch.zeros_like(g.y)) for g in VAL]
    model = fit(train=easy, val=one).tensors()
    assert all(not torch.equal(model[k], start[k]) for k in start if "encoder" in k and "weight" in k)


@pytest.mark.parametrize("changes", [{"clip_norm": 0.05}, {"patience": 2, "max_epochs": 120, "evaluate_every": 2}])
def test_clipping_and_patience_apply_to_each_replica_alone(changes):
    recipe = with_training(**changes)
    together, alone = fit(recipe, seeds=(5, 3, 8)).tensors(), fit(recipe, seeds=(3,)).tensors()
    same({k: v[1:2] for k, v in together.items()}, alone, rtol=1e-4, atol=1e-4)


def test_features_of_any_float_type_train_the_same():
    double = [Data(x=g.x.double(), edge_index=g.edge_index, y=g.y) for g in TRAIN]
    same(fit(train=double).tensors(), fit().tensors(), rtol=0, atol=0)


def test_bad_recipes_are_refused():
    for changes in ({"encoder": 7}, {"scorer": "linear"}, {"training": None}, {"shared": "yes"}):
        with pytest.raises(InputTypeError, match="Recipe"):
            replace(RECIPE, **changes)
    for changes in ({"consistency": "abc"}, {"damping": 1.0}, {"edge_channels": 0}, {"selection": "luck"}):
        with pytest.raises(OptionError, match="Recipe"):
            replace(RECIPE, **changes)


def test_finished_replicas_leave_without_changing_results(monkeypatch):
    counts = presence(monkeypatch)
    left = fit(LEAVING, seeds=SEEDS)
    assert counts[0] == 5 and 1 <= counts[-1] < 5 and counts == sorted(counts, reverse=True)
    monkeypatch.setattr(_loop, "LEAVING_SHARE", 2.0)
    stayed = fit(LEAVING, seeds=SEEDS)
    same(left.tensors(), stayed.tensors(), rtol=1e-4, atol=1e-4)
    for ours, theirs in zip(left.history, stayed.history, strict=True):
        assert ours == pytest.approx(theirs, abs=1e-3)
    for place, seed in enumerate(SEEDS):
        same(
            {k: v[place : place + 1] for k, v in left.tensors().items()},
            fit(LEAVING, seeds=(seed,)).tensors(),
            rtol=1e-4,
            atol=1e-4,
        )


def test_diverged_replicas_leave_too(monkeypatch):
    """The loss of one of three replicas is NaN from the tenth step on."""
    losses, counts = ProxyObjective.losses, presence(monkeypatch)

    def broken(self, batch, targets, noise):
        found = losses(self, batch, targets, noise)
        bad = (noise.seeds == 3) & (noise.step >= 10 * 1_000_003)
        return {name: torch.where(bad, torch.nan, loss) for name, loss in found.items()}

    monkeypatch.setattr(ProxyObjective, "losses", broken)
    with pytest.warns(DivergenceWarning, match="seed 3 in epoch 11"):
        together = fit(seeds=(5, 3, 8)).tensors()
    assert counts[0] == 3 and counts[-1] == 2
    same({k: v[2:] for k, v in together.items()}, fit(seeds=(8,)).tensors(), rtol=1e-4, atol=1e-4)
    assert all(value.isfinite().all() for name, value in together.items())
