"""Memory and time of gradients through propagation: plain unrolling, stretches of sweeps, fixed point.

Each way runs in its own process; memory is its peak minus what it held before the run.

    python benchmarks/inference/gradients.py [--side 60] [--states 4] [--sweeps 200]
"""

import argparse
import resource
import subprocess
import sys
import time

import torch

from accord import PairwiseField, propagate

WAYS = {"unrolled": ("reference", 0.0), "stretches": ("auto", 0.0), "fixed point": ("auto", 1e-5)}


def grid_field(side: int, states: int) -> PairwiseField:
    """A square grid with couplings weak enough to converge."""
    generator = torch.Generator().manual_seed(0)
    number = torch.arange(side * side).reshape(side, side)
    across = torch.stack([number[:, :-1].flatten(), number[:, 1:].flatten()])
    down = torch.stack([number[:-1].flatten(), number[1:].flatten()])
    index = torch.cat([across, down], 1)
    node = torch.randn(side * side, states, generator=generator)
    return PairwiseField(index, node, 0.5 * torch.randn(index.shape[1], states, states, generator=generator))


def measure(way: str, side: int, states: int, sweeps: int) -> str:
    """One forward and backward run: peak memory in MB, seconds of each pass, sweeps taken."""
    backend, tolerance = WAYS[way]
    field = grid_field(side, states)
    with torch.no_grad():
        propagate(field, max_sweeps=2)  # loads the kernel before the measurement
    field = field.with_potentials(field.node.requires_grad_(), field.edge.requires_grad_())
    before, first = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss, time.perf_counter()
    beliefs = propagate(field, max_sweeps=sweeps, tolerance=tolerance, backend=backend)
    loss = beliefs.node[:, 0].exp().sum()
    second = time.perf_counter()
    loss.backward()
    third, after = time.perf_counter(), resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    megabytes = (after - before) / 1024
    return f"| {way} | {int(beliefs.sweeps)} | {megabytes:.0f} | {second - first:.2f} | {third - second:.2f} |"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    for name, default in (("side", 60), ("states", 4), ("sweeps", 200)):
        parser.add_argument(f"--{name}", type=int, default=default)
    parser.add_argument("--way", choices=WAYS)
    options = parser.parse_args()
    if options.way:
        print(measure(options.way, options.side, options.states, options.sweeps))
        return
    print("| gradient | sweeps | memory, MB | forward, s | backward, s |\n|---|---|---|---|---|", flush=True)
    for way in WAYS:
        sizes = [f"--{name}={getattr(options, name)}" for name in ("side", "states", "sweeps")]
        subprocess.run([sys.executable, __file__, f"--way={way}", *sizes], check=True)


if __name__ == "__main__":
    main()
