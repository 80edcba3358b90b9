"""The loop: snapshots, early stopping, resuming after a kill, and eyes kept off test data."""

import json
import os
import signal
import subprocess
import sys
import time
from dataclasses import replace

import pytest
import torch
from learning.training_cases import SHAPE, TEST, TRAIN, VAL, made_graphs
from torch.testing import assert_close
from torch_geometric.data import Data

from accord.encoders import GCN, MLP, Adapter, LinearScorer
from accord.errors import DivergenceWarning, InputError, InputTypeError, OptionError
from accord.evaluation import graph_accuracy
from accord.field import Combination, Pseudomarginals
from accord.graphs import GraphBatch
from accord.inference import propagate
from accord.learning import (
    CombinationGrid,
    PartOptions,
    ProxyObjective,
    Replicas,
    Trainer,
    TrainingOptions,
    _loop,
    choose_combination,
    hold_out,
    node_loss,
    read_checkpoint,
    write_checkpoint,
)
from accord.methods import GNN, Recipe, StructuredProxyNetwork

TESTS = os.path.dirname(os.path.dirname(__file__))
RECIPE = Recipe(
    encoder=MLP(hidden=8, layers=2, dropout=0.2),
    edge_encoder=GCN(hidden=8, layers=2, dropout=0.2),
    edge_channels=8,
    scorer=LinearScorer(dropout=0.2),
    node=PartOptions(learning_rate=2e-2),
    edge=PartOptions(learning_rate=2e-2),
    training=TrainingOptions(max_epochs=30, accelerator="cpu"),
    grid=CombinationGrid(sharpness=(1.0, 0.5, 0.0), power=(1.0, 0.5), node_weight=(1.0,)),
)


def fit(recipe=RECIPE, seeds=(0,), train=TRAIN, val=VAL, folder=None, method=StructuredProxyNetwork):
    return method(recipe, "graph").fit(train, val, SHAPE, Replicas(seeds), folder)


def with_training(**changes):
    return replace(RECIPE, training=replace(RECIPE.training, **changes))


def same(left, right, **tolerance):
    assert left.keys() == right.keys()
    for name in left:
        assert_close(left[name], right[name], equal_nan=True, **tolerance)


def test_learning_lowers_the_loss_and_joint_labels_pay():
    model = fit(with_training(max_epochs=60))
    losses = [row["node_loss"] for row in model.history if "node_loss" in row]
    assert losses[-1] < losses[0] - 0.1
    test = GraphBatch.collate(TEST)
    alone = graph_accuracy(model.node_logits(test).argmax(-1), test.y[None], test.topology)
    joint = graph_accuracy(model.labels(test), test.y[None], test.topology)
    assert float(joint) > float(alone) + 0.05


def test_the_gnn_alone_is_the_node_network_of_the_spn():
    alone, joint = fit(method=GNN), fit()
    same(alone.tensors(), {k: v for k, v in joint.tensors().items() if k.startswith("node/")}, rtol=0, atol=0)


def test_replicas_equal_separate_runs():
    together = fit(seeds=(3, 7, 11)).tensors()
    for place, seed in enumerate((3, 7, 11)):
        alone = fit(seeds=(seed,)).tensors()
        same({k: v[place : place + 1] for k, v in together.items()}, alone, rtol=1e-4, atol=1e-4)


def test_a_replica_does_not_mind_its_companions():
    one, other = fit(seeds=(3, 7)).tensors(), fit(seeds=(5, 7)).tensors()
    same({k: v[1] for k, v in one.items()}, {k: v[1] for k, v in other.items()}, rtol=1e-4, atol=1e-4)


def test_foreign_modules_train_one_copy_a_replica():
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


def test_missing_labels_train_and_are_not_counted():
    model = fit(train=made_graphs(40, 0, missing=0.4), val=made_graphs(20, 1, missing=0.4))
    assert all(value.isfinite().all() for name, value in model.tensors().items())
    with pytest.raises(InputError, match="need labels"):
        fit(train=[Data(x=graph.x, edge_index=graph.edge_index) for graph in TRAIN])


