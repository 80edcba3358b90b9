"""Time of replica training on a GPU: all 121 labels of PPI at once, the paper's networks.

    python benchmarks/learning/profile_learning.py OUT [--seconds 150] [--replicas 121]

Checks that fast paths give the results of plain ones (fused Adam, CUDA graphs, tf32, chunks, kernels). Then measures
milliseconds per update of each encoder by precision, whole fits on PPI-1 with and without evaluations, a part of
PPI-20, ratios to plain PyG modules, block sizes, and a profile. Parts that no longer fit the time limit are left out,
and a failing part does not stop the others. Writes OUT/profile.txt and OUT/profile.json as it goes. The data file is
searched under $ACCORD_DATA. `--deep` adds checks of all fused kernels against plain versions.
"""

import argparse
import time
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from unittest import mock

import torch
from fused_checks import (
    DEVICE,
    Record,
    check_attention,
    check_edge_loss,
    check_networks,
    check_products,
    free_memory,
    synchronise,
)
from speed_checks import check_adam, check_chunks, check_graphs, check_leaving, check_tf32, checkable
from torch_geometric.data import Data

import accord
from accord.bench.learning._run import LearningCase, time_plain
from accord.encoders.replica import _attention, _operators
from accord.encoders.replica.triton import _attention as _triton_attention
from accord.graphs import GraphBatch
from accord.learning import Replicas, TrainingRun
from accord.learning.objectives import FieldNetworks, ProxyObjective
from accord.learning.training import Job, Trainer, learned, train_in_chunks
from accord.learning.training._settings import product_precision
from accord.methods import Shape, StructuredProxyNetwork, preset_recipe

GOALS = {("sage", "ppi-1"): 6.75, ("gat", "ppi-1"): 75.0, ("sage", "ppi-20"): 16.25, ("gat", "ppi-20"): 100.0}
PLAIN_PRECISION = "tf32"  # of plain PyG modules, and of ours that they are compared with
BLOCKS = ((4, 1), (2, 1), (1, 1), (2, 2), (8, 1))  # arcs at once, warps
SCORE_BLOCKS = ((32, 32, 4), (64, 32, 4), (32, 8, 1), (64, 16, 4))  # arcs, groups, warps


def timed(run: Callable[[], object], seconds: float = 0.5, least: int = 3, warm: int = 2) -> float:
    """Milliseconds per call, after warm-up calls."""
    for _ in range(warm):
        run()
    synchronise()
    start, calls = time.perf_counter(), 0
    while calls < least or (time.perf_counter() - start < seconds and calls < 200):
        run()
        synchronise()
        calls += 1
    return 1e3 * (time.perf_counter() - start) / calls


def reset_peak() -> None:
    free_memory()
    if DEVICE == "cuda":
        torch.cuda.reset_peak_memory_stats()


def peak() -> tuple[float, float]:
    """Peak GiB in use, and peak GiB held by the allocator."""
    if DEVICE != "cuda":
        return 0.0, 0.0
    return torch.cuda.max_memory_allocated() / 2**30, torch.cuda.max_memory_reserved() / 2**30


def only(graphs: list[Data], tasks: int) -> list[Data]:
    """The graphs with only their first labels."""
    return [Data(x=graph.x, edge_index=graph.edge_index, y=graph.y[:, :tasks]) for graph in graphs]


class Networks:
    """The paper's networks, built once for each encoder: drawing half a billion weights takes seconds."""

    def __init__(self) -> None:
        self.key: tuple[str, int] | None = None
        self.networks: FieldNetworks | None = None
        self.start: list[torch.Tensor] = []

    def get(self, encoder: str, count: int) -> FieldNetworks:
        """The networks with their initial weights."""
        if self.key != (encoder, count):
            self.networks, self.start = None, []
            free_memory()
            recipe = preset_recipe("paper", encoder, benchmark="ppi-1")
            self.networks = StructuredProxyNetwork(recipe).build(Shape(50, 2, 121), Replicas((1,), count)).networks
            self.key = encoder, count
            self.start = [value.detach().to(DEVICE, copy=True) for value in self._values()]
        with torch.no_grad():
            for part in self.networks.parts.values():
                part.to(DEVICE)
            for value, old in zip(self._values(), self.start, strict=True):
                value.copy_(old)
        return self.networks

    def _values(self) -> list[torch.Tensor]:
        return [value for part in self.networks.parts.values() for value in learned(part).values()]


