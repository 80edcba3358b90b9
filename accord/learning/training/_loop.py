"""The training loop of every method: batches, updates, evaluations on validation data, checkpoints."""

import json
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict
from itertools import chain
from pathlib import Path
from typing import Any

import torch
from torch import Tensor
from torch_geometric.data import Data

from accord._files import fingerprint
from accord.encoders import Noise
from accord.encoders.scorers.triangles import TriangleScorer
from accord.errors import InputError
from accord.graphs import GraphBatch, fingerprint_graphs
from accord.learning.training._adam import ReplicaAdam
from accord.learning.training._checkpoint import (
    Saved,
    check_tensors,
    flatten_optimiser,
    read_checkpoint,
    restore_optimiser,
    write_checkpoint,
)
from accord.learning.training._cuda_graphs import CudaGraphs, Result
from accord.learning.training._divergence import finite_replicas, forget_momentum, warn_of_divergence
from accord.learning.training._graphs import Batches, check_batches, cluster_batches, training_batches
from accord.learning.training._options import TrainingOptions
from accord.learning.training._replicas import Replicas, cut, learned
from accord.learning.training._run import HistoryRow, Report, TrainingRun
from accord.learning.training._settings import determinism, kept_memory, product_precision
from accord.learning.training._snapshots import Snapshots
from accord.learning.training._update import Objective, Updater, is_separable
from accord.learning.training._weights import StateWeights
from accord.learning.training.processes import make_fabric, processes_of

CHECKPOINT = "checkpoint.safetensors"
RESUMABLE = ("batch_graphs", "evaluate_every", "patience", "clip_norm", "precision")  # must agree with a checkpoint
LEAVING_SHARE = 0.25  # of a batch must have finished before it is cut: CUDA graphs are recorded anew after that
EPOCH_STRIDE = 1_000_003  # keeps the steps of different epochs apart in the noise