def test_early_stopping_ends_the_run():
    model = fit(with_training(max_epochs=2000, patience=3))
    assert model.history[-1]["epoch"] < 2000


def test_batches_of_graphs_see_every_graph():
    full, portions = fit(with_training(max_epochs=5)), fit(with_training(max_epochs=5, batch_graphs=7))
    assert portions.history[-1]["node_loss"] < full.history[-1]["node_loss"]  # six updates an epoch, not one


def test_the_two_learning_rates_both_act():
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


def test_interrupted_runs_go_on_as_if_nothing_had_happened(tmp_path):
    whole = fit(seeds=(0, 1))
    fit(with_training(max_epochs=20), seeds=(0, 1), folder=tmp_path)
    resumed = fit(seeds=(0, 1), folder=tmp_path)
    same(resumed.tensors(), whole.tensors(), rtol=0, atol=0)
    assert resumed.history == whole.history


def test_killed_runs_resume_to_the_same_result(tmp_path):
    script = (
        "import sys, time, json; from pathlib import Path; sys.path[:0] = json.loads(sys.argv[2])\n"
        "from learning.test_training import StructuredProxyNetwork, TRAIN, VAL, SHAPE, Replicas, with_training\n"
        "method = StructuredProxyNetwork(with_training(checkpoint_every=1), 'graph')\n"
        "method.fit(TRAIN, VAL, SHAPE, Replicas((0,)), Path(sys.argv[1]), lambda row: time.sleep(0.3))\n"
    )
    paths = json.dumps([TESTS])
    process = subprocess.Popen([sys.executable, "-c", script, str(tmp_path), paths])
    checkpoint = tmp_path / "checkpoint.safetensors"
    deadline = time.time() + 120
    while time.time() < deadline and process.poll() is None:
        if checkpoint.exists() and read_checkpoint(checkpoint).values["epoch"] >= 7:
            break
        time.sleep(0.05)
    process.send_signal(signal.SIGKILL)
    process.wait()
    assert 7 <= read_checkpoint(checkpoint).values["epoch"] < 30, "it was to be killed on the way"
    resumed = fit(with_training(checkpoint_every=1), folder=tmp_path)
    whole = fit()
    assert resumed.history == whole.history
    same(resumed.tensors(), whole.tensors(), rtol=0, atol=0)


def test_checkpoints_of_other_runs_are_refused(tmp_path):
    fit(with_training(max_epochs=10), folder=tmp_path)
    with pytest.raises(InputError, match="other seeds"):
        fit(seeds=(1,), folder=tmp_path)
    (tmp_path / "checkpoint.safetensors").write_bytes(b"not a checkpoint")
    with pytest.raises(InputError, match="not a checkpoint"):
        fit(folder=tmp_path)


def test_a_failed_write_leaves_the_old_checkpoint(tmp_path, monkeypatch):
    path = tmp_path / "c.safetensors"
    write_checkpoint(path, {"a": torch.ones(2)}, {"epoch": 1})
    monkeypatch.setattr(os, "replace", lambda *_: (_ for _ in ()).throw(OSError("disk gone")))
    with pytest.raises(OSError):
        write_checkpoint(path, {"a": torch.zeros(2)}, {"epoch": 2})
    assert read_checkpoint(path).values == {"epoch": 1} and read_checkpoint(path).tensors["a"].eq(1).all()


def test_candidates_as_replicas_equal_candidates_one_by_one():
    model = fit(seeds=(0, 1))
    held_out = GraphBatch.collate(VAL)
    node, edge = model.node_logits(held_out), model.edge_logits(held_out)
    targets = held_out.y[None].expand(2, -1)

    def choose(grid):
        return choose_combination(node, edge, targets, held_out.topology, "graph", grid, RECIPE.damping)

    together = choose(RECIPE.grid)
    alone = [
        choose(CombinationGrid(sharpness=(s,), power=(p,), node_weight=(w,))).score
        for s, p, w, *_ in RECIPE.grid.candidates()
    ]
    assert_close(together.score, torch.stack(alone).amax(0))


