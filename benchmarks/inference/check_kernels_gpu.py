"""Check the fused GPU kernel against the reference on random problems of every kind.

    python benchmarks/inference/check_kernels_gpu.py [--workers 8] [--out benchmarks/gpu/propagation_checks.md]

Several processes share the work, since compiling takes longest. `accord bench inference --device cuda` measures speed.
"""

import argparse
import json
import os
import subprocess
import sys
import time
import traceback
from pathlib import Path

import torch
import triton

from accord import PairwiseField, propagate
from accord._files import write_text
from accord.errors import InfeasibleError

OUT = Path(__file__).parents[1] / "gpu" / "propagation_checks.md"


def all_cases() -> list[dict]:
    cases = []
    for states in (2, 3, 5, 7, 16, 40):
        for semiring in ("sum", "max"):
            cases.append({"states": states, "semiring": semiring})
    cases += [
        {"states": 3, "damping": 0.3, "edge_appearance": 0.7, "tolerance": 1e-3},
        {"states": 3, "edge_appearance": "spanning", "nodes": 60, "edges": 150},
        {"states": 3, "barred_nodes": 0.05, "damping": 0.3},
        {"states": 3, "barred_edges": 0.003},
        {"states": 3, "barred_edges": 0.003, "semiring": "max"},
        {"states": 5, "barred_edges": 0.003, "damping": 0.2, "dtype": "float64"},
        {"states": 3, "scale": 250.0, "dtype": "float64"},
        {"states": 7, "graphs": 700, "nodes": 4200, "edges": 4900, "tolerance": 1e-3, "sweeps": 30},
        {"states": 7, "graphs": 700, "nodes": 4200, "edges": 4900, "tolerance": 1e-3, "semiring": "max"},
        {"states": 3, "graphs": 40, "nodes": 4000, "edges": 9000, "tolerance": 1e-3, "damping": 0.1, "sweeps": 30},
        {"states": 3, "graphs": 3, "nodes": 6000, "edges": 9000, "tolerance": 1e-3, "sweeps": 30},
        {"states": 3, "graphs": 700, "nodes": 4200, "edges": 4900, "barred_edges": 0.002, "tolerance": 1e-3},
        {"states": 3, "replicas": 5, "tolerance": 1e-3, "sweeps": 30},
        {"states": 2, "replicas": 5, "graphs": 100, "nodes": 1200, "edges": 1500, "tolerance": 1e-3},
        {"states": 3, "dtype": "float64"},
        {"states": 7, "dtype": "float64", "graphs": 700, "nodes": 4200, "edges": 4900, "tolerance": 1e-9, "sweeps": 60},
        {"states": 16, "dtype": "float64"},
        {"states": 3, "deterministic": True, "edge_appearance": 0.8},
        {"states": 7, "deterministic": True, "graphs": 700, "nodes": 4200, "edges": 4900, "tolerance": 1e-3},
        {"states": 40, "graphs": 50, "nodes": 300, "edges": 350, "tolerance": 1e-3},
        {"states": 1},
        {"states": 64, "nodes": 300, "edges": 700},
        {"states": 64, "nodes": 300, "edges": 700, "barred_edges": 0.001, "dtype": "float64"},
        {"states": 40, "scale": 250.0, "dtype": "float64"},
        {"states": 24, "barred_edges": 0.001, "semiring": "max", "damping": 0.2},
        {"states": 24, "deterministic": True, "edge_appearance": 0.8},
        {"states": 2, "scale": 250.0, "dtype": "float64"},
        {"states": 2, "damping": 0.3, "edge_appearance": 0.7, "tolerance": 1e-3},
        {"states": 2, "deterministic": True, "graphs": 700, "nodes": 4200, "edges": 4900, "tolerance": 1e-3},
        {"states": 2, "barred_edges": 0.003},
    ]
    return cases


