"""Training in chunks of replicas that fit into memory, one after the other.

How many fit is measured: a few updates with a few replicas, and with some more, show what one replica takes. A chunk
that runs out of memory nevertheless is halved and tried again. A replica's result does not depend on the others, so it
does not depend on the chunks either.
"""

import json
import logging
import math
import warnings
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import torch
from lightning.fabric import Fabric
from lightning.fabric.plugins.environments.lightning import LightningEnvironment
from torch import Tensor

from accord._files import write_text
from accord._memory import available_memory, is_out_of_memory, peak_memory, release_memory
from accord.learning.training._fixed_length import FixedLengthTrainer
from accord.learning.training._loop import CHECKPOINT, Trainer
from accord.learning.training._options import TrainingOptions
from accord.learning.training._replicas import Replicas, copy_of, learned
from accord.learning.training._run import HistoryRow, TrainingRun
from accord.learning.training._update import Objective, is_separable

PLANNED_FROM = 16  # replicas; fewer are trained without a measurement
PROBES = (2, 6)  # replicas that are trained to measure what one takes
PROBE_EPOCHS = 3  # plain, recorded, replayed
MEMORY_SHARE = 0.85  # of the free memory; allocators cannot use all of it
PLAN = "chunks.json"
Chunk = list[int]  # positions of replicas
log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Job:
    """All that the training loop needs.

    Args:
        objective: what is to be learned.
        replicas: seeds and tasks.
        options: how to train.
        run: graphs, checkpoint folder and callback.
        trained: whether the parts are trained already; training then must improve on them.
        lengths: [R] for each part, the epochs after which its parameters are taken; None selects by validation data.
    """

    objective: Objective
    replicas: Replicas
    options: TrainingOptions
    run: TrainingRun
    trained: bool = False
    lengths: Mapping[str, Tensor] | None = None

    def for_chunk(self, chunk: Chunk) -> "Job":
        """The same job for some replicas, with copies of their networks."""
        places = torch.tensor(chunk)
        part = self.objective.with_parts({name: copy_of(own, places) for name, own in self.objective.parts.items()})
        run = self.run.stage(f"replicas-{chunk[0]}-{chunk[-1]}")
        lengths = None if self.lengths is None else {name: own[places] for name, own in self.lengths.items()}
        return replace(self, objective=part, replicas=self.replicas.subset(chunk), run=run, lengths=lengths)

    @property
    def device(self) -> torch.device:
        """Where it will be trained."""
        return Fabric(accelerator=self.options.accelerator, devices=1, plugins=[LightningEnvironment()]).device

    def execute(self) -> Trainer:
        """Train all replicas at once."""
        if self.lengths is None:
            trainer = Trainer(self.objective, self.replicas, self.options, self.trained)
        else:
            trainer = FixedLengthTrainer(self.objective, self.replicas, self.options, self.lengths)
        trainer.fit(self.run)
        return trainer


@dataclass(frozen=True, eq=False)
class Trained:
    """What came of a job, besides the parts' parameters."""

    history: list[HistoryRow]  # a row of numbers for every evaluation, over all replicas
    device: torch.device  # of the parts
    kept: dict[str, Tensor]  # [R] for each part, the epoch of the parameters that were kept


def train_in_chunks(job: Job) -> Trained:
    """Train all replicas of a job in place, in as many chunks as memory requires."""
    if job.options.processes > 1 or job.replicas.count == 1 or not is_separable(job.objective):
        trainer = job.execute()
        return Trained(trainer.history, trainer.fabric.device, trainer.kept)
    waiting, done = deque(_plan(job)), list[tuple[Chunk, list[HistoryRow]]]()
    device = torch.device("cpu")
    kept = {name: torch.full((job.replicas.count,), -1) for name in job.objective.parts}
    while waiting:
        chunk = waiting.popleft()
        try:
            history, device, own = _train_chunk(job, chunk, done)
            done.append((chunk, history))
            for name, epochs in own.items():
                kept[name][chunk] = epochs
            continue
        except Exception as error:
            if len(chunk) == 1 or not is_out_of_memory(error):
                raise
            log.warning("%d replicas at once do not fit into memory; trying half as many.", len(chunk))
        # Outside the except block nothing refers to the error any more, so its tensors can be freed.
        release_memory(device)
        middle = len(chunk) // 2
        waiting.extendleft([chunk[middle:], chunk[:middle]])
        _write_plan(job, [*(chunk for chunk, _ in done), *waiting])
    for part in job.objective.parts.values():
        part.to(device)
    return Trained(merge_histories(done), device, kept)


