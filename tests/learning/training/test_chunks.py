"""Replicas trained in chunks that fit into memory: planned, halved, resumed, with unchanged results."""

import json
import subprocess
import sys
from dataclasses import replace

import pytest
import torch
from learning import training_cases
from learning.training_cases import SHAPE, TRAIN, VAL
from torch.testing import assert_close

from accord._memory import available_memory, is_out_of_memory, peak_memory
from accord.learning import Replicas, TrainingOptions, TrainingRun
from accord.learning.training import Trainer, _chunks
from accord.methods import StructuredProxyNetwork

RECIPE = replace(
    training_cases.RECIPE,
    training=TrainingOptions(max_epochs=12, accelerator="cpu", patience=1, evaluate_every=2, checkpoint_every=2),
)
SEEDS = tuple(range(18))
EACH, FIXED = 10, 200  # bytes per replica and bytes that all share, on an imaginary machine


def fit(folder=None, seeds=SEEDS, report=None, recipe=RECIPE):
    run = TrainingRun(TRAIN[:8], VAL[:6], folder, report)
    return StructuredProxyNetwork(recipe, "node").fit(run, SHAPE, Replicas(seeds))


def same(left, right):
    found, wanted = left.tensors(), right.tensors()
    for name in found:  # not the choice: ties between candidates may be broken differently
        assert_close(found[name], wanted[name], rtol=1e-4, atol=1e-4)
    assert [row["epoch"] for row in left.history] == [row["epoch"] for row in right.history]
    for ours, theirs in zip(left.history, right.history, strict=True):
        assert ours == pytest.approx(theirs, abs=1e-4)


@pytest.fixture
def small_memory(monkeypatch):
    """Memory for seven replicas; returns the sizes of the chunks that were trained."""
    sizes, execute = [], _chunks.Job.execute

    def noted(job):
        if job.options.max_epochs == 12:
            sizes.append(job.replicas.count)
        return execute(job)

    monkeypatch.setattr(_chunks.Job, "execute", noted)
    monkeypatch.setattr(_chunks, "available_memory", lambda device: (FIXED + 7.5 * EACH) / _chunks.MEMORY_SHARE)
    monkeypatch.setattr(_chunks, "peak_memory", measured_by_count)
    return sizes


def measured_by_count(work, device):
    """Bytes that the work takes on the imaginary machine, by the number of replicas that it trains."""
    count, step = [], Trainer.train_epoch
    Trainer.train_epoch = lambda self, batches: count.append(len(self.present)) or step(self, batches)
    try:
        work()
    finally:
        Trainer.train_epoch = step
    return FIXED + EACH * max(count)


def test_chunks_are_planned_by_the_memory_of_a_few_replicas(small_memory):
    rows = []
    found = fit(report=rows.append)
    assert small_memory == [6, 6, 6], "seven fit, so there are three chunks of equal size"
    assert rows[-1] == pytest.approx(found.history[-1])
    small_memory.clear()
    few = replace(RECIPE, training=replace(RECIPE.training, max_epochs=12))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(_chunks, "PLANNED_FROM", 100)
        same(found, fit(recipe=few))
    assert small_memory == [18]


def test_one_measurement_is_enough_on_a_gpu_if_its_upper_bound_fits(monkeypatch):
    """On a CPU a second measurement is always made."""
    measured = []

    def peak(work, device):
        measured.append(device.type)
        return FIXED + 2 * EACH

    job = _chunks.Job(None, Replicas(SEEDS), RECIPE.training, TrainingRun(TRAIN, VAL))
    monkeypatch.setattr(_chunks, "peak_memory", peak)
    for device, free, calls in (("cuda", 10**6, 1), ("cuda", 1000, 2), ("cpu", 10**6, 2)):
        monkeypatch.setattr(_chunks.Job, "device", torch.device(device))
        monkeypatch.setattr(_chunks, "available_memory", lambda device, free=free: free)
        measured.clear()
        _chunks.fitting_replicas(job)
        assert len(measured) == calls


def test_a_chunk_that_does_not_fit_is_halved_and_tried_again(monkeypatch):
    fits, sizes = Trainer.train_epoch, []

    def limited(self, batches):
        """Memory runs out in the second epoch, when something has been learned already."""
        if self.epoch == 1 and self.replicas.count > 5:
            raise torch.OutOfMemoryError("CUDA out of memory.")
        if self.epoch == 1:
            sizes.append(self.replicas.count)
        return fits(self, batches)

    wanted = fit()
    monkeypatch.setattr(_chunks, "PLANNED_FROM", 100)
    monkeypatch.setattr(Trainer, "train_epoch", limited)
    same(fit(), wanted)
    assert sizes == [4, 5, 4, 5]


def test_other_errors_and_single_replicas_are_not_tried_again(monkeypatch):
    for error, seeds in ((RuntimeError("shape mismatch"), SEEDS[:4]), (torch.OutOfMemoryError("out"), SEEDS[:1])):
        calls = []

        def broken(self, batches, error=error, calls=calls):
            calls.append(1)
            raise error

        monkeypatch.setattr(Trainer, "train_epoch", broken)
        with pytest.raises(type(error)):
            fit(seeds=seeds)
        assert len(calls) == 1


def test_an_interrupted_run_keeps_its_chunks(tmp_path, small_memory, monkeypatch):
    wanted, evaluate, count = fit(), Trainer._evaluate, []

    def killed(self, *a):
        if self.replicas.count == 6:
            count.append(1)
        if len(count) == 10:
            raise KeyboardInterrupt
        return evaluate(self, *a)

    with pytest.MonkeyPatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(Trainer, "_evaluate", killed)
        fit(tmp_path)
    plan = json.loads((tmp_path / "chunks.json").read_text())
    assert [len(chunk) for chunk in plan] == [6, 6, 6] and (tmp_path / "replicas-0-5").is_dir()
    # There is more memory now, but the plan of the interrupted run is kept.
    monkeypatch.setattr(_chunks, "available_memory", lambda device: 10**9)
    same(fit(tmp_path), wanted)


def test_memory_is_measured():
    cpu = torch.device("cpu")
    free, taken = available_memory(cpu), peak_memory(lambda: torch.ones(50_000_000).sum(), cpu)
    assert free is None or free > 10**8
    assert taken is None or 1.5e8 < taken < 4e8
    assert is_out_of_memory(MemoryError()) and is_out_of_memory(torch.OutOfMemoryError("out"))
    assert is_out_of_memory(RuntimeError("[enforce fail] DefaultCPUAllocator: can't allocate memory: you tried"))
    assert not is_out_of_memory(RuntimeError("shape mismatch"))


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
def test_gpu_memory_can_be_measured_before_the_gpu_was_used():
    code = (
        "import torch; from accord._memory import peak_memory; "
        "print(peak_memory(lambda: torch.zeros(2**20, device='cuda'), torch.device('cuda')))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert int(done.stdout) >= 4 * 2**20
