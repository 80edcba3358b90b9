"""The fused GPU kernel on this GPU: is it right, how fast is it, how much memory does it take.

    python benchmarks/bench_kernels_gpu.py OUTPUT_FOLDER [--only checks|times|memory] [--workers 8]

Checks compare it with the reference on random problems, in several processes, since compiling takes longest. Times are
medians of five, by CUDA events: one sweep is the slope between few and many sweeps, so set-up drops out and is shown
on its own. Whatever fails is shown and left out; `results.json` and `results.md` hold the rest. About three minutes.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import time
import traceback
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path

import torch
import triton

from accord import PairwiseField, propagate
from accord.errors import InfeasibleError
from accord.graphs import Arcs
from accord.inference._semiring import REDUCE
from accord.inference.kernels import KERNELS, Problem, _triton, _triton_plan
from accord.inference.kernels._reference import arc_potentials, cavities, collect, normalise

BEGUN = time.perf_counter()
BUDGET = 170.0  # seconds; optional parts are left out when it runs short


def left() -> float:
    return BUDGET - (time.perf_counter() - BEGUN)


# ---- problems


def random_index(nodes: int, edges: int, seed: int = 0) -> torch.Tensor:
    """Edges between different nodes, uniformly drawn, in no order; a few may be drawn twice."""
    generator = torch.Generator("cuda").manual_seed(seed)
    source = torch.randint(0, nodes, (edges,), generator=generator, device="cuda")
    step = torch.randint(1, nodes, (edges,), generator=generator, device="cuda")
    return torch.stack([source, (source + step) % nodes])


def grid_index(side: int) -> torch.Tensor:
    number = torch.arange(side * side, device="cuda").reshape(side, side)
    across = torch.stack([number[:, :-1].flatten(), number[:, 1:].flatten()])
    down = torch.stack([number[:-1].flatten(), number[1:].flatten()])
    return torch.cat([across, down], 1)


def tiny_index(count: int) -> torch.Tensor:
    """Graphs of 6 nodes and 7 edges: a ring with a chord."""
    ring = torch.tensor([[0, 1, 2, 3, 4, 5, 0], [1, 2, 3, 4, 5, 0, 3]], device="cuda")
    return (ring[:, None] + 6 * torch.arange(count, device="cuda")[:, None]).reshape(2, -1)


def make_problem(nodes: int, index: torch.Tensor, states: int, graphs: int = 1, semiring: str = "sum") -> Problem:
    """A random field with couplings that neither vanish nor saturate."""
    generator = torch.Generator("cuda").manual_seed(0)
    arcs, edges = Arcs.along(index), index.shape[1]
    edge = torch.randn(1, edges, states, states, generator=generator, device="cuda").mul_(0.5)
    return Problem(
        arcs=arcs,
        node=torch.randn(1, nodes, states, generator=generator, device="cuda"),
        edge=edge,
        appearance=torch.ones(1, 1, device="cuda").expand(1, edges),
        edge_graph=index[0] // (nodes // graphs),
        num_graphs=graphs,
        semiring=semiring,
        damping=0.0,
        max_sweeps=1,
        tolerance=0.0,
        start=None,
    )


WORKLOADS: dict[str, Callable[[str], Problem]] = {
    "a 20k/100k K=3": lambda s: make_problem(20_000, random_index(20_000, 100_000), 3, 1, s),
    "b 20k/1M K=2": lambda s: make_problem(20_000, random_index(20_000, 1_000_000), 2, 1, s),
    "c 5,000 x 6/7 K=7": lambda s: make_problem(30_000, tiny_index(5000), 7, 5000, s),
    "d 200x200 grid K=16": lambda s: make_problem(40_000, grid_index(200), 16, 1, s),
    "e 1M/5M K=3": lambda s: make_problem(1_000_000, random_index(1_000_000, 5_000_000), 3, 1, s),
    "f 20k/100k K=40": lambda s: make_problem(20_000, random_index(20_000, 100_000), 40, 1, s),
    "g 1M/10M K=3": lambda s: make_problem(1_000_000, random_index(1_000_000, 10_000_000), 3, 1, s),
    "h 1M/10M K=16": lambda s: make_problem(1_000_000, random_index(1_000_000, 10_000_000), 16, 1, s),
}


# ---- is it right


def check_cases() -> list[dict]:
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
    ]
    return cases


def check_field(case: dict) -> PairwiseField:
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
        return values.masked_fill(off, -torch.inf).to(dtype)

    node = potentials(nodes, states, share=case.get("barred_nodes", 0.0))
    edge = potentials(index.shape[1], states, states, share=case.get("barred_edges", 0.0))
    return PairwiseField(index, node, edge, torch.arange(nodes) // each, graphs).to("cuda")


def run_check(case: dict) -> dict:
    """Largest difference from the reference; in a process of its own."""
    begun = time.perf_counter()
    try:
        field = check_field(case)
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
            fine = all(isinstance(outcome, str) for outcome in outcomes)
            return {**case, "ok": fine, "note": f"{outcomes[0]!s:.60} | {outcomes[1]!s:.60}"}
        expected, got = outcomes
        same = (expected.messages == got.messages) | ((expected.messages - got.messages).abs() < 1e30)
        error = float(
            torch.where(expected.messages == got.messages, 0.0, (expected.messages - got.messages).abs()).max()
        )
        limit = (1e-9 if field.node.dtype == torch.float64 else 3e-4) * max(1.0, case.get("scale", 1.0))
        sweeps = int((expected.sweeps != got.sweeps).sum())
        # A residual that is within rounding of the tolerance may fall on either side of it.
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


def run_compile(name: str) -> dict:
    """Compile what the times need, so that they find it in Triton's cache."""
    begun = time.perf_counter()
    try:
        semiring, workload = name.split(" ", 1)
        nodes, states, graphs = {"c": (60, 7, 10)}.get(workload[0], (3000, int(workload.split("K=")[1]), 1))
        index = tiny_index(10) if workload[0] == "c" else random_index(nodes, 2000)
        KERNELS["triton"](make_problem(nodes, index, states, graphs, semiring))
        return {"compile": name, "ok": True, "seconds": round(time.perf_counter() - begun, 1)}
    except Exception:
        return {"compile": name, "ok": False, "note": traceback.format_exc()[-600:]}


