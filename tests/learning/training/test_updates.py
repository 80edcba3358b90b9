"""One update gives the same result with the step's number in a tensor, and replayed from a CUDA graph."""

from dataclasses import replace

import pytest
import torch
from learning.training_cases import SHAPE, TRAIN, VAL, made_graphs
from lightning.fabric import Fabric
from torch.testing import assert_close

from accord.encoders import GAT, GCN, GCNII, GraphSAGE, LinearScorer, Noise
from accord.errors import OptionError
from accord.graphs import GraphBatch
from accord.learning import PartOptions, Replicas, TrainingOptions, TrainingRun
from accord.learning.objectives import ProxyObjective
from accord.learning.training import Trainer, learned
from accord.learning.training._cuda_graphs import CudaGraphs
from accord.learning.training._update import Updater
from accord.methods import Shape, SPNRecipe, StructuredProxyNetwork

needs_gpu = pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
REPLICAS = Replicas((3, 4), 1)
ENCODERS = [
    GCN(hidden=8, dropout=0.3),
    GraphSAGE(hidden=8, dropout=0.3, input_dropout=0.2),
    GAT(hidden=4, heads=(2, 2), dropout=0.3, attention_dropout=0.2),
    GCNII(hidden=8, layers=2, dropout=0.3, normalisation="layer"),
]


def recipe_for(encoder, **training):
    return SPNRecipe(
        encoder=encoder,
        edge_encoder=encoder,
        edge_channels=8,
        scorer=LinearScorer(dropout=0.2),
        node=PartOptions(learning_rate=1e-2),
        edge=PartOptions(learning_rate=1e-2),
        training=TrainingOptions(**training),
    )


def objective_for(encoder, replicas=REPLICAS, shape=SHAPE):
    recipe = recipe_for(encoder)
    networks = StructuredProxyNetwork(recipe).build(shape, replicas).networks
    return ProxyObjective(networks, networks.options(recipe.node, recipe.edge), "node")


def weights(objective):
    return {f"{name}/{key}": v.detach().cpu() for name, p in objective.parts.items() for key, v in learned(p).items()}


@pytest.mark.parametrize("encoder", ENCODERS, ids=lambda encoder: encoder.kind)
def test_updates_with_the_step_in_a_tensor_give_the_same_bits(encoder):
    """A CUDA graph records this update; between two replays only the tensor changes."""
    batch = GraphBatch.collate(TRAIN).to("cpu", torch.float32)
    targets, keys, number = REPLICAS.targets(batch.y), torch.tensor(REPLICAS.keys), torch.zeros((), dtype=torch.long)
    plain, recorded = objective_for(encoder), objective_for(encoder)
    for objective in (plain, recorded):
        update = Updater(objective, Fabric(accelerator="cpu", devices=1), 0.5)
        for step in (0, 1_000_003, 2_000_006):
            number.fill_(step)
            losses = update(batch, targets, Noise(keys, step if objective is plain else number))
            assert all(loss.shape == (2,) and not loss.requires_grad for loss in losses.values())
    assert_close(weights(recorded), weights(plain), rtol=0, atol=0)


def test_tf32_is_set_during_training_only(monkeypatch):
    seen = []
    scores = ProxyObjective.scores
    monkeypatch.setattr(
        ProxyObjective, "scores", lambda *a: seen.append(torch.get_float32_matmul_precision()) or scores(*a)
    )
    before = torch.get_float32_matmul_precision()
    options = TrainingOptions(max_epochs=1, accelerator="cpu", precision="tf32")
    trainer = Trainer(objective_for(ENCODERS[0]), REPLICAS, options)
    trainer.fit(TrainingRun(TRAIN, VAL))
    assert set(seen) == {"high"} and torch.get_float32_matmul_precision() == before
    assert trainer.fabric._precision.precision == "32-true"
    with pytest.raises(OptionError, match="precision"):
        replace(options, precision="tf16")
    with pytest.raises(OptionError, match="cuda_graphs"):
        replace(options, cuda_graphs="yes")


@needs_gpu
@pytest.mark.parametrize("precision", ["32-true", "bf16-mixed"])
@pytest.mark.parametrize("encoder", ENCODERS, ids=lambda encoder: encoder.kind)
def test_replayed_training_equals_plain_training(encoder, precision):
    found = []
    graphs = made_graphs(5, 0)
    for cuda_graphs in (False, True):
        options = TrainingOptions(
            max_epochs=12,
            batch_graphs=1,
            accelerator="cuda",
            precision=precision,
            cuda_graphs=cuda_graphs,
            clip_norm=1.0,
        )
        objective = objective_for(encoder)
        trainer = Trainer(objective, REPLICAS, options)
        trainer.fit(TrainingRun(graphs, VAL))
        found.append((weights(objective), trainer.history))
        if cuda_graphs:
            assert trainer.graphs.works and len(trainer.graphs._graphs) == 5 + 2, "updates, scores, check of weights"
    tolerance = 1e-4 if precision == "32-true" else 2e-2
    assert_close(found[1][0], found[0][0], rtol=tolerance, atol=tolerance)
    assert [row["epoch"] for row in found[1][1]] == [row["epoch"] for row in found[0][1]]


@needs_gpu
def test_work_that_cannot_be_recorded_is_done_without(caplog):
    graphs, values = CudaGraphs(torch.device("cuda")), torch.ones(3, device="cuda")
    done = [graphs.run("sum", lambda: float(values.sum())) for _ in range(4)]
    assert done == [3.0] * 4 and not graphs.works
    assert "could not be recorded" in caplog.text


@needs_gpu
def test_training_on_sparse_features_can_be_recorded():
    graphs = made_graphs(4, 0)
    for graph in graphs:
        graph.x = torch.nn.functional.pad(graph.x, (0, 300))
    objective = objective_for(GCN(hidden=8, dropout=0.3, input_dropout=0.3), shape=Shape(303, 3))
    trainer = Trainer(objective, REPLICAS, TrainingOptions(max_epochs=4, accelerator="cuda"))
    trainer.fit(TrainingRun(graphs, graphs))
    assert trainer.graphs.works