WIDE = CombinationGrid(
    sharpness=(1.0, 0.5),
    power=(1.0,),
    node_weight=(1.0,),
    normaliser=("own", "node"),
    appearance=(1.0, 0.5, "spanning"),
    semiring=("max", "sum"),
    sweeps=(3, 20),
)


def test_every_way_to_solve_is_a_candidate_of_its_own():
    """The winner's labels, solved by hand as it says, give its score."""
    model = fit(replace(RECIPE, grid=WIDE), seeds=(0, 1))
    held_out = GraphBatch.collate(VAL)
    assert len(WIDE.candidates()) == 48
    for place in range(2):
        own = {name: float(values[place]) for name, values in model.chosen.tensors().items()}
        node, edge = (logits[place] for logits in model.logits(held_out))
        combination = Combination(
            normaliser="node" if own["node_share"] else "own", power=own["power"], node_weight=own["node_weight"]
        )
        topology = held_out.topology
        field = combination.field(
            Pseudomarginals.from_logits(node, edge, own["sharpness"]), topology.edge_index, topology.graph
        )
        beliefs = propagate(
            field,
            semiring=("max", "sum")[int(own["semiring"])],
            damping=0.5,
            edge_appearance=own["appearance"] or "spanning",
            max_sweeps=int(own["sweeps"]),
        )
        score = graph_accuracy(beliefs.decode(), held_out.y, topology)
        assert float(score) == pytest.approx(own["score"])
        assert float(graph_accuracy(model.labels(held_out)[place], held_out.y, topology)) == pytest.approx(own["score"])


def test_unknown_candidates_are_refused():
    for changes in (
        {"normaliser": ("rows",)},
        {"semiring": ("min",)},
        {"appearance": ("tree",)},
        {"appearance": (0.0,)},
        {"power": ()},
        {"sharpness": 3.0},
        {"node_weight": (-1.0,)},
    ):
        with pytest.raises(OptionError, match="CombinationGrid"):
            replace(WIDE, **changes)


def test_fitting_the_combination_makes_validation_labels_more_likely():
    plain, fitted = fit(), fit(replace(RECIPE, selection="likelihood"))
    held_out = GraphBatch.collate(VAL)
    untouched = replace(RECIPE, grid=CombinationGrid(sharpness=(1.0,), power=(1.0,), node_weight=(1.0,)))
    losses = [
        float(node_loss(model.beliefs(held_out, "sum").node, held_out.y[None])) for model in (fit(untouched), fitted)
    ]
    assert losses[1] < losses[0] - 0.01
    same(
        {k: v for k, v in plain.tensors().items() if not k.startswith("chosen")},
        {k: v for k, v in fitted.tensors().items() if not k.startswith("chosen")},
        rtol=0,
        atol=0,
    )


def test_one_encoder_can_serve_both(tmp_path):
    recipe = replace(RECIPE, shared=True, encoder=GCN(hidden=8, layers=2))
    model = fit(recipe, seeds=(0, 1))
    assert list(model.parts) == ["shared"]
    test = GraphBatch.collate(TEST)
    alone = graph_accuracy(model.node_logits(test).argmax(-1), test.y[None], test.topology)
    assert bool((graph_accuracy(model.labels(test), test.y[None], test.topology) >= alone - 0.05).all())
    again = StructuredProxyNetwork(recipe, "graph").build(SHAPE, Replicas((0, 1)))
    again.load(model.tensors())
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