networks = Networks()


def trainer_for(encoder: str, count: int, **training: object) -> Trainer:
    recipe = preset_recipe("paper", encoder, benchmark="ppi-1")
    own = networks.get(encoder, count)
    objective = ProxyObjective(own, own.options(recipe.node, recipe.edge), "node")
    options = replace(recipe.training, accelerator=DEVICE, **training)
    return Trainer(objective, Replicas((1,), count), options)


def time_updates(trainer: Trainer, train: list[Data], seconds: float) -> tuple[float, float]:
    """Milliseconds per update, and until everything is launched."""
    batches = trainer.batches(train)

    def epoch() -> None:
        trainer.train_epoch(batches(trainer.epoch))
        trainer.epoch += 1

    with product_precision(trainer.options.precision):
        ms = timed(epoch, seconds, least=1 if len(train) > 1 else 3, warm=3) / len(train)
        start = time.perf_counter()
        epoch()
        launch = 1e3 * (time.perf_counter() - start) / len(train)
        synchronise()
    return ms, launch


def measure(
    record: Record,
    encoder: str,
    name: str,
    train: list[Data],
    count: int,
    kind: str,
    graphs: bool = True,
    seconds: float = 1.0,
) -> float:
    reset_peak()
    trainer = trainer_for(encoder, count, precision=kind, cuda_graphs=graphs)
    ms, launch = time_updates(trainer, only(train, count), seconds)
    how = "eager" if trainer.graphs is None else "graphs" if trainer.graphs.works else "graphs FAILED, eager"
    used, held = peak()
    goal = GOALS.get((encoder, name))
    against = "" if goal is None else f", goal {goal} ms: {'met' if ms <= goal else 'NOT met'}"
    record.say(
        f"{name} {encoder} {kind} {how}: {ms:.2f} ms per update ({launch:.2f} ms to launch), {used:.1f} GiB in use, "
        f"{held:.1f} held at most, {count} replicas{against}",
        updates=name,
        encoder=encoder,
        precision=kind,
        how=how,
        ms=ms,
        launch_ms=launch,
        peak_gib=used,
        held_gib=held,
        replicas=count,
    )
    return ms


def measure_plain(record: Record, encoder: str, benchmark: str, count: int, ours: dict[tuple[str, str], float]) -> None:
    """One label at a time with plain PyG modules, in the same process."""
    bench = accord.load_benchmark(benchmark)
    case = LearningCase(benchmark=benchmark, encoder=encoder, device=DEVICE, precision=PLAIN_PRECISION, seconds=1.0)
    plain = [time_plain(case, bench, bench.train[:2], task).ms for task in range(2)]
    each = sum(plain) / len(plain)
    found = ours.get((encoder, benchmark))
    ratio = "" if found is None else f"; all {count}: {each * count / found:.1f} times as long as ours"
    record.say(
        f"{benchmark} {encoder} plain PyG, {PLAIN_PRECISION}: {each:.2f} ms per update and label, mean of 2{ratio}",
        plain=encoder,
        benchmark=benchmark,
        ms=each,
        ratio=None if found is None else each * count / found,
    )


def whole_fit(
    record: Record,
    encoder: str,
    count: int,
    train: list[Data],
    val: list[Data],
    kind: str,
    evaluated: bool,
    planned: bool,
) -> None:
    """400 updates on PPI-1, from moving graphs to the device to restoring the best parameters."""
    every = 5 if evaluated else 400
    trainer = trainer_for(encoder, count, precision=kind, evaluate_every=every)
    train, val = only(train, count), only(val, count)
    synchronise()
    start = time.perf_counter()
    if planned:  # as methods train: memory is measured first
        job = Job(trainer.objective, trainer.replicas, trainer.options, TrainingRun(train, val))
        del trainer
        history = train_in_chunks(job).history
    else:
        trainer.fit(TrainingRun(train, val))
        history = trainer.history
    synchronise()
    seconds = time.perf_counter() - start
    how = "evaluations every 5 updates" if evaluated else "one evaluation at the end"
    how += ", memory planned" if planned else ""
    record.say(
        f"fit of {encoder} on PPI-1, {kind}: {seconds:.2f} s for 400 updates, {how}; {history[-1]}",
        fit=encoder,
        precision=kind,
        seconds=seconds,
        evaluated=evaluated,
        planned=planned,
        last=history[-1],
    )


