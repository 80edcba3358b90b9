"""The device code compiles for a GPU, also on a machine without one."""

import os
import subprocess
import sys

import pytest

from accord.inference.kernels import triton

pytestmark = pytest.mark.skipif(triton.unavailable() is not None, reason="Triton is not installed")

COMPILE = r"""
import re, sys, torch
from triton.backends.compiler import GPUTarget
from triton.runtime import driver

class Hopper:
    def get_current_target(self): return GPUTarget("cuda", 90, 32)
    def get_current_device(self): return 0
    def get_current_stream(self, device=0): return 0

driver.set_active(Hopper())
from inference.kernel_cases import barred, problem_of, random_field
from accord.inference.kernels.triton.device import _kernels as kernels
from accord.inference.kernels.triton import _layout as _triton_layout
from accord.inference.kernels.triton import _plan as _triton_plan

_triton_layout._launch = lambda kernel, programs, *given: kernel.warmup(*given, num_warps=4, grid=(1,))

def compiled(name, field, **options):
    plan = _triton_plan.make_plan(problem_of(field, **options))
    kernel = getattr(kernels, name)
    return kernel.warmup(plan.memory, 100, 50, 2, 1, 1, 1, plan.form, num_warps=4, grid=(1,)).asm["ptx"]

small = random_field(12, 20, 3, dtype=torch.float32, graphs=2)
ptx = compiled("sweep", small, tolerance=0.0)
# Rows of totals are read, to stay in cache, and added to in vectors; tables and messages are read to be evicted.
assert ptx.count("add.v4.f32") == len(re.findall(r"ld\.global\S*evict_last\S*\.v4", ptx)) == 2, ptx
assert re.search(r"ld\.global\S*evict_first\S*\.v2", ptx) and re.search(r"st\.global\S*evict_first\S*\.v2", ptx), ptx
held, _triton_plan._cache_bytes = _triton_plan._cache_bytes, lambda device: 2 * 12 * 4 * 4 - 1
ptx = compiled("sweep", small, tolerance=0.0)
assert "evict" not in ptx and ptx.count("add.v4.f32") == ptx.count("ld.global.v4") == 2, "totals of 12 nodes do not fit"
_triton_plan._cache_bytes = held
# With two states a table is one vector, a pair of messages another, and totals are single numbers.
two = random_field(12, 20, 2, dtype=torch.float32)
ptx = compiled("sweep", two, tolerance=0.0)
assert ptx.count("ld.global.v4") == ptx.count("ld.global.v2") == ptx.count("st.global.v2") == 1, ptx
assert len(re.findall(r"(?:atom|red)\.global[\w.]*\.add\.f32", ptx)) == 2, ptx
compiled("solve_groups", random_field(12, 20, 2, graphs=2, scale=500.0), damping=0.3, edge_appearance=0.5)
compiled("solve_groups", small.with_potentials(edge=barred(small.edge, 0.1)), damping=0.3)
compiled("solve_groups", random_field(12, 20, 5, graphs=2), semiring="max", edge_appearance=0.5)
compiled("sweep", random_field(12, 20, 18, dtype=torch.float32), tolerance=0.0)
_triton_plan.SMALL, _triton_plan.RUNS, _triton_plan.SORTED_SWEEPS = (0, 0), (1, 1), 0
for states in (2, 3):
    for each in ({"semiring": "max"}, {"semiring": "sum", "damping": 0.3, "edge_appearance": 0.5}):
        compiled("sweep", random_field(12, 20, states, dtype=torch.float32), **each)
_triton_layout.LARGE = 0
compiled("sweep", two)
torch.use_deterministic_algorithms(True)
compiled("sweep", small)
compiled("collect", two)
compiled("collect", small.with_potentials(edge=barred(small.edge, 0.1)), edge_appearance=0.5)
"""


def test_kernels_compile_and_use_whole_vectors():
    """The interpreter can show neither."""
    environment = {key: value for key, value in os.environ.items() if key != "TRITON_INTERPRET"}
    environment["PYTHONPATH"] = os.pathsep.join(sys.path)
    done = subprocess.run([sys.executable, "-c", COMPILE], capture_output=True, text=True, env=environment)
    assert done.returncode == 0, done.stderr[-3000:]
