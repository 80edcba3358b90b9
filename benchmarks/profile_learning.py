"""Where the time of an update goes, on a GPU: all 121 labels of PPI-1 at once, the paper's networks.

    python benchmarks/profile_learning.py OUT [--seconds 150] [--replicas 121]

Checks that the fused kernels give what the plain versions give, measures the ceilings (bandwidth, matrix products),
then milliseconds an update and peak memory for encoder x precision x fused or plain, profiles of SAGE and GAT, whole
fits, and block sizes of the attention kernels. A part is left out once the time is up. Writes OUT/profile.txt and
OUT/profile.json as it goes. The data file is looked for under $ACCORD_DATA.
"""

import argparse
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from unittest import mock

import torch
from fused_checks import (
    DEVICE,
    Objective,
    Record,
    check_attention,
    check_edge_loss,
    check_networks,
    check_products,
    free_memory,
    plain,
    synchronise,
)
from torch import nn
from torch_geometric.data import Data

import accord
from accord.encoders import Noise, _attention, _operators, _triton_attention
from accord.graphs import GraphBatch
from accord.learning import Replicas, Trainer
from accord.methods import Shape, StructuredProxyNetwork, preset_recipe

PRECISIONS = ("32-true", "tf32", "bf16-mixed")
BLOCKS = ((8, 4), (4, 1), (4, 2), (16, 4), (16, 8), (8, 2))  # arcs at once, warps


@contextmanager
def precision(name: str) -> Iterator[str]:
    """The setting of matrix products, and Fabric's name for the rest."""
    torch.set_float32_matmul_precision("highest" if name == "32-true" else "high")
    try:
        yield "bf16-mixed" if name == "bf16-mixed" else "32-true"
    finally:
        torch.set_float32_matmul_precision("highest")


def timed(run: Callable[[], object], seconds: float = 0.5, least: int = 3) -> float:
    """Milliseconds a call, after two calls to warm up."""
    run(), run()
    synchronise()
    start, calls = time.perf_counter(), 0
    while calls < least or (time.perf_counter() - start < seconds and calls < 100):
        run()
        synchronise()
        calls += 1
    return 1e3 * (time.perf_counter() - start) / calls


def reset_peak() -> None:
    if DEVICE == "cuda":
        torch.cuda.reset_peak_memory_stats()


def peak() -> float:
    """GiB."""
    return torch.cuda.max_memory_allocated() / 2**30 if DEVICE == "cuda" else 0.0


def ppi() -> tuple[GraphBatch, list[Data], list[Data]]:
    bench = accord.load_benchmark("ppi-1")
    return GraphBatch.collate(bench.train[:1]).to(DEVICE, torch.float32), bench.train, bench.val


def ceilings(record: Record, batch: GraphBatch) -> None:
    block = torch.empty(2**30, dtype=torch.float32, device=DEVICE)
    other = torch.empty_like(block)
    rate = 2 * block.nbytes / timed(partial(other.copy_, block)) / 1e9
    record.say(f"copy: {rate:.2f} TB/s", ceiling="copy", tb_per_s=rate)
    del block, other
    nodes, replicas, width = batch.num_nodes, 121, 1024
    h = torch.randn(nodes, replicas, width, device=DEVICE)
    weight = torch.randn(replicas, width, width, device=DEVICE)
    work = 2e-9 * nodes * replicas * width * width
    for name in PRECISIONS:
        with precision(name):
            a, b = (h.bfloat16(), weight.bfloat16()) if name == "bf16-mixed" else (h, weight)
            out, inner = torch.empty_like(a), a.transpose(0, 1).contiguous()
            there = torch.empty_like(inner)
            outer_ms = timed(lambda: torch.bmm(a.transpose(0, 1), b, out=out.transpose(0, 1)))  # noqa: B023
            inner_ms = timed(lambda: torch.bmm(inner, b, out=there))  # noqa: B023
            weight_ms = timed(lambda: torch.bmm(a.transpose(0, 1).transpose(1, 2), out.transpose(0, 1)))  # noqa: B023
        record.say(
            f"bmm 1024 x 1024, {name}: [nodes, replicas] {outer_ms:.2f} ms = {work / outer_ms:.0f} TFLOP/s, "
            f"[replicas, nodes] {inner_ms:.2f} ms, weight gradient {weight_ms:.2f} ms",
            ceiling=f"bmm {name}",
            ms=outer_ms,
            replica_major_ms=inner_ms,
            weight_gradient_ms=weight_ms,
        )


