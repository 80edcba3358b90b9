"""Solve random fields with the CPU kernel under the address and undefined-behaviour sanitizers.

    python tests/attack/sanitised_kernel.py --fields 10000

The kernel is compiled with both sanitizers (about three minutes, once), and solves one field for each seed in processes
that have the sanitizers' runtimes loaded. A finding is printed with its report and the seed that repeats it
(`--seed 17 --fields 1`); the exit status is 1 if there was one.
"""

import argparse
import ctypes
import hashlib
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).parents[2]
FLAGS = ("-std=c++17", "-O1", "-g1", "-fno-omit-frame-pointer", "-fPIC", "-shared", "-pthread", "-w", "-march=native")
SANITIZERS = ("-fsanitize=address,undefined", "-fno-sanitize-recover=all")
RUNTIMES = ("libasan.so", "libubsan.so", "libstdc++.so")  # the last, because exceptions are intercepted
OPTIONS = {
    "ASAN_OPTIONS": "detect_leaks=0:detect_stack_use_after_return=0",  # Python frees little when it ends
    "UBSAN_OPTIONS": "print_stacktrace=1:halt_on_error=1",
    "OMP_NUM_THREADS": "1",
}
REPORT_LINES = 30
STATES = (1, 2, 2, 3, 3, 4, 5, 6, 7, 8, 9, 12, 15, 16, 17, 31, 33, 64, 65, 71, 130)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--fields", type=int, default=1000, help="how many fields to solve")
    parser.add_argument("--seed", type=int, default=0, help="seed of the first field")
    parser.add_argument("--seconds", type=float, default=float("inf"), help="stop after this time")
    parser.add_argument("--library", type=Path, help="a sanitised kernel that was built before")
    parser.add_argument("--worker", action="store_true", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.worker:
        return work(given.library, given.seed, given.seed + given.fields, given.seconds)
    library = given.library or build()
    begun, seed, end, findings = time.monotonic(), given.seed, given.seed + given.fields, 0
    while seed < end and (left := given.seconds - (time.monotonic() - begun)) > 0:
        done, report = run_worker(library, seed, end, left)
        seed += done
        if report is None:
            break
        findings += 1
        print(f"seed {seed}:\n{report}\n", flush=True)
        seed += 1
    print(f"{seed - given.seed} fields, {findings} findings, {time.monotonic() - begun:.0f} seconds")
    return int(findings > 0)


def build() -> Path:
    """Compile the kernel with the sanitizers, unless this source was compiled before."""
    native = ROOT / "accord" / "inference" / "kernels" / "cpu" / "native"
    source = b"".join(path.read_bytes() for path in sorted(native.glob("*.[ch]pp")))
    code = hashlib.sha256(source + repr((FLAGS, SANITIZERS)).encode()).hexdigest()[:16]
    folder = Path(tempfile.gettempdir()) / f"accord-sanitized-{os.getuid()}"
    folder.mkdir(mode=0o700, exist_ok=True)
    if folder.stat().st_uid != os.getuid():
        raise SystemExit(f"{folder} belongs to another user. Set TMPDIR to a folder of your own.")
    library = folder / f"{code}.so"
    if not library.exists():
        print("compiling the kernel with sanitizers ...", flush=True)
        made = library.with_suffix(f".{os.getpid()}")
        subprocess.run(["g++", *FLAGS, *SANITIZERS, str(native / "propagate.cpp"), "-o", str(made)], check=True)
        made.replace(library)
    return library


def run_worker(library: Path, seed: int, end: int, seconds: float) -> tuple[int, str | None]:
    """Solve fields in one process: how many it solved, and its report if something was found."""
    found = [subprocess.check_output(["g++", f"-print-file-name={name}"], text=True).strip() for name in RUNTIMES]
    with tempfile.TemporaryFile("w+") as errors:
        process = subprocess.run(
            [sys.executable, "-W", "ignore", __file__, "--worker", "--library", str(library)]
            + ["--seed", str(seed), "--fields", str(end - seed), "--seconds", str(seconds)],
            stdout=subprocess.PIPE,
            stderr=errors,
            text=True,
            env={**os.environ, **OPTIONS, "LD_PRELOAD": " ".join(found), "PYTHONPATH": str(ROOT)},
        )
        errors.seek(0)
        report = "".join(errors.readlines()[:REPORT_LINES])
    return process.stdout.count("."), None if process.returncode == 0 else f"status {process.returncode}\n{report}"


def work(library: Path, first: int, last: int, seconds: float) -> int:
    """Solve one field after the other; each prints a dot."""
    from accord.errors import InfeasibleError
    from accord.inference.kernels.cpu import _solve

    loaded = ctypes.CDLL(str(library))
    _solve.load_library = lambda: loaded
    _solve.unavailable = lambda: None
    _solve.ONE_THREAD_WORK = 0  # several threads for small fields too
    begun = time.monotonic()
    for seed in range(first, last):
        if time.monotonic() - begun > seconds:
            break
        try:
            solve(seed)
        except InfeasibleError:
            pass
        print(".", end="", flush=True)
    return 0


def solve(seed: int) -> None:
    """Draw a field and options from a seed, and solve it; NaN is an error."""
    import torch

    from accord import PairwiseField, propagate

    random = torch.Generator().manual_seed(seed)

    def draw(low: int, high: int) -> int:
        return int(torch.randint(low, high + 1, (), generator=random))

    def chance(share: float) -> bool:
        return float(torch.rand((), generator=random)) < share

    states = STATES[draw(0, len(STATES) - 1)]
    graphs = draw(2, 40) if chance(0.5) else 1
    edges = draw(2048, 6000) if chance(0.1) and states < 10 else draw(0, 400 if states < 20 else 60)
    each = draw(1, 12) if graphs > 1 and chance(0.8) else draw(2, 300)
    nodes, lead = graphs * each, (draw(1, 3),) if chance(0.3) else ()
    dtype = torch.float32 if chance(0.5) else torch.float64
    source = torch.randint(0, nodes, (edges,), generator=random)
    target = source // each * each + torch.randint(0, each, (edges,), generator=random)
    pairs = torch.stack([source, target])[:, source != target]
    index = torch.unique(pairs.sort(0).values, dim=1)
    index = index[:, torch.randperm(index.shape[1], generator=random)]
    order = torch.randperm(nodes, generator=random)
    scale = (0.0, 0.3, 1.0, 10.0, 100.0, 1e4, 1e30)[draw(0, 6)]

    def potentials(*shape: int) -> torch.Tensor:
        values = scale * torch.randn(*lead, *shape, generator=random, dtype=torch.float64)
        if chance(0.3):
            off = torch.rand(values.shape, generator=random) < 0.15
            values = values.masked_fill(off, -torch.inf)
        return values.to(dtype)

    graph = torch.empty(nodes, dtype=torch.long)
    graph[order] = torch.arange(nodes) // each
    node, edge = potentials(nodes, states), potentials(index.shape[1], states, states)
    field = PairwiseField(order[index], node, edge, graph, graphs + draw(0, 2))
    options = {
        "semiring": "max" if chance(0.4) else "sum",
        "damping": float(torch.rand((), generator=random)) if chance(0.3) else 0.0,
        "max_sweeps": draw(0, 6),
        "tolerance": (0.0, 1e-3, 1.0)[draw(0, 2)],
    }
    if chance(0.2) and scale < 1e30:
        options["edge_appearance"] = 0.1 + 0.9 * torch.rand(field.num_edges, generator=random)
    if chance(0.2):
        options["start"] = scale * torch.randn(
            *lead, 2 * field.num_edges, states, generator=random, dtype=torch.float64
        ).to(dtype)
    torch.set_num_threads(draw(1, 3))
    beliefs = propagate(field, backend="native", **options)
    assert not bool(beliefs.messages.isnan().any()), "messages are NaN"


if __name__ == "__main__":
    sys.exit(main())