def sweep_blocks(record: Record, batch: GraphBatch, dtype: torch.dtype) -> None:
    """Time of attention, forward and backward, by block size of rows, then of scores."""
    pattern = _operators.arc_pattern(batch, True)
    h = torch.randn(batch.num_nodes, 121, 4, 256, device=DEVICE, dtype=dtype).requires_grad_()
    vectors = [torch.randn(121, 4, 256, device=DEVICE, dtype=dtype, requires_grad=True) for _ in range(2)]

    def both() -> str:
        with torch.no_grad():
            forward = timed(lambda: _attention.attend_heads(h, *vectors, pattern), 0.05)
        out = _attention.attend_heads(h, *vectors, pattern)
        back = partial(torch.autograd.grad, out, [h, *vectors], torch.ones_like(out), retain_graph=True)
        return f"forward {forward:.2f} ms, backward {timed(back, 0.05):.2f} ms"

    for arcs, warps in BLOCKS:
        chosen = replace(_triton_attention.Blocks.of(484, 256, dtype), arcs=arcs, warps=warps)
        with mock.patch.object(_triton_attention.Blocks, "of", lambda *_, chosen=chosen, **__: chosen):
            record.say(f"rows {dtype} {chosen}: {both()}", sweep="rows", block=str(chosen))
    for arcs, groups, warps in SCORE_BLOCKS:
        sizes = {"SCORE_ARCS": arcs, "SCORE_GROUPS": groups, "SCORE_WARPS": warps}
        with mock.patch.multiple(_triton_attention, **sizes):
            record.say(f"scores {sizes}: {both()}", sweep="scores", block=sizes)


def profile(record: Record, encoder: str, train: list[Data], count: int) -> None:
    """Kernels of an update, by time."""
    trainer = trainer_for(encoder, count, precision="tf32", cuda_graphs=False)
    batches = trainer.batches(only(train, count))
    record_kernels(record, f"update of {encoder}", lambda: trainer.train_epoch(batches(0)))


def profile_evaluation(record: Record, encoder: str, val: list[Data], count: int) -> None:
    """Kernels of an evaluation, by time."""
    trainer = trainer_for(encoder, count, precision="tf32", cuda_graphs=False)
    held_out = GraphBatch.collate(only(val, count)).to(DEVICE, torch.float32)
    with product_precision("tf32"):
        record.say(f"an evaluation of {encoder}, not replayed: {timed(lambda: trainer._evaluate(held_out)):.1f} ms")
    record_kernels(record, f"evaluation of {encoder}", lambda: trainer._evaluate(held_out))