def all_tasks() -> list[Callable[[], dict]]:
    compiles = [f"{semiring} {name}" for semiring in ("sum", "max") for name in WORKLOADS if name[0] not in "eg"]
    tasks = [partial(run_compile, name) for name in reversed(compiles)] + [partial(run_check, c) for c in check_cases()]
    return list(tasks)


def run_share(share: int, shares: int) -> None:
    """Every so-manieth task, its result as a line of JSON."""
    for task in all_tasks()[share::shares]:
        print(json.dumps(task(), default=str), flush=True)


def run_checks(folder: Path, workers: int) -> list[dict]:
    """All tasks in processes of their own: one that crashes takes only its own share along."""
    paths = [folder / f"share{number}.jsonl" for number in range(workers)]
    processes = []
    for number, path in enumerate(paths):
        command = [sys.executable, __file__, str(folder), "--share", str(number), str(workers)]
        processes.append(subprocess.Popen(command, stdout=path.open("w"), stderr=subprocess.STDOUT))
    results = []
    for process, path in zip(processes, paths, strict=True):
        try:
            process.wait(max(left() - 30, 10))
        except subprocess.TimeoutExpired:
            process.kill()
        lines = path.read_text().splitlines()
        results += [json.loads(line) for line in lines if line.startswith("{")]
        if process.wait() != 0:
            results.append({"ok": False, "note": f"{path.name} stopped: " + "\n".join(lines)[-1500:]})
    for result in results:
        print("ok  " if result["ok"] else "FAIL", {k: v for k, v in result.items() if k != "ok"}, flush=True)
    return results


# ---- how fast is it