def test_several_processes_share_the_graphs_and_agree(tmp_path):
    """Two processes on the CPU: gradients are averaged, so both end with the same networks."""
    script = tmp_path / "two.py"
    script.write_text(
        "import sys, torch; from pathlib import Path; sys.path[:0] = [sys.argv[1]]\n"
        "from learning.test_training import StructuredProxyNetwork, TRAIN, VAL, SHAPE, Replicas, with_training\n"
        "from accord.learning import write_checkpoint\n"
        "method = StructuredProxyNetwork(with_training(devices=2, max_epochs=10), 'graph')\n"
        "model, group = method.fit(TRAIN, VAL, SHAPE, Replicas((0,))), torch.distributed\n"
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
    # Forty graphs split in two halves of equal size: the average gradient is nearly that of all of them.
    whole = fit(with_training(max_epochs=10)).tensors()
    name = next(name for name in whole if name.startswith("node/"))
    assert float((first.tensors[name] - whole[name].detach()).abs().max()) < 0.2


def edgeless(graphs):
    return [Data(x=g.x, edge_index=torch.empty(2, 0, dtype=torch.long), y=g.y) for g in graphs]


def test_validation_data_that_cannot_tell_keep_the_latest_networks():
    """No edge to score the edge network by: what was learned is kept all the same, not the start."""
    for recipe in (RECIPE, replace(RECIPE, shared=True)):
        start = StructuredProxyNetwork(recipe, "graph").build(SHAPE, Replicas((0,))).tensors()
        model = fit(recipe, val=edgeless(VAL)).tensors()
        names = [name for name in start if "scorer" in name]
        assert names and all(not torch.equal(model[name], start[name]) for name in names)
        assert all(value.isfinite().all() for name, value in model.items() if name != "chosen/score")


def test_untrained_networks_win_no_tie():
    easy = [Data(x=g.x, edge_index=g.edge_index, y=torch.zeros_like(g.y)) for g in TRAIN]
    start = StructuredProxyNetwork(RECIPE, "node").build(SHAPE, Replicas((0,))).tensors()
    one = [Data(x=g.x, edge_index=g.edge_index, y=torch.zeros_like(g.y)) for g in VAL]
    model = fit(train=easy, val=one).tensors()
    assert all(not torch.equal(model[k], start[k]) for k in start if "encoder" in k and "weight" in k)


@pytest.mark.parametrize("changes", [{"clip_norm": 0.05}, {"patience": 2, "max_epochs": 120, "evaluate_every": 2}])
def test_clipping_and_patience_are_a_replicas_own_affair(changes):
    recipe = with_training(**changes)
    together, alone = fit(recipe, seeds=(5, 3, 8)).tensors(), fit(recipe, seeds=(3,)).tensors()
    same({k: v[1:2] for k, v in together.items()}, alone, rtol=1e-4, atol=1e-4)


def test_checkpoints_of_other_data_or_settings_are_refused(tmp_path):
    fit(with_training(max_epochs=10), folder=tmp_path)
    turned = [Data(x=g.x, edge_index=g.edge_index, y=(g.y + 1) % 3) for g in TRAIN]
    with pytest.raises(InputError, match="other seeds, settings, graphs"):
        fit(train=turned, folder=tmp_path)
    with pytest.raises(InputError, match="other seeds, settings, graphs"):
        fit(replace(RECIPE, node=PartOptions(learning_rate=1e-3)), folder=tmp_path)


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


LEAVING = with_training(patience=2, max_epochs=120, evaluate_every=2)
SEEDS = (5, 3, 8, 11, 2)


def presence(monkeypatch):
    """How many replicas were in the batch, at each look at validation data."""
    counts, look = [], Trainer._look
    monkeypatch.setattr(Trainer, "_look", lambda self, *a: counts.append(len(self.present)) or look(self, *a))
    return counts


def test_finished_replicas_leave_and_nobody_notices(monkeypatch):
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


def test_interrupted_runs_remember_who_has_left(tmp_path, monkeypatch):
    counts = presence(monkeypatch)
    whole = fit(LEAVING, seeds=SEEDS)
    half = 2 * next(number for number, count in enumerate(counts) if count < 5) + 2  # epochs; somebody has left by then
    stopped = replace(LEAVING, training=replace(LEAVING.training, max_epochs=half))
    fit(stopped, seeds=SEEDS, folder=tmp_path)
    assert len(read_checkpoint(tmp_path / "checkpoint.safetensors").values["present"]) < 5
    resumed = fit(LEAVING, seeds=SEEDS, folder=tmp_path)
    same(resumed.tensors(), whole.tensors(), rtol=0, atol=0)
    assert resumed.history == whole.history


def test_diverged_replicas_leave_too(monkeypatch):
    """One of three: its loss is not a number from the tenth step on."""
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