def alignment(record: Record, batch: GraphBatch) -> None:
    """Features are 50 wide, which tensor cores do not like: does a row stride of 64 help the first layer?"""
    weight = torch.randn(121, batch.num_features, 1024, device=DEVICE)
    for name in PRECISIONS[1:]:
        dtype = torch.bfloat16 if name == "bf16-mixed" else torch.float32
        x, w = batch.x.to(dtype), weight.to(dtype)
        padded = torch.zeros(batch.num_nodes, 64, dtype=dtype, device=DEVICE)
        padded[:, : batch.num_features] = x
        out = torch.empty(batch.num_nodes, 121, 1024, dtype=dtype, device=DEVICE).transpose(0, 1)
        for how, features in (("50", x), ("64", padded[:, : batch.num_features])):
            each = features.expand(121, *features.shape)
            with precision(name):
                forward = timed(lambda: torch.bmm(each, w, out=out), 0.1)  # noqa: B023
                backward = timed(lambda: torch.bmm(each.transpose(1, 2), out), 0.1)  # noqa: B023
            record.say(
                f"first layer, {name}, row stride {how}: {forward:.2f} ms, weight gradient {backward:.2f} ms",
                ceiling=f"first layer {name} stride {how}",
                ms=forward,
                weight_gradient_ms=backward,
            )


built: dict[tuple[str, int], dict[str, nn.Module]] = {}  # drawing half a billion weights takes seconds: once is enough


def networks(encoder: str, replicas: Replicas) -> dict[str, nn.Module]:
    """The paper's networks, with whatever weights the last part left in them."""
    key = encoder, replicas.count
    if key not in built:
        built.clear()
        free_memory()
        recipe = preset_recipe("paper", encoder, benchmark="ppi-1")
        built[key] = StructuredProxyNetwork(recipe).build(Shape(50, 2, 121), replicas).parts
    return built[key]


class Run:
    """One encoder's networks and trainer, and its update."""

    def __init__(self, encoder: str, replicas: int, kind: str, epochs: int = 400) -> None:
        self.replicas = Replicas((1,), replicas)
        recipe = preset_recipe("paper", encoder, benchmark="ppi-1")
        training = replace(recipe.training, accelerator=DEVICE, precision=kind, max_epochs=epochs)
        parts = networks(encoder, self.replicas)
        self.objective = Objective(dict(parts), {"node": recipe.node, "edge": recipe.edge}, "node")
        self.trainer = Trainer(self.objective, self.replicas, training)
        self.step = 0

    def update(self, batch: GraphBatch) -> None:
        """As the trainer's, without a wait for the loss."""
        trainer = self.trainer
        self.step += 1
        noise = Noise(torch.tensor(self.replicas.keys, device=DEVICE), self.step)
        for optimiser in trainer.optimisers.values():
            optimiser.zero_grad()
        with trainer.fabric.autocast():
            losses = self.objective.losses(batch, self.replicas.targets(batch.y[:, : self.replicas.count]), noise)
        trainer.fabric.backward(torch.stack([loss.sum() for loss in losses.values()]).sum())
        for optimiser in trainer.optimisers.values():
            optimiser.step()


def fitting(record: Record, make: Callable[[int], None], replicas: int) -> None:
    """Halve the replicas until they fit into memory."""
    while True:
        try:
            return make(replicas)
        except torch.cuda.OutOfMemoryError:
            record.say(f"out of memory with {replicas} replicas; trying {replicas // 2}", out_of_memory=replicas)
            replicas //= 2
            if not replicas:
                raise
        free_memory()


def measure(record: Record, encoder: str, batch: GraphBatch, replicas: int, with_plain: bool) -> None:
    def one(kind: str, fused: bool, replicas: int) -> None:
        with precision(kind) as fabric_kind:
            run = Run(encoder, replicas, fabric_kind)
            reset_peak()
            ms = timed(partial(run.update, batch), 1.0 if fused else 0.1, 3 if fused else 1)
            memory = peak()
            synchronise()
            start = time.perf_counter()
            run.update(batch)
            launch = 1e3 * (time.perf_counter() - start)
            synchronise()
        how = "fused" if fused else "plain"
        record.say(
            f"{encoder} {kind} {how}: {ms:.2f} ms an update ({launch:.2f} ms until all is launched), "
            f"{memory:.1f} GiB at most, {replicas} replicas",
            encoder=encoder,
            precision=kind,
            fused=fused,
            replicas=replicas,
            ms=ms,
            launch_ms=launch,
            peak_gib=memory,
        )

    for kind in PRECISIONS:
        fitting(record, lambda count: one(kind, True, count), replicas)  # noqa: B023
        free_memory()
    if with_plain:
        with plain():
            fitting(record, lambda count: one("tf32", False, count), replicas)