def milliseconds(run: Callable[[], object], repeats: int = 5) -> float:
    """Median time of a run on the device, by events; one run before to warm up."""
    run()
    times = []
    for _ in range(repeats):
        begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        torch.cuda.synchronize()
        begin.record()
        run()
        end.record()
        end.synchronize()
        times.append(begin.elapsed_time(end))
    return statistics.median(times)


def slope(run: Callable[[int], object], few: int, many: int) -> float:
    """Milliseconds of one sweep."""
    return (milliseconds(lambda: run(many)) - milliseconds(lambda: run(few))) / (many - few)


def bytes_of_sweep(problem: Problem) -> int:
    """What a sweep must move: E (4 K^2 + 16 K + 8) + 12 N K."""
    (_, nodes, states), edges = problem.node.shape, problem.edge.shape[1]
    return int(edges * (4 * states**2 + 16 * states + 8) + 12 * nodes * states)


def copy_bandwidth(working_set: int) -> float:
    """GB/s, read and written together, of a copy whose two sides are the working set."""
    one = torch.ones(max(working_set // 8, 1024), device="cuda")
    other = torch.empty_like(one)
    copies = max(1, 2**28 // working_set)

    def run() -> None:
        for _ in range(copies):
            other.copy_(one)

    return 8 * len(one) * copies / milliseconds(run) / 1e6


def compiled_sweep(problem: Problem) -> float:
    """Milliseconds of one sweep of the reference's equations by torch.compile."""
    potentials = arc_potentials(problem)

    def sweep(messages: torch.Tensor) -> torch.Tensor:
        cavity = cavities(problem, messages, collect(problem, messages))
        return normalise(REDUCE[problem.semiring](potentials + cavity[..., :, None], dim=-2), problem.semiring)

    torch._dynamo.reset()
    fast = torch.compile(sweep)
    messages = problem.node.new_zeros(1, problem.arc_graph.shape[0], problem.node.shape[-1])
    return milliseconds(lambda: fast(messages))


def time_workload(name: str, semiring: str) -> dict:
    problem = WORKLOADS[name](semiring)
    moved = bytes_of_sweep(problem)
    few, many = (2, 12) if moved > 2**31 else (5, 45)
    row: dict = {"workload": name, "semiring": semiring, "MB": moved / 1e6}
    row["setup_ms"] = milliseconds(lambda: KERNELS["triton"](replace(problem, max_sweeps=0)))
    plan = _triton_plan.make_plan(problem)
    if plan.memory.groups is not None:
        row["solve_20_kernel_ms"] = milliseconds(lambda: _triton._solve_groups(plan, replace(problem, max_sweeps=20)))
        row["ms"] = slope(lambda n: _triton._solve_groups(plan, replace(problem, max_sweeps=n)), 20, 120)
    else:
        row["ms"] = slope(lambda n: _triton._solve_by_sweeps(plan, replace(problem, max_sweeps=n)), few, many)
    plan = None  # its memory is needed
    row["solve_20_ms"] = milliseconds(lambda: KERNELS["triton"](replace(problem, max_sweeps=20)))
    row["GB/s"] = moved / row["ms"] / 1e6
    row["copy GB/s"] = copy_bandwidth(moved)
    row["share of copy"] = row["GB/s"] / row["copy GB/s"]
    table = 8 * problem.edge.numel()
    if table * 8 < 100e9 and left() > 25:
        row["reference_ms"] = slope(lambda n: KERNELS["reference"](replace(problem, max_sweeps=n)), 1, 4)
        row["vs reference"] = row["reference_ms"] / row["ms"]
        row["reference_solve_20_ms"] = milliseconds(lambda: KERNELS["reference"](replace(problem, max_sweeps=20)), 3)
        row["solve vs reference"] = row["reference_solve_20_ms"] / row["solve_20_ms"]
    if semiring == "sum" and name[0] in "ac" and left() > 60:
        try:
            row["compiled_ms"] = compiled_sweep(problem)
            row["vs compiled"] = row["compiled_ms"] / row["ms"]
        except Exception:
            print(traceback.format_exc()[-1500:])
    return row


def run_times() -> list[dict]:
    rows = []
    order = [(name, "sum") for name in reversed(WORKLOADS)] + [(name, "max") for name in WORKLOADS]
    for name, semiring in order:
        if left() < 15 and semiring == "max":
            print("no time left for", name, semiring)
            continue
        try:
            rows.append(time_workload(name, semiring))
            print({k: round(v, 4) if isinstance(v, float) else v for k, v in rows[-1].items()}, flush=True)
        except Exception:
            print("FAIL", name, semiring, traceback.format_exc()[-2500:], flush=True)
        torch.cuda.empty_cache()
    return rows


# ---- how much memory does it take


def run_memory(edges: int = 100_000_000) -> dict:
    nodes, states = edges // 10, 3
    problem = make_problem(nodes, random_index(nodes, edges), states)
    torch.cuda.synchronize()
    torch.cuda.reset_peak_memory_stats()
    before = torch.cuda.memory_allocated()
    solution = KERNELS["triton"](replace(problem, max_sweeps=1))
    torch.cuda.synchronize()
    extra = torch.cuda.max_memory_allocated() - before
    formula = edges * (4 * states**2 + 8 * states)
    del solution
    result = {
        "edges": edges,
        "inputs GB": before / 1e9,
        "kernel GB": extra / 1e9,
        "tables + messages GB": formula / 1e9,
        "(tables + kernel) / (tables + messages)": (4 * states**2 * edges + extra) / formula,
    }
    plan = _triton_plan.make_plan(problem)
    result["ms"] = slope(lambda n: _triton._solve_by_sweeps(plan, replace(problem, max_sweeps=n)), 1, 6)
    result["GB/s"] = bytes_of_sweep(problem) / result["ms"] / 1e6
    return result


# ---- all of it


def as_markdown(results: dict) -> str:
    lines = ["# Fused GPU kernel", "", f"{results['device']}, torch {results['torch']}, triton {results['triton']}", ""]
    checks = results.get("checks", [])
    if checks:
        lines += [f"Checks: {sum(check['ok'] for check in checks)} of {len(checks)} passed.", ""]
        lines += [f"- FAILED: `{check}`" for check in checks if not check["ok"]]
    rows = results.get("times", [])
    if rows:
        columns = list(dict.fromkeys(key for row in rows for key in row))
        lines += ["| " + " | ".join(columns) + " |", "|" + "---|" * len(columns)]
        for row in rows:
            cells = [row.get(key, "") for key in columns]
            lines.append(
                "| " + " | ".join(f"{cell:.4g}" if isinstance(cell, float) else str(cell) for cell in cells) + " |"
            )
        lines.append("")
    if results.get("memory"):
        lines += [f"- {key}: {value:.4g}" for key, value in results["memory"].items()]
    return "\n".join(lines) + "\n"


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("folder", type=Path)
    parser.add_argument("--only", choices=["checks", "times", "memory"])
    parser.add_argument("--workers", type=int, default=min(10, os.cpu_count() or 1))
    parser.add_argument("--share", type=int, nargs=2, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.share:
        run_share(*options.share)
        return
    options.folder.mkdir(parents=True, exist_ok=True)
    results: dict = {"device": torch.cuda.get_device_name(), "torch": torch.__version__, "triton": triton.__version__}
    parts: dict[str, Callable[[], object]] = {
        "checks": lambda: run_checks(options.folder, options.workers),
        "times": run_times,
        "memory": run_memory,
    }
    for name, part in parts.items():
        if options.only in (None, name):
            begun = time.perf_counter()
            try:
                results[name] = part()
            except Exception:
                print("FAIL", name, traceback.format_exc(), flush=True)
            results[f"{name}_seconds"] = time.perf_counter() - begun
            torch.cuda.empty_cache()
            (options.folder / "results.json").write_text(json.dumps(results, indent=1, default=str))
            (options.folder / "results.md").write_text(as_markdown(results))
    print(as_markdown(results))


if __name__ == "__main__":
    main()
