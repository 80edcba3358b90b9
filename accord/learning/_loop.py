"""The training loop that every method runs through: batches, updates, looks at validation data, checkpoints."""

import hashlib
import math
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Any, Protocol

import torch
from lightning.fabric import Fabric
from torch import Tensor, nn
from torch_geometric.data import Data

from accord.encoders import Noise
from accord.errors import InputError
from accord.graphs import GraphBatch
from accord.learning._adam import ReplicaAdam
from accord.learning._checkpoint import flatten_optimiser, read_checkpoint, restore_optimiser, write_checkpoint
from accord.learning._divergence import finite_replicas, forget_momentum, halt_gradients, warn_of_divergence
from accord.learning._options import PartOptions, TrainingOptions
from accord.learning._replicas import Replicas, learned, owner, spread
from accord.learning._snapshots import Snapshots

Row = dict[str, float]
Report = Callable[[Row], None]
CHECKPOINT = "checkpoint.safetensors"


class Objective(Protocol):
    """What is to be learned: parts with parameters, their losses, and how good they are on validation data."""

    parts: dict[str, nn.Module]
    options: Mapping[str, PartOptions]

    def losses(self, batch: GraphBatch, targets: Tensor, noise: Noise) -> dict[str, Tensor]:
        """Loss of each part [R]; their sum over parts and replicas is minimised."""
        ...

    def scores(self, batch: GraphBatch, targets: Tensor) -> dict[str, Tensor]:
        """Score of each part [R], higher is better: it decides which parameters are kept.

        Parts that are judged together have one score, under another name.
        """
        ...