def profile(record: Record, encoder: str, batch: GraphBatch, replicas: int) -> None:
    from torch.profiler import ProfilerActivity, profile

    with precision("tf32") as kind:
        run = Run(encoder, replicas, kind)
        for _ in range(3):
            run.update(batch)
        synchronise()
        with profile(activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA]) as found:
            for _ in range(3):
                run.update(batch)
            synchronise()
    averages = found.key_averages()
    kernels = sum(e.count for e in averages if e.device_type == torch.autograd.DeviceType.CUDA) / 3
    record.say(f"{encoder}: {kernels:.0f} kernels an update; times below are of 3 updates")
    for order, rows in (("self_cuda_time_total", 15), ("self_cpu_time_total", 12)):
        record.say(averages.table(sort_by=order, row_limit=rows, max_name_column_width=70))


def only(graph: Data, tasks: int) -> Data:
    """The graph with its first labels alone."""
    return Data(x=graph.x, edge_index=graph.edge_index, y=graph.y[:, :tasks])


def whole_fit(
    record: Record, encoder: str, replicas: int, train: list[Data], validation: list[Data], epochs: int, kind: str
) -> None:
    with precision(kind) as fabric_kind:
        trainer = Run(encoder, replicas, fabric_kind, epochs).trainer
        train, validation = [only(graph, replicas) for graph in train], [only(graph, replicas) for graph in validation]
        synchronise()
        start = time.perf_counter()
        trainer.fit(train, validation)
        synchronise()
        seconds = time.perf_counter() - start
    last = trainer.history[-1]
    record.say(
        f"fit {encoder} {kind}: {seconds:.2f} s for {epochs} updates with looks at validation data; {last}",
        fit=encoder,
        precision=kind,
        seconds=seconds,
        epochs=epochs,
        last=last,
    )


def sweep_blocks(record: Record, batch: GraphBatch) -> None:
    """Time of attention, forward and with its gradient, by block size."""
    pattern = _operators.arc_pattern(batch, True)
    for dtype in (torch.float32, torch.bfloat16):
        for heads, channels in ((4, 256), (6, 64)):
            h = torch.randn(batch.num_nodes, 121, heads, channels, device=DEVICE).to(dtype).requires_grad_()
            vectors = [torch.randn(121, heads, channels, device=DEVICE, requires_grad=True) for _ in range(2)]
            gathered = pattern.num_arcs * h[0].numel() * h.element_size() / 1e9  # GB, each arc's row once
            for arcs, warps in BLOCKS:
                if record.end - time.perf_counter() < 8:
                    return
                chosen = _triton_attention.Blocks.of(121 * heads, channels)
                chosen = replace(chosen, arcs=arcs, warps=warps)
                with mock.patch.object(_triton_attention.Blocks, "of", lambda *_, chosen=chosen: chosen):
                    with torch.no_grad():
                        forward = timed(lambda: _attention.attend_heads(h, *vectors, pattern), 0.1)  # noqa: B023
                    out = _attention.attend_heads(h, *vectors, pattern)
                    gradient = torch.randn_like(out)
                    back = partial(torch.autograd.grad, out, [h, *vectors], gradient, retain_graph=True)
                    backward = timed(back, 0.1)
                record.say(
                    f"attention {heads} x {channels} {dtype}, {chosen}: forward {forward:.2f} ms "
                    f"({gathered / forward:.2f} TB/s gathered), backward {backward:.2f} ms",
                    sweep=f"{heads} x {channels} {dtype}",
                    arcs=arcs,
                    warps=warps,
                    forward_ms=forward,
                    backward_ms=backward,
                )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("out", type=Path)
    parser.add_argument("--seconds", type=float, default=150.0)
    parser.add_argument("--replicas", type=int, default=121)
    options = parser.parse_args()
    record = Record(options.out, options.seconds)
    count = options.replicas
    name = torch.cuda.get_device_name() if DEVICE == "cuda" else "no GPU"
    record.say(f"torch {torch.__version__}, {name}")
    batch, train, validation = ppi()
    record.say(f"{batch.num_nodes} nodes, {batch.num_edges} edges, {count} replicas")
    for check_part in (check_attention, check_products, check_edge_loss, check_networks):
        record.part(check_part.__name__, 10, partial(check_part, record, batch))
    record.part("ceilings", 5, partial(ceilings, record, batch))
    record.part("alignment", 4, partial(alignment, record, batch))
    plans = (("sage", 12, True, 400), ("gat", 40, True, 20), ("gcn", 8, False, 0), ("gcnii", 12, False, 0))
    for encoder, needs, in_depth, epochs in plans:
        record.part(f"updates of {encoder}", needs, partial(measure, record, encoder, batch, count, in_depth))
        if in_depth:
            record.part(f"profile of {encoder}", 8, partial(profile, record, encoder, batch, count))
            fit = partial(whole_fit, record, encoder, count, train, validation, epochs, "tf32")
            record.part(f"fit of {encoder}", 12, fit)
    built.clear()
    free_memory()
    record.part("block sizes of attention", 15, partial(sweep_blocks, record, batch))
    record.say(f"done, {record.end - time.perf_counter():.0f} s left")


if __name__ == "__main__":
    main()