class Trainer:
    """Minimises an objective on training graphs and keeps the parameters that are best on validation graphs.

    Given options and seeds, what an epoch does depends on its number alone (dropout is computed from a counter, not
    drawn from a stream), so a run that was killed continues from its last checkpoint to the same result. Replicas that
    have finished (no patience left, or diverged) leave the batch once a quarter of it has finished.

    Args:
        objective: what is to be learned.
        replicas: seeds and tasks.
        options: how to train.
        trained: whether the parts are trained already; training then must improve on them.
    """

    def __init__(
        self, objective: Objective, replicas: Replicas, options: TrainingOptions, trained: bool = False
    ) -> None:
        self.objective, self.replicas, self.options = objective, replicas, options
        self.path: Path | None = None  # of the checkpoint
        self.report: Report | None = None
        self.history: list[HistoryRow] = []
        self.fabric = make_fabric(options)
        self.processes = processes_of(self.fabric)
        self.dtype = torch.float64 if options.precision == "64-true" else torch.float32  # of the networks
        for part in objective.parts.values():
            part.to(self.fabric.device)
        self._convert(self.dtype)
        self.updater = Updater(objective, self.fabric, options.clip_norm)
        self.snapshots = {name: Snapshots(part, replicas.count, trained) for name, part in objective.parts.items()}
        self.epoch = 0  # epochs done
        self.stale = torch.zeros(replicas.count, dtype=torch.long)  # evaluations since a replica improved
        self.diverged = torch.full((replicas.count,), -1)  # epoch in which a replica was found to diverge; -1 for none
        self.last: dict[str, Tensor] = {}  # [R], losses and scores of each replica while it was running
        self.fingerprint = ""  # of the data, so that no run resumes with other graphs
        self.weights: StateWeights | None = None  # of training labels, for each task
        self.origin: str | None = None  # fingerprint of weights that training goes on from
        self.present = torch.arange(replicas.count)  # replicas that have not left the batch
        self.step = torch.zeros((), dtype=torch.long, device=self.fabric.device)
        self.graphs = self._make_graphs()
        self._update_present()

    @property
    def optimisers(self) -> dict[str, ReplicaAdam]:
        """One for each part."""
        return self.updater.optimisers

    @property
    def kept(self) -> dict[str, Tensor]:
        """The epoch of the parameters that were kept [R], for each part; -1 where none were."""
        return {name: snapshots.epoch for name, snapshots in self.snapshots.items()}

    def fit(self, run: TrainingRun, only: Sequence[int] | None = None) -> None:
        """Train, then put the best parameters of every replica in place.

        Args:
            run: graphs, checkpoint folder and callback.
            only: numbers of the replicas to train; the others stay as the checkpoint has them. None trains all.
        """
        self.path = None if run.folder is None else run.folder / CHECKPOINT
        self.report = run.report
        held_out = self._place(GraphBatch.collate(run.validation))
        self.fingerprint = fingerprint_graphs(chain(run.train, run.validation))
        self.origin = None if run.start is None else _fingerprint(run.start)
        self.weights = run.weights
        self._update_present()
        self._agree()
        batches = self.batches(run.train)
        self._resume()
        staying = [place for place, number in enumerate(self.present.tolist()) if only is None or number in only]
        if len(staying) < len(self.present):
            self._keep(torch.tensor(staying))
        options, device = self.options, self.fabric.device
        with determinism(options.deterministic), product_precision(options.precision), kept_memory(device):
            if not self.history:
                self._evaluate(held_out)
            while self.epoch < self.options.max_epochs and bool(self._running().any()):
                losses = self.train_epoch(batches(self.epoch))
                self.epoch += 1
                evaluating = self._is_due()
                self._stop_diverged(losses, check_weights=evaluating)
                if evaluating:
                    self._evaluate(held_out, losses)
                    self._remove_finished()
                if self.epoch % self.options.checkpoint_every == 0 or self.epoch == self.options.max_epochs:
                    self._save()
        for name, part in self.objective.parts.items():
            self.snapshots[name].restore(part)
        self._convert(torch.float32)
        warn_of_divergence(self.replicas, self.diverged, {name: kept.epoch for name, kept in self.snapshots.items()})

    def train_epoch(self, batches: Iterator[tuple[GraphBatch, bool]]) -> dict[str, Tensor]:
        """One pass over the training graphs; mean losses of the replicas that are present."""
        totals: dict[str, Tensor] = {}
        number = -1
        for number, (batch, fixed) in enumerate(batches):
            for name, loss in self._update(self._place(batch), number, fixed).items():
                totals[name] = totals[name] + loss if name in totals else loss.clone()
        return {name: total / (number + 1) for name, total in totals.items()}

    def _update(self, batch: GraphBatch, number: int, fixed: bool) -> dict[str, Tensor]:
        """One step of every part; returns the losses before it. The next step may overwrite them."""
        step, targets = self.epoch * EPOCH_STRIDE + number, self._targets(batch)
        if self.graphs is None or not fixed:
            return self.updater(batch, targets, Noise(self.keys, step, batch.share))
        self.step.fill_(step)
        return self.graphs.run(id(batch), lambda: self.updater(batch, targets, Noise(self.keys, self.step)))

    def _is_due(self) -> bool:
        """Whether an evaluation follows the epochs done."""
        return self.epoch % self.options.evaluate_every == 0 or self.epoch == self.options.max_epochs

    def _running(self) -> Tensor:
        """Replicas that have neither diverged nor run out of patience [R]."""
        return (self.stale < (self.options.patience or math.inf)) & (self.diverged < 0)

    def _stop_diverged(self, losses: Mapping[str, Tensor], check_weights: bool) -> None:
        """Stop replicas whose losses (or weights) are no longer finite; they return to their best parameters."""
        parts, count = self.objective.parts, len(self.present)
        finite = torch.stack(list(losses.values())).isfinite().all(0).cpu()
        if check_weights:
            finite &= self._replayed("weights", lambda: finite_replicas(parts.values(), count)).cpu()
        lost = ~finite & (self.diverged[self.present] < 0)
        if bool(lost.any()):
            self.diverged[self.present[lost]] = self.epoch
            for name, part in parts.items():
                self.snapshots[name].send_back(part, lost, self.present)
                forget_momentum(self.optimisers[name], lost)
            self._update_present()

    def _remove_finished(self) -> None:
        """Remove replicas that have finished from the batch, once there are enough of them to be worth it."""
        staying = self._running()[self.present]
        gone = int((~staying).sum())
        worth_it = gone >= LEAVING_SHARE * len(staying) and bool(staying.any())
        if gone and worth_it and is_separable(self.objective):
            self._keep(staying.nonzero().flatten())

    def _keep(self, places: Tensor) -> None:
        """Continue with some of the replicas that are present."""
        for name, part in self.objective.parts.items():
            cut(part, places)
            self.optimisers[name].keep(places)
        self.present = self.present[places]
        self._update_present()

    def _update_present(self) -> None:
        """Note which replicas are present and which are halted; recorded CUDA graphs become invalid."""
        device = self.fabric.device
        self.now = self.replicas.subset(self.present.tolist())
        self.keys = torch.tensor(self.now.keys, device=device)
        halted = self.diverged[self.present] >= 0
        self.updater.halted = halted.to(device) if bool(halted.any()) else None
        self.objective.weights = None if self.weights is None else self.weights.of_replicas(self.now, device)
        if self.graphs is not None:
            self.graphs.forget()

    def _make_graphs(self) -> CudaGraphs | None:
        """The recorder of CUDA graphs, where updates can be recorded and the options ask for it."""
        single_gpu = self.fabric.device.type == "cuda" and self.fabric.world_size == 1
        wanted = self.options.cuda_graphs and single_gpu and is_separable(self.objective)
        return CudaGraphs(self.fabric.device) if wanted else None

    def _replayed(self, key: str, work: Callable[[], Result]) -> Result:
        """Do work that is the same every time; it is recorded and replayed where that is possible."""
        return work() if self.graphs is None else self.graphs.run(key, work)

    def _place(self, batch: GraphBatch) -> GraphBatch:
        """A batch on the device and in the precision of the networks."""
        return batch.to(self.fabric.device, self.dtype)

    def _convert(self, dtype: torch.dtype) -> None:
        """Change the precision of all networks, where they are trained in another one than they have outside."""
        if self.dtype != torch.float32:
            for network in (*self.objective.parts.values(), *self.objective.fixed.values()):
                network.to(dtype)

    def _agree(self) -> None:
        """Refuse processes with different data or options, and give all of them the weights of the first."""
        self.processes.check_same(fingerprint([json.dumps(self._identity())]), "graphs, options or networks")
        for network in (*self.objective.parts.values(), *self.objective.fixed.values()):
            for value in learned(network).values():
                self.processes.copy_first(value)

    def batches(self, train: Sequence[Data]) -> Batches:
        """Batches of the training graphs by epoch; where processes share them, this process's shares."""
        check_batches(train, self.options)
        if self.options.clusters is not None:
            return cluster_batches(train, self.options.clusters, self.options.batch_clusters)
        modules = (inner for part in self.objective.parts.values() for inner in part.modules())
        triangles = any(isinstance(inner, TriangleScorer) for inner in modules)
        return training_batches(train, self.options.batch_graphs, self._place, self.processes, triangles)

    def _targets(self, batch: GraphBatch) -> Tensor:
        """Labels [present, nodes]."""
        if batch.y is None:
            raise InputError("Training and validation graphs need labels: set `y` (-1 where a label is missing).")
        y, now = batch.y, self.now
        return batch.cached(("targets", now), lambda: now.targets(y))

    @torch.no_grad()
    def _evaluate(self, held_out: GraphBatch, losses: Mapping[str, Tensor] | None = None) -> None:
        """Score every part on validation data, keep what has improved, and call the report callback."""
        targets = self._targets(held_out)
        found = self._replayed("scores", lambda: self.objective.scores(held_out, targets))
        # Rounding may differ between devices. What is kept and when training ends must not.
        scores = self.processes.from_first({name: score.detach().double().cpu() for name, score in found.items()})
        joint, running = next(iter(scores.values())), self._running()[self.present]
        improved = [
            self.snapshots[name].update(part, scores.get(name, joint), self.epoch, running, self.present)
            for name, part in self.objective.parts.items()
        ]
        stale = self.stale[self.present]
        self.stale[self.present] = torch.where(torch.stack(improved).any(0), 0, stale + running)
        values = {f"{name}_loss": loss.double().cpu() for name, loss in (losses or {}).items()}
        values |= {f"{name}_score": score for name, score in scores.items()}
        for name, value in values.items():
            known = self.last.setdefault(name, torch.full((self.replicas.count,), torch.nan, dtype=torch.float64))
            known[self.present[running]] = value[running]
        row: HistoryRow = {"epoch": self.epoch, **{name: _mean(self.last[name]) for name in values}}
        self.history.append(row)
        if self.report is not None and self.processes.is_first:
            self.report(row)

    def _save(self) -> None:
        if self.path is None or not self.processes.is_first:
            return
        tensors: dict[str, Tensor] = {f"last/{name}": value for name, value in self.last.items()}
        for name, part in self.objective.parts.items():
            best = self.snapshots[name].best
            tensors |= {f"{name}/now/{key}": self._whole(value, best[key]) for key, value in learned(part).items()}
            tensors |= {f"{name}/best/{key}": value for key, value in best.items()}
            tensors |= {
                f"{name}/optimiser/{k}": self._whole(v) for k, v in flatten_optimiser(self.optimisers[name]).items()
            }
            tensors |= {f"{name}/score": self.snapshots[name].score, f"{name}/epoch": self.snapshots[name].epoch}
        course = {"epoch": self.epoch, "stale": self.stale.tolist(), "diverged": self.diverged.tolist()}
        course |= {"present": self.present.tolist()}
        write_checkpoint(self.path, tensors, {**self._identity(), **course, "history": self.history})

    def _whole(self, value: Tensor, blank: Tensor | None = None) -> Tensor:
        """Values of all replicas: those of the present ones, and zeros (or `blank`) for those that have left."""
        if len(self.present) == self.replicas.count or not value.dim():
            return value
        whole = value.new_zeros(self.replicas.count, *value.shape[1:]) if blank is None else blank.clone()
        whole[self.present.to(value.device)] = value.detach()
        return whole

    def _identity(self) -> dict[str, Any]:
        """What must agree for a run to resume from a checkpoint."""
        parts = {name: part.named_parameters() for name, part in self.objective.parts.items()}
        shapes = {name: [list(self.snapshots[name].best[key].shape) for key, _ in own] for name, own in parts.items()}
        options = {name: asdict(own) for name, own in self.objective.options.items()}
        members = self.replicas.members
        return {
            "seeds": list(self.replicas.seeds),
            "tasks": self.replicas.num_tasks,
            "members": None if members is None else list(members),
            "shapes": shapes,
            "options": options,
            "objective": {"kind": type(self.objective).__name__, **self.objective.identity},
            "training": {name: getattr(self.options, name) for name in RESUMABLE} | self._clusters(),
            "data": self.fingerprint,
            "weights": None if self.weights is None else self.weights.node.tolist(),
            "start": self.origin,
        }

    def _clusters(self) -> dict[str, int]:
        """Settings of training on clusters; none where whole graphs are trained on, as in earlier versions."""
        options = self.options
        return {} if options.clusters is None else {"clusters": options.clusters, "of": options.batch_clusters}

    def _resume(self) -> None:
        if self.path is None:
            return
        # Only the first process needs to see the file: other machines may have other disks.
        there = self.processes.is_first and self.path.exists()
        saved = self.processes.from_first(read_checkpoint(self.path) if there else None)
        if saved is None:
            return
        if any(saved.values.get(key) != value for key, value in self._identity().items()):
            raise InputError(
                f"{self.path}: this checkpoint belongs to a run with other seeds, settings, graphs or networks. "
                "Choose another folder, or remove the file to start again."
            )
        try:
            if saved.values["epoch"] > self.options.max_epochs:
                raise InputError(
                    f"{self.path}: this checkpoint has {saved.values['epoch']} epochs, more than the "
                    f"{self.options.max_epochs} of this run. Choose another folder, or remove the file to start again."
                )
            self._restore(self.path, saved)
        except (KeyError, TypeError, IndexError, RuntimeError, ValueError) as error:
            if isinstance(error, InputError):
                raise
            raise InputError(
                f"{self.path}: this checkpoint is damaged ({type(error).__name__}: {error}). Remove the file to start "
                "again."
            ) from error

    def _restore(self, path: Path, saved: Saved) -> None:
        """Take over the state of a checkpoint."""
        parts = self.objective.parts
        states = {name: {"now": learned(part), "best": self.snapshots[name].best} for name, part in parts.items()}
        needed = {
            f"{name}/{when}/{key}": value
            for name, both in states.items()
            for when, own in both.items()
            for key, value in own.items()
        }
        check_tensors(path, {key: value for key, value in saved.tensors.items() if key in needed}, needed)
        with torch.no_grad():
            for name, part in parts.items():
                snapshots, prefix = self.snapshots[name], f"{name}/optimiser/"
                for key, value in learned(part).items():
                    value.copy_(saved.tensors[f"{name}/now/{key}"])
                    snapshots.best[key].copy_(saved.tensors[f"{name}/best/{key}"])
                snapshots.score, snapshots.epoch = saved.tensors[f"{name}/score"], saved.tensors[f"{name}/epoch"]
                own = {k.removeprefix(prefix): v for k, v in saved.tensors.items() if k.startswith(prefix)}
                restore_optimiser(self.optimisers[name], own)
        self.epoch, self.history = saved.values["epoch"], saved.values["history"]
        self.stale, self.diverged = torch.tensor(saved.values["stale"]), torch.tensor(saved.values["diverged"])
        self.last = {k.removeprefix("last/"): v for k, v in saved.tensors.items() if k.startswith("last/")}
        self._update_present()
        present = saved.values.get("present", self.present.tolist())
        if len(present) < len(self.present):
            self._keep(torch.tensor(present))


def _fingerprint(tensors: Mapping[str, Tensor]) -> str:
    """A short code for tensors by name."""
    return fingerprint(
        part for name in sorted(tensors) for part in (name, tensors[name].detach().cpu().numpy().tobytes())
    )


def _mean(values: Tensor) -> float:
    """Mean over the replicas that have a finite value; 0 where none has."""
    finite = values.double()[values.isfinite()]
    return float(finite.mean()) if finite.numel() else 0.0