class Trainer:
    """Minimises an objective on training graphs and keeps what is best on validation graphs.

    Given the options and seeds, the course of a run is fixed by the epoch number alone (dropout is counted, not
    drawn from a stream), so a run that was killed goes on from its last checkpoint as if nothing had happened.

    Args:
        objective: what is to be learned.
        replicas: seeds and tasks.
        options: how to train.
        folder: where to keep a checkpoint.
        report: called with a row of numbers at every look at validation data.
        trained: whether the parts come trained, so that training must beat what they are.
    """

    def __init__(
        self,
        objective: Objective,
        replicas: Replicas,
        options: TrainingOptions,
        folder: Path | None = None,
        report: Report | None = None,
        trained: bool = False,
    ) -> None:
        self.objective, self.replicas, self.options = objective, replicas, options
        self.path = None if folder is None else folder / CHECKPOINT
        self.report = report
        self.history: list[Row] = []
        strategy = "ddp" if options.devices > 1 else "auto"
        self.fabric = Fabric(
            accelerator=options.accelerator,
            strategy=strategy,
            devices=options.devices,
            precision=options.precision,  # type: ignore[arg-type]
        )
        self.fabric.launch()
        self.optimisers: dict[str, ReplicaAdam] = {}
        for name, part in objective.parts.items():
            own = objective.options[name]
            part.to(self.fabric.device)
            self.optimisers[name] = ReplicaAdam(part.parameters(), own.learning_rate, own.weight_decay)
        self.snapshots = {name: Snapshots(part, replicas.count, trained) for name, part in objective.parts.items()}
        self.epoch = 0  # epochs done
        self.stale = torch.zeros(replicas.count, dtype=torch.long)  # looks at validation data since a replica improved
        self.diverged = torch.full((replicas.count,), -1)  # epoch in which a replica was found to have diverged
        self.fingerprint = ""  # of the data, so that a checkpoint is not taken up with other graphs

    def fit(self, train: Sequence[Data], validation: Sequence[Data]) -> None:
        """Train, then put the best parameters of every replica in place."""
        held_out = self._place(GraphBatch.collate(validation))
        self.fingerprint = fingerprint([*train, *validation])
        batches = self._batches(train)
        self._resume()
        with _determinism(self.options.deterministic):
            if not self.history:
                self._look(held_out)
            while self.epoch < self.options.max_epochs and bool(self._running().any()):
                updates = [self._update(self._place(batch), n) for n, batch in enumerate(batches(self.epoch))]
                losses = {name: torch.stack([update[name] for update in updates]).mean(0) for name in updates[0]}
                self.epoch += 1
                looking = self.epoch % self.options.evaluate_every == 0 or self.epoch == self.options.max_epochs
                self._stop_diverged(losses, looking)
                if looking:
                    self._look(held_out, losses)
                if self.epoch % self.options.checkpoint_every == 0 or self.epoch == self.options.max_epochs:
                    self._save()
        for name, part in self.objective.parts.items():
            self.snapshots[name].restore(part)
        warn_of_divergence(self.replicas, self.diverged, {name: kept.epoch for name, kept in self.snapshots.items()})

    def _running(self) -> Tensor:
        """Replicas that have neither diverged nor run out of patience [R]; each for itself."""
        return (self.stale < (self.options.patience or math.inf)) & (self.diverged < 0)

    def _stop_diverged(self, losses: Mapping[str, Tensor], look_at_weights: bool) -> None:
        """Send replicas whose losses (or weights) are no longer finite back to their best parameters, for good."""
        sound = torch.stack(list(losses.values())).isfinite().all(0).cpu()
        if look_at_weights:
            sound &= finite_replicas(self.objective.parts.values(), self.replicas.count)
        lost = ~sound & (self.diverged < 0)
        if bool(lost.any()):
            self.diverged[lost] = self.epoch
            for name, part in self.objective.parts.items():
                self.snapshots[name].restore(part, lost)
                forget_momentum(self.optimisers[name], lost)

    def _place(self, batch: GraphBatch) -> GraphBatch:
        """A batch on the device and in the precision of the networks."""
        return batch.to(self.fabric.device, torch.float32)

    def _batches(self, train: Sequence[Data]) -> Callable[[int], Iterator[GraphBatch]]:
        """Portions of the training graphs by epoch, in an order that depends on the epoch alone and all replicas share.

        Portions that are the same in every epoch (all graphs, or one at a time) are put together once: what encoders
        derive from a batch, such as normalised adjacencies, is kept with it.
        """
        train = self._share(train)
        size = min(self.options.batch_graphs or len(train), len(train))
        fixed = size in (1, len(train))
        pieces = [[graph] for graph in train] if size == 1 else [list(train)]
        ready = [self._place(GraphBatch.collate(piece)) for piece in pieces] if fixed else []

        def portions(epoch: int) -> Iterator[GraphBatch]:
            order = torch.randperm(len(train), generator=torch.Generator().manual_seed(epoch)).tolist()
            if fixed:
                return (ready[index] for index in order if index < len(ready))
            cuts = range(0, len(order), size)
            return (GraphBatch.collate([train[index] for index in order[cut : cut + size]]) for cut in cuts)

        return portions

    def _share(self, train: Sequence[Data]) -> list[Data]:
        """This process's training graphs: every process has as many, so that all make the same number of updates."""
        processes = self.fabric.world_size
        padded = [*train, *train[: -len(train) % processes]]
        return padded[self.fabric.global_rank :: processes]

    def _update(self, batch: GraphBatch, number: int) -> dict[str, Tensor]:
        """One step of every part; returns the losses [R] before it."""
        keys = torch.tensor(self.replicas.keys, device=batch.x.device)
        noise = Noise(keys, self.epoch * 1_000_003 + number)
        for optimiser in self.optimisers.values():
            optimiser.zero_grad()
        with self.fabric.autocast():
            losses = self.objective.losses(batch, self._targets(batch), noise)
        self.fabric.backward(torch.stack([loss.sum() for loss in losses.values()]).sum())
        for name, optimiser in self.optimisers.items():
            self._finish_gradients(list(self.objective.parts[name].parameters()))
            optimiser.step()
        return {name: loss.detach() for name, loss in losses.items()}

    def _finish_gradients(self, parameters: list[nn.Parameter]) -> None:
        """Average over processes, where there are several, clip, and leave alone what has diverged."""
        if self.fabric.world_size > 1:
            for parameter in parameters:
                if parameter.grad is not None:
                    parameter.grad.copy_(self.fabric.all_reduce(parameter.grad, reduce_op="mean"))  # type: ignore[arg-type]
        if self.options.clip_norm is not None:
            clip_gradients(parameters, self.options.clip_norm, self.replicas.count)
        if bool((self.diverged >= 0).any()):
            halt_gradients(parameters, self.diverged >= 0)

    def _targets(self, batch: GraphBatch) -> Tensor:
        if batch.y is None:
            raise InputError("Training and validation graphs need labels: set `y` (-1 where a label is missing).")
        return self.replicas.targets(batch.y)

    @torch.no_grad()
    def _look(self, held_out: GraphBatch, losses: Mapping[str, Tensor] | None = None) -> None:
        """Score every part on validation data, keep what has improved, and tell whoever listens."""
        scores = self.objective.scores(held_out, self._targets(held_out))
        joint, running = next(iter(scores.values())), self._running()
        improved = [
            self.snapshots[name].update(part, scores[name] if name in scores else joint, self.epoch, running)
            for name, part in self.objective.parts.items()
        ]
        self.stale = torch.where(torch.stack(improved).any(0), 0, self.stale + running)
        row: Row = {"epoch": self.epoch}
        row |= {f"{name}_loss": _mean(value) for name, value in (losses or {}).items()}
        row |= {f"{name}_score": _mean(score) for name, score in scores.items()}
        self.history.append(row)
        if self.report is not None and self.fabric.is_global_zero:
            self.report(row)

    def _save(self) -> None:
        if self.path is None or not self.fabric.is_global_zero:
            return
        tensors: dict[str, Tensor] = {}
        for name, part in self.objective.parts.items():
            tensors |= {f"{name}/now/{key}": value for key, value in learned(part).items()}
            tensors |= {f"{name}/best/{key}": value for key, value in self.snapshots[name].best.items()}
            tensors |= {f"{name}/optimiser/{key}": v for key, v in flatten_optimiser(self.optimisers[name]).items()}
            tensors |= {f"{name}/score": self.snapshots[name].score, f"{name}/epoch": self.snapshots[name].epoch}
        course = {"epoch": self.epoch, "stale": self.stale.tolist(), "diverged": self.diverged.tolist()}
        write_checkpoint(self.path, tensors, {**self._identity(), **course, "history": self.history})

    def _identity(self) -> dict[str, Any]:
        """What must agree for a run to go on from a checkpoint."""
        shapes = {n: [list(v.shape) for v in part.parameters()] for n, part in self.objective.parts.items()}
        options = {name: asdict(own) for name, own in self.objective.options.items()}
        return {
            "seeds": list(self.replicas.seeds),
            "tasks": self.replicas.num_tasks,
            "shapes": shapes,
            "options": options,
            "data": self.fingerprint,
        }

    def _resume(self) -> None:
        if self.path is None or not self.path.exists():
            return
        saved = read_checkpoint(self.path)
        if any(saved.values.get(key) != value for key, value in self._identity().items()):
            raise InputError(
                f"{self.path}: this checkpoint belongs to a run with other seeds, settings, graphs or networks. "
                "Choose another folder, or remove the file to start afresh."
            )
        with torch.no_grad():
            for name, part in self.objective.parts.items():
                snapshots, prefix = self.snapshots[name], f"{name}/optimiser/"
                for key, value in learned(part).items():
                    value.copy_(saved.tensors[f"{name}/now/{key}"])
                    snapshots.best[key].copy_(saved.tensors[f"{name}/best/{key}"])
                snapshots.score, snapshots.epoch = saved.tensors[f"{name}/score"], saved.tensors[f"{name}/epoch"]
                own = {k.removeprefix(prefix): v for k, v in saved.tensors.items() if k.startswith(prefix)}
                restore_optimiser(self.optimisers[name], own)
        self.epoch, self.history = saved.values["epoch"], saved.values["history"]
        self.stale, self.diverged = torch.tensor(saved.values["stale"]), torch.tensor(saved.values["diverged"])