def record_kernels(record: Record, name: str, work: Callable[[], object]) -> None:
    from torch.profiler import ProfilerActivity
    from torch.profiler import profile as profiled

    with product_precision("tf32"):
        for _ in range(2):
            work()
        synchronise()
        with profiled(activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA]) as found:
            work()
            synchronise()
    averages = found.key_averages()
    on_gpu = [event for event in averages if event.device_type == torch.autograd.DeviceType.CUDA]
    kernels = [event for event in on_gpu if not event.key.startswith("Optimizer.step")]  # torch's name for a stretch
    total = sum(event.self_device_time_total for event in kernels) / 1e3
    record.say(f"{name}: {sum(e.count for e in kernels)} kernels, {total:.2f} ms of GPU time")
    for event in sorted(kernels, key=lambda event: -event.self_device_time_total)[:22]:
        record.say(f"  {event.self_device_time_total / 1e3:8.3f} ms {event.count:4} x {event.key[:110]}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("out", type=Path)
    parser.add_argument("--seconds", type=float, default=150.0)
    parser.add_argument("--replicas", type=int, default=121)
    parser.add_argument("--deep", action="store_true")
    options = parser.parse_args()
    record, count = Record(options.out, options.seconds), options.replicas
    record.say(f"torch {torch.__version__}, {torch.cuda.get_device_name() if DEVICE == 'cuda' else 'no GPU'}")
    small = accord.load_benchmark("ppi-1")
    large: list[Data] = []
    batch = GraphBatch.collate(small.train[:1]).to(DEVICE, torch.float32)
    record.say(f"PPI-1: {batch.num_nodes} nodes, {batch.num_edges} edges, {count} replicas")
    found: dict[tuple[str, str], float] = {}

    def update(encoder: str, kind: str, **more: object) -> None:
        ms = measure(record, encoder, "ppi-1", small.train, count, kind, **more)
        if more.get("graphs", True) and kind == PLAIN_PRECISION:
            found[encoder, "ppi-1"] = ms

    def slice_of_twenty(encoder: str, kind: str, seconds: float) -> None:
        large.extend([] if large else accord.load_benchmark("ppi-20").train)
        ms = measure(record, encoder, "ppi-20", large, count, kind, seconds=seconds)
        record.say(f"ppi-20 {encoder} {kind}: {8 * ms:.0f} s for 8,000 updates, extrapolated from a slice")

    checks: list[tuple[str, float, Callable[[], None]]] = [
        (check.__name__, 6, partial(check, record, checkable(small)))
        for check in (check_adam, check_graphs, check_tf32)
    ]
    checks.append(("check_leaving", 4, partial(check_leaving, record, checkable(small))))
    checks.append(("check_chunks", 6, partial(check_chunks, record, checkable(small))))
    deep = (check_attention, check_products, check_edge_loss, check_networks) if options.deep else (check_networks,)
    checks += [(check.__name__, 8, partial(check, record, batch)) for check in deep]
    fit = partial(whole_fit, record, count=count, train=small.train, val=small.val)
    parts: list[tuple[str, float, Callable[[], None]]] = [
        *checks,
        ("updates of sage, eager", 5, lambda: update("sage", "tf32", graphs=False)),
        ("updates of sage, tf32", 5, lambda: update("sage", "tf32")),
        ("updates of sage, bf16", 5, lambda: update("sage", "bf16-mixed")),
        ("fit of sage, evaluations", 6, lambda: fit("sage", kind="tf32", evaluated=True, planned=False)),
        ("fit of sage, no evaluations", 5, lambda: fit("sage", kind="tf32", evaluated=False, planned=False)),
        ("fit of sage, planned", 8, lambda: fit("sage", kind="tf32", evaluated=True, planned=True)),
        ("sage, 20 graphs", 8, lambda: slice_of_twenty("sage", "tf32", 1.0)),
        ("plain sage", 6, lambda: measure_plain(record, "sage", "ppi-1", count, found)),
        ("updates of gat, tf32", 12, lambda: update("gat", "tf32", seconds=1.0)),
        ("updates of gat, bf16", 6, lambda: update("gat", "bf16-mixed", seconds=1.0)),
        ("fit of gat, evaluations", 45, lambda: fit("gat", kind="tf32", evaluated=True, planned=False)),
        ("gat, 20 graphs, tf32", 16, lambda: slice_of_twenty("gat", "tf32", 0.1)),
        ("plain gat", 5, lambda: measure_plain(record, "gat", "ppi-1", count, found)),
        ("evaluation of gat", 4, lambda: profile_evaluation(record, "gat", small.val, count)),
        ("profile of gat", 4, lambda: profile(record, "gat", small.train, count)),
        ("updates of gcn, tf32", 4, lambda: update("gcn", "tf32", seconds=0.5)),
        ("updates of gcnii, tf32", 8, lambda: update("gcnii", "tf32", seconds=0.5)),
        ("updates of gcnii, bf16", 5, lambda: update("gcnii", "bf16-mixed", seconds=0.5)),
        ("updates of gcn, bf16", 4, lambda: update("gcn", "bf16-mixed", seconds=0.5)),
        ("plain gcn", 5, lambda: measure_plain(record, "gcn", "ppi-1", count, found)),
        ("plain gcnii", 5, lambda: measure_plain(record, "gcnii", "ppi-1", count, found)),
        ("profile of sage", 3, lambda: profile(record, "sage", small.train, count)),
        ("block sizes of attention", 6, lambda: sweep_blocks(record, batch, torch.float32)),
        ("block sizes of attention, bf16", 6, lambda: sweep_blocks(record, batch, torch.bfloat16)),
        ("gat, 20 graphs, bf16", 16, lambda: slice_of_twenty("gat", "bf16-mixed", 0.1)),
        ("fit of gat, no evaluations", 36, lambda: fit("gat", kind="tf32", evaluated=False, planned=False)),
        ("fit of gat, bf16", 36, lambda: fit("gat", kind="bf16-mixed", evaluated=True, planned=False)),
    ]
    for name, needs, run in parts:
        record.part(name, needs, run)
    record.say(f"done, {record.end - time.perf_counter():.0f} s left")


if __name__ == "__main__":
    main()
