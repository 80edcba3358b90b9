"""For `profile_learning.py`: checks that fast training paths give the results of the plain ones, on a GPU."""

import copy
from collections.abc import Callable

import torch
from fused_checks import DEVICE, Record, check
from torch import Tensor, nn
from torch_geometric.data import Data

from accord.datasets import Benchmark
from accord.encoders import GAT, GCN, GCNII, EncoderSpec, GraphSAGE, LinearScorer
from accord.learning import PartOptions, Replicas, TrainingOptions, TrainingRun
from accord.learning.objectives import ProxyObjective
from accord.learning.training import Job, ReplicaAdam, Trainer, _chunks, _loop, learned, train_in_chunks
from accord.methods import Shape, SPNRecipe, StructuredProxyNetwork

COUNT = 6  # replicas
SPECS: dict[str, EncoderSpec] = {
    "sage": GraphSAGE(hidden=64, dropout=0.3, input_dropout=0.2),
    "gat": GAT(hidden=64, heads=(4, 4, 6), dropout=0.2, attention_dropout=0.1),
    "gcn": GCN(hidden=16, dropout=0.3),
    "gcnii": GCNII(hidden=64, layers=4, normalisation="layer", dropout=0.2),
}
Graphs = tuple[list[Data], list[Data]]


def checkable(bench: Benchmark) -> Graphs:
    """Two training graphs and two validation graphs, with a few labels."""
    some = [Data(x=g.x, edge_index=g.edge_index, y=g.y[:, :COUNT]) for g in (*bench.train[:1], *bench.val[:2])]
    return some[:2], some[1:]


def job_for(encoder: str, graphs: Graphs, **options: object) -> Job:
    spec = SPECS[encoder]
    part = PartOptions(learning_rate=2e-3)
    training = TrainingOptions(**{"max_epochs": 5, "batch_graphs": 1, "accelerator": DEVICE, **options})
    recipe = SPNRecipe(encoder=spec, edge_encoder=spec, scorer=LinearScorer(dropout=0.5), node=part, edge=part)
    replicas = Replicas((1,), COUNT)
    networks = StructuredProxyNetwork(recipe).build(Shape(graphs[0][0].x.shape[1], 2, COUNT), replicas).networks
    objective = ProxyObjective(networks, networks.options(part, part), "node")
    return Job(objective, replicas, training, TrainingRun(*graphs))


def weights(job: Job) -> list[Tensor]:
    return [v.detach().clone() for part in job.objective.parts.values() for v in learned(part).values()]


def losses(trainer: Trainer) -> Tensor:
    return torch.tensor([[row["node_loss"], row["edge_loss"]] for row in trainer.history if "node_loss" in row])


def verdict(record: Record, name: str, ok: bool, note: str = "") -> None:
    record.say(f"{'ok' if ok else 'FAILED':6} {name}{note and f': {note}'}", check=name, ok=ok)


def check_adam(record: Record, _: Graphs) -> None:
    """Fused against the plain equations, and inside a CUDA graph."""
    torch.manual_seed(0)
    start = [torch.randn(5, 300, 7, device=DEVICE), torch.randn(5, 33, device=DEVICE)]
    gradients = [[torch.randn_like(value) for value in start] for _ in range(20)]

    def train(rate: float | Tensor, decay: float | Tensor) -> list[Tensor]:
        parameters = [nn.Parameter(value.clone()) for value in start]
        optimiser = ReplicaAdam(parameters, rate, decay)
        for own in gradients:
            for parameter, gradient in zip(parameters, own, strict=True):
                parameter.grad = gradient.clone()
            optimiser.step()
        return [parameter.detach() for parameter in parameters]

    each = partial_full(5)
    for decay in (0.0, 1e-2):
        check(record, f"fused Adam, decay {decay}", train(1e-2, decay), train(each(1e-2), each(decay)), 1e-6)


def partial_full(count: int) -> Callable[[float], Tensor]:
    return lambda value: torch.full((count,), value, device=DEVICE)


def check_graphs(record: Record, graphs: Graphs) -> None:
    """Whole runs, replayed and eager; dropout must be the same in both."""
    for encoder in SPECS:
        for kind, tolerance in (("32-true", 1e-3), ("bf16-mixed", 5e-2))[: 2 if encoder in ("sage", "gat") else 1]:
            found = []
            for replayed in (False, True, True):
                job = job_for(encoder, graphs, precision=kind, cuda_graphs=replayed, clip_norm=5.0, evaluate_every=1)
                trainer = job.execute()
                found.append((losses(trainer), weights(job)))
                if replayed and DEVICE == "cuda":
                    assert trainer.graphs is not None
                    verdict(record, f"{encoder} {kind}: updates were recorded", trainer.graphs.works)
            check(record, f"{encoder} {kind}: losses, graphs against eager", [found[1][0]], [found[0][0]], tolerance)
            same = all(torch.equal(a, b) for a, b in zip(found[1][1], found[2][1], strict=True))
            verdict(record, f"{encoder} {kind}: same bits in two replayed runs", same)


def check_tf32(record: Record, graphs: Graphs) -> None:
    """A short run in tf32 against float32; the setting is restored afterwards."""
    for encoder in ("sage", "gat"):
        full, rounded = (job_for(encoder, graphs, precision=kind, evaluate_every=1) for kind in ("32-true", "tf32"))
        wanted, found = losses(full.run()), losses(rounded.run())
        check(record, f"{encoder}: losses, tf32 against float32", [found], [wanted], 2e-2)
    verdict(record, "precision of products restored", torch.get_float32_matmul_precision() == "highest")


def check_leaving(record: Record, graphs: Graphs) -> None:
    """Replicas that run out of patience leave without changing any best parameters."""
    options = {"patience": 1, "evaluate_every": 1, "max_epochs": 12}
    job, other = job_for("sage", graphs, **options), job_for("sage", graphs, **options)
    trainer = job.execute()
    share, _loop.LEAVING_SHARE = _loop.LEAVING_SHARE, 2.0
    try:
        other.run()
    finally:
        _loop.LEAVING_SHARE = share
    check(
        record, f"{COUNT - len(trainer.present)} of {COUNT} left: best parameters", weights(job), weights(other), 1e-2
    )


def check_chunks(record: Record, graphs: Graphs) -> None:
    """Chunks planned by measured memory, and chunks after a failed allocation."""
    whole = job_for("sage", graphs)
    whole.run()
    job = job_for("sage", graphs)
    planned, _chunks.PLANNED_FROM = _chunks.PLANNED_FROM, 1
    free, _chunks.available_memory = _chunks.available_memory, lambda device: 10**6
    try:
        train_in_chunks(job)
    finally:
        _chunks.PLANNED_FROM, _chunks.available_memory = planned, free
    check(record, "chunks of one replica: best parameters", weights(job), weights(whole), 1e-2)
    job, original = job_for("sage", graphs), Trainer.train_epoch

    def limited(self: Trainer, batches: object) -> dict[str, Tensor]:
        if self.epoch == 2 and self.replicas.count > 2:
            torch.empty(2**50, device=DEVICE)  # more than there is
        return original(self, batches)  # type: ignore[arg-type]

    Trainer.train_epoch = limited  # type: ignore[method-assign, assignment]
    try:
        train_in_chunks(job)
    finally:
        Trainer.train_epoch = original  # type: ignore[method-assign]
    check(record, "halved after running out of memory: best parameters", weights(job), weights(whole), 1e-2)
    size = _chunks.fitting_replicas(copy.copy(whole))
    verdict(record, "replicas that fit by measurement", size == COUNT, str(size))
