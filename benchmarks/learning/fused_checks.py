"""For `profile_learning.py`: the record of results, and checks of fused kernels against plain versions."""

import gc
import json
import time
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from unittest import mock

import torch
from torch import Tensor

from accord.encoders import GAT, LinearScorer, Noise
from accord.encoders.replica import _attention, _operators
from accord.graphs import GraphBatch
from accord.learning import Replicas
from accord.learning.objectives import ProxyObjective, _fused_edge_loss, edge_loss, node_loss
from accord.learning.objectives._parts import edge_noise

DEVICE = "cuda" if torch.cuda.is_available() else "cpu"


def synchronise() -> None:
    """Wait for the GPU, if there is one."""
    if DEVICE == "cuda":
        torch.cuda.synchronize()


def free_memory() -> None:
    """Release unused memory."""
    gc.collect()
    if DEVICE == "cuda":
        torch.cuda.empty_cache()


class Record:
    """Results, printed and written as they come."""

    def __init__(self, folder: Path, seconds: float) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.text, self.json, self.rows = folder / "profile.txt", folder / "profile.json", []
        self.text.write_text("")
        self.end = time.perf_counter() + seconds

    def say(self, line: str, **values: object) -> None:
        print(line, flush=True)
        with self.text.open("a") as file:
            file.write(line + "\n")
        if values:
            self.rows.append(values)
            self.json.write_text(json.dumps(self.rows, indent=1))

    def part(self, name: str, needs: float, run: Callable[[], None]) -> None:
        """Run one part if time allows; an error is recorded, and the next part begins."""
        left = self.end - time.perf_counter()
        if left < needs:
            self.say(f"## {name}: left out, {left:.0f} s are left and it takes {needs:.0f}")
            return
        self.say(f"## {name} ({left:.0f} s left)")
        try:
            run()
        except Exception:
            self.say(f"FAILED {name}\n{traceback.format_exc(limit=-5)}", part=name, failed=True)
        free_memory()


class Objective(ProxyObjective):
    """The proxy problem with a choice of the fused or the plain edge loss."""

    fused = True

    def losses(self, batch: GraphBatch, targets: Tensor, noise: Noise) -> dict[str, Tensor]:
        edge = self.networks.edge
        assert edge is not None
        if self.fused:
            on_edges = _fused_edge_loss.network_edge_loss(edge, batch, targets, edge_noise(noise))
        else:
            on_edges = edge_loss(edge(batch, edge_noise(noise)), targets, batch.topology)
        return {"node": node_loss(self.networks.node_logits(batch, noise), targets), "edge": on_edges}


@contextmanager
def plain() -> Iterator[None]:
    """Switch all Triton kernels off, and score every edge."""
    with (
        mock.patch.object(_attention, "suits", lambda *_: False),
        mock.patch.object(_operators, "suits", lambda *_: False),
        mock.patch.object(_fused_edge_loss, "suits", lambda *_: False),
        mock.patch.object(Objective, "fused", False),
    ):
        yield


def check(record: Record, name: str, found: list[Tensor], wanted: list[Tensor], tolerance: float) -> None:
    """Largest difference of each tensor relative to its largest magnitude."""
    gaps = [
        float((a.double() - b.double()).abs().max() / b.double().abs().max())
        for a, b in zip(found, wanted, strict=True)
    ]
    verdict = "ok" if max(gaps) <= tolerance else "FAILED"
    shown = " ".join(f"{gap:.1e}" for gap in gaps)
    record.say(f"{verdict:6} {name}: {shown} (at most {tolerance:.0e})", check=name, gaps=gaps, ok=verdict == "ok")


def with_gradients(run: Callable[..., Tensor], inputs: list[Tensor]) -> list[Tensor]:
    leaves = [tensor.detach().clone().requires_grad_() for tensor in inputs]
    out = run(*leaves)
    (
        out.double() * torch.linspace(-1, 2, out.numel(), device=out.device, dtype=torch.float64).view(out.shape)
    ).sum().backward()
    return [out.detach(), *(leaf.grad for leaf in leaves if leaf.grad is not None)]