def make_field(case: dict) -> PairwiseField:
    nodes, edges, states = case.get("nodes", 3000), case.get("edges", 9000), case["states"]
    graphs, replicas, scale = case.get("graphs", 1), case.get("replicas", 0), case.get("scale", 0.7)
    generator = torch.Generator().manual_seed(0)
    each = nodes // graphs
    first = torch.randint(0, nodes, (3 * edges,), generator=generator)
    second = first // each * each + torch.randint(0, each, first.shape, generator=generator)
    low, high = torch.minimum(first, second), torch.maximum(first, second)
    key = (low * nodes + high)[low != high].unique()
    key = key[torch.randperm(len(key), generator=generator)[:edges]]
    index = torch.stack([key // nodes, key % nodes])
    lead = (replicas,) if replicas else ()
    dtype = getattr(torch, case.get("dtype", "float32"))

    def potentials(*shape: int, share: float) -> torch.Tensor:
        values = scale * torch.randn(*lead, *shape, generator=generator, dtype=torch.float64)
        off = torch.rand(*lead, *shape, generator=generator) < share
        off[..., 0] = False  # otherwise a node may have no state left, and nothing is compared
        return values.masked_fill(off, -torch.inf).to(dtype)

    node = potentials(nodes, states, share=case.get("barred_nodes", 0.0))
    edge = potentials(index.shape[1], states, states, share=case.get("barred_edges", 0.0))
    return PairwiseField(index, node, edge, torch.arange(nodes) // each, graphs).to("cuda")


def run_check(case: dict) -> dict:
    """Largest difference from the reference."""
    begun = time.perf_counter()
    try:
        field = make_field(case)
        names = ("semiring", "damping", "edge_appearance")
        options = {name: case[name] for name in names if name in case}
        options |= {"max_sweeps": case.get("sweeps", 8), "tolerance": case.get("tolerance", 0.0)}
        if case.get("deterministic"):
            torch.use_deterministic_algorithms(True)
        outcomes = []
        for backend in ("reference", "triton"):
            try:
                outcomes.append(propagate(field, backend=backend, **options))
            except InfeasibleError as error:
                outcomes.append(str(error))
        if any(isinstance(outcome, str) for outcome in outcomes):
            return {**case, "ok": False, "note": f"{outcomes[0]!s:.60} | {outcomes[1]!s:.60}"}
        expected, got = outcomes
        same = (expected.messages == got.messages) | ((expected.messages - got.messages).abs() < 1e30)
        error = float(
            torch.where(expected.messages == got.messages, 0.0, (expected.messages - got.messages).abs()).max()
        )
        limit = (1e-9 if field.node.dtype == torch.float64 else 3e-4) * max(1.0, case.get("scale", 1.0))
        sweeps = int((expected.sweeps != got.sweeps).sum())
        # A residual close to the tolerance may fall on either side of it by rounding.
        allowed = 0 if field.node.dtype == torch.float64 else max(1, expected.sweeps.numel() // 50)
        fine = bool(same.all()) and (error < limit or 0 < sweeps <= allowed) and sweeps <= allowed
        result = {
            **case,
            "ok": fine,
            "error": error,
            "sweeps_differ": sweeps,
            "graphs_checked": expected.sweeps.numel(),
        }
        if case.get("deterministic"):
            runs = [propagate(field, backend="triton", **options).messages for _ in range(3)]
            result["same_bits"] = all(torch.equal(runs[0], run) for run in runs[1:])
            result["ok"] = fine and result["same_bits"]
        return {**result, "seconds": round(time.perf_counter() - begun, 1)}
    except Exception:
        return {**case, "ok": False, "note": traceback.format_exc()[-600:]}
    finally:
        torch.use_deterministic_algorithms(False)


def run_share(share: int, shares: int) -> None:
    """Run every `shares`-th check; each result is a line of JSON."""
    for case in all_cases()[share::shares]:
        print(json.dumps(run_check(case), default=str), flush=True)


def run_checks(workers: int) -> list[dict]:
    """Run all checks in several processes; a crash loses only its own share."""
    command = [sys.executable, __file__, "--workers", str(workers), "--share"]
    shares = [
        subprocess.Popen([*command, str(number)], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        for number in range(workers)
    ]
    results = []
    for number, share in enumerate(shares):
        text, _ = share.communicate()
        results += [json.loads(line) for line in text.splitlines() if line.startswith("{")]
        if share.returncode != 0:
            results.append({"ok": False, "note": f"share {number} stopped: {text[-1500:]}"})
    return results


def as_markdown(results: list[dict]) -> str:
    passed = sum(result["ok"] for result in results)
    versions = f"one {torch.cuda.get_device_name()}, torch {torch.__version__}, triton {triton.__version__}"
    lines = [
        "# Checks of the fused GPU kernel against the reference\n",
        f"Written by `benchmarks/inference/check_kernels_gpu.py` on {versions}: {passed} of {len(results)} passed.",
        "`error` is the largest difference of a log-message; `seconds` is mostly the time of compiling.\n",
    ]
    for result in results:
        text = ", ".join(f"{key} {value}" for key, value in result.items() if key != "ok")
        lines.append(f"    {'ok  ' if result['ok'] else 'FAIL'} {text}")
    return "\n".join(lines) + "\n"


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--workers", type=int, default=min(8, os.cpu_count() or 1))
    parser.add_argument("--out", type=Path, default=OUT)
    parser.add_argument("--share", type=int, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.share is not None:
        run_share(options.share, options.workers)
        return
    results = run_checks(options.workers)
    write_text(options.out, as_markdown(results))
    print(as_markdown(results))
    if not all(result["ok"] for result in results):
        sys.exit(1)


if __name__ == "__main__":
    main()