def _train_chunk(
    job: Job, chunk: Chunk, done: list[tuple[Chunk, list[HistoryRow]]]
) -> tuple[list[HistoryRow], torch.device, dict[str, Tensor]]:
    """Train one chunk and copy its weights into the networks of the whole job; an error leaves them unchanged."""

    def follow(row: HistoryRow) -> None:
        if job.run.report is not None:
            job.run.report(merge_histories([*done, (chunk, [row])])[-1] | {"epoch": row["epoch"]})

    if len(chunk) < job.replicas.count:
        part = job.for_chunk(chunk)
        part = replace(part, run=replace(part.run, report=follow))
        trainer = part.execute()
        _copy_back(job.objective, part.objective, torch.tensor(chunk))
        return trainer.history, trainer.fabric.device, trainer.kept
    parts = job.objective.parts.values()
    start = [value.detach() for part in parts for value in learned(part).values()]
    device = job.device
    # Parts that are moved to another device leave their old values unchanged; others would overwrite them.
    start = [value.clone() if value.device.type == device.type else value for value in start]
    try:
        trainer = job.execute()
    except BaseException:
        for value, old in zip((v for part in parts for v in learned(part).values()), start, strict=True):
            value.grad, value.data = None, old
        raise
    return trainer.history, trainer.fabric.device, trainer.kept


@torch.no_grad()
def _copy_back(whole: Objective, part: Objective, places: torch.Tensor) -> None:
    """Copy what a chunk has learned to the positions of its replicas."""
    for name, module in whole.parts.items():
        found = learned(part.parts[name])
        for key, value in learned(module).items():
            value.index_copy_(0, places.to(value.device), found[key].to(value.device))


def _plan(job: Job) -> list[Chunk]:
    """Chunks that should fit; an interrupted run keeps its own."""
    count = job.replicas.count
    if job.run.folder is not None and (job.run.folder / PLAN).exists():
        chunks: list[Chunk] = json.loads((job.run.folder / PLAN).read_text())
        if sorted(place for chunk in chunks for place in chunk) == list(range(count)):
            return chunks
    resuming = job.run.folder is not None and (job.run.folder / CHECKPOINT).exists()
    size = count if count < PLANNED_FROM or resuming else fitting_replicas(job)
    pieces = math.ceil(count / size)
    cuts = [round(piece * count / pieces) for piece in range(pieces + 1)]
    chunks = [list(range(first, last)) for first, last in zip(cuts[:-1], cuts[1:], strict=True)]
    _write_plan(job, chunks)
    return chunks


def _write_plan(job: Job, chunks: list[Chunk]) -> None:
    if job.run.folder is not None and len(chunks) > 1:
        write_text(job.run.folder / PLAN, json.dumps(chunks))


def fitting_replicas(job: Job) -> int:
    """How many replicas of a job fit into memory at once, estimated from what a few of them take."""
    count, device = job.replicas.count, job.device
    taken = []
    for few in PROBES:
        try:
            peak = peak_memory(lambda: _probe(job, few), device)  # noqa: B023
        except Exception as error:
            if not is_out_of_memory(error):
                raise
            return max(few // 2, 1)
        if peak is None:
            return count
        taken.append(peak)
        free = available_memory(device)
        # This counts memory that all replicas share once for each, so it is an upper bound. On a CPU the peak may be
        # too low: memory that the process had already reserved does not count.
        if free is None or (device.type == "cuda" and peak * count / few <= MEMORY_SHARE * free):
            return count
    assert free is not None
    each = max((taken[1] - taken[0]) / (PROBES[1] - PROBES[0]), 1.0)
    size = int((MEMORY_SHARE * free - max(taken[0] - PROBES[0] * each, 0.0)) / each)
    size = min(max(size, 1), count)
    log.info("a replica takes %.1f MB, %.1f GB are free: %d at once", each / 1e6, free / 1e9, size)
    return size


def _probe(job: Job, few: int) -> None:
    """Train a few replicas for a few epochs, on the batch that takes most memory."""
    graphs = job.run.train
    if job.options.batch_graphs == 1:  # an update takes one graph, so the largest decides
        graphs = [max(graphs, key=lambda graph: graph.num_nodes + graph.num_edges)]
    options = replace(job.options, max_epochs=PROBE_EPOCHS, evaluate_every=1, patience=None)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # such as divergence: the run itself warns of it
        run = TrainingRun(graphs, job.run.validation, weights=job.run.weights)
        replace(job.for_chunk(list(range(few))), options=options, run=run, lengths=None).execute()


def merge_histories(done: Sequence[tuple[Chunk, list[HistoryRow]]]) -> list[HistoryRow]:
    """One history of several chunks: means over all replicas; a chunk that has ended counts with its last row."""
    merged = []
    for epoch in sorted({row["epoch"] for _, history in done for row in history}):
        latest = [(len(chunk), [row for row in history if row["epoch"] <= epoch][-1:]) for chunk, history in done]
        rows = [(weight, found[0]) for weight, found in latest if found]
        names = dict.fromkeys(name for _, row in rows for name in row if name != "epoch")
        row: HistoryRow = {"epoch": epoch}
        for name in names:
            known = [(weight, one[name]) for weight, one in rows if name in one]
            row[name] = sum(weight * value for weight, value in known) / sum(weight for weight, _ in known)
        merged.append(row)
    return merged