@torch.no_grad()
def clip_gradients(parameters: Sequence[nn.Parameter], largest: float, num_replicas: int) -> None:
    """Scale each replica's gradient down to norm `largest`, by its own norm alone."""
    given = [parameter for parameter in parameters if parameter.grad is not None]
    if not given:
        return
    square = torch.zeros(num_replicas, device=given[0].device)
    for parameter in given:
        assert parameter.grad is not None
        mine = owner(parameter)
        if mine is None:
            square += parameter.grad.flatten(1).square().sum(1)
        else:
            square[mine] += parameter.grad.square().sum()
    scale = (largest / square.sqrt().clamp_min(1e-12)).clamp_max(1.0)
    for parameter in given:
        assert parameter.grad is not None
        parameter.grad.mul_(spread(scale, parameter))


def fingerprint(graphs: Sequence[Data]) -> str:
    """A short code for features, edges and labels of graphs."""
    digest = hashlib.sha256()
    for graph in graphs:
        for tensor in (graph.x, graph.edge_index, graph.y):
            if isinstance(tensor, Tensor):
                digest.update(str(tuple(tensor.shape)).encode() + tensor.detach().cpu().contiguous().numpy().tobytes())
    return digest.hexdigest()[:16]


def _mean(values: Tensor) -> float:
    """Over the replicas that have a finite value; 0 where none has."""
    finite = values.double()[values.isfinite()]
    return float(finite.mean()) if finite.numel() else 0.0


@contextmanager
def _determinism(wanted: bool) -> Iterator[None]:
    """Ask torch for the same bits every run, and put its setting back afterwards."""
    before = torch.are_deterministic_algorithms_enabled()
    if wanted:
        os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")  # cuBLAS asks for it; read when CUDA starts
    torch.use_deterministic_algorithms(wanted or before)
    try:
        yield
    finally:
        torch.use_deterministic_algorithms(before)