def check_attention(record: Record, batch: GraphBatch) -> None:
    pattern, keys = _operators.arc_pattern(batch, True), torch.tensor([3, 2**40, 9], device=DEVICE)
    sizes = ((2, 256, 0.0), (2, 64, 0.3), (6, 2, 0.0))  # heads, channels, dropout
    for dtype, tolerance, some in ((torch.float32, 2e-5, sizes), (torch.bfloat16, 2e-2, sizes[:1])):
        for heads, channels, dropout in some:
            h = torch.randn(batch.num_nodes, 3, heads, channels, device=DEVICE).to(dtype)
            vectors = [torch.randn(3, heads, channels, device=DEVICE) / channels**0.5 for _ in range(2)]

            def run(h: Tensor, a: Tensor, b: Tensor, p: float = dropout) -> Tensor:
                return _attention.attend_heads(h, a, b, pattern, 0.2, Noise(keys, 5), p, 1)

            found = with_gradients(run, [h, *vectors])
            again = with_gradients(run, [h, *vectors])
            wanted = with_gradients(run, [h.double(), *(v.double() for v in vectors)])  # float64 is always plain
            name = f"attention {heads} x {channels}, dropout {dropout}, {dtype}"
            check(record, name, found, wanted, tolerance)
            same = all(torch.equal(a, b) for a, b in zip(found, again, strict=True))
            record.say(f"{'ok' if same else 'FAILED':6} {name}: same bits twice", check=f"{name}, bits", ok=same)


def check_products(record: Record, batch: GraphBatch) -> None:
    for make in (_operators.gcn_operator, _operators.mean_operator):
        for width in (7, 7744):
            h = torch.randn(batch.num_nodes, width, device=DEVICE)
            wanted = with_gradients(make(batch, torch.float64), [h.double()])
            for dtype, tolerance in ((torch.float32, 1e-5), (torch.bfloat16, 1e-2)):
                found = with_gradients(make(batch, torch.float32), [h.to(dtype)])
                check(record, f"{make.__name__}, {width} columns, {dtype}", found, wanted, tolerance)


def check_edge_loss(record: Record, batch: GraphBatch) -> None:
    targets = (
        Replicas((1,), 121).targets(batch.y).masked_fill(torch.rand(121, batch.num_nodes, device=DEVICE) < 0.1, -1)
    )
    keys = list(range(121))
    for spec in (LinearScorer(dropout=0.5), LinearScorer(dropout=0.5, symmetric=False)):
        scorer = spec.build(64, 2, keys).to(DEVICE)
        h, noise = torch.randn(batch.num_nodes, 121, 64, device=DEVICE), Noise(torch.tensor(keys, device=DEVICE), 3)

        def fused(h: Tensor, scorer=scorer, noise=noise) -> Tensor:
            return _fused_edge_loss.split_edge_loss(*scorer.node_tables(h, noise), targets, batch, 0.1)

        found = with_gradients(fused, [h])
        with plain():
            wanted = with_gradients(lambda h: edge_loss(scorer(h, batch, noise), targets, batch.topology, 0.1), [h])  # noqa: B023
        check(record, f"edge loss, {spec}", found, wanted, 2e-5)


def check_networks(record: Record, batch: GraphBatch) -> None:
    spec = GAT(hidden=64, heads=(4, 4, 6))
    encoder = spec.build(batch.num_features, 8, [1, 2]).to(DEVICE)
    noise = Noise(torch.tensor([1, 2], device=DEVICE), 0)

    def gradients(out: Tensor) -> list[Tensor]:
        encoder.zero_grad()
        out.square().mean().backward()
        return [out.detach(), *(p.grad.clone() for p in encoder.parameters())]

    found = gradients(encoder(batch, noise))
    with plain():
        wanted = gradients(encoder(batch, noise))
    check(record, "GAT network, output and gradients", found, wanted, 1e-3)
