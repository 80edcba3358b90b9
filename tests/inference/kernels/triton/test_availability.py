"""When the Triton kernel is taken, what it says where it cannot be had, and that it compiles for a GPU without one."""

import os
import subprocess
import sys

import pytest
import torch
from inference.kernels.test_kernels import problem_of, random_field

from accord import propagate
from accord.errors import OptionError
from accord.inference.kernels import choose_kernel
from accord.inference.kernels.triton import _solve as _triton

DEVICE = "cuda" if torch.cuda.is_available() else "cpu"

pytestmark = pytest.mark.skipif(_triton.unavailable() is not None, reason="Triton is not installed")


def test_it_refuses_what_it_cannot_do(monkeypatch):
    field = random_field(4, 4, 3).to(DEVICE)
    with pytest.raises(OptionError, match="up to 64 states"):
        propagate(random_field(3, 2, 65).to(DEVICE), backend="triton")
    monkeypatch.delenv("TRITON_INTERPRET", raising=False)
    with pytest.raises(OptionError, match="the field is on cpu; move it to a GPU"):
        propagate(field.to("cpu"), backend="triton")


def test_gradients_go_through_it():
    """They are taken at the fixed point, or of the sweeps that were run, whichever kernel ran them."""
    field = random_field(6, 7, 3).to(DEVICE)
    found = []
    for backend in ("triton", "reference"):
        edge = field.edge.clone().requires_grad_()
        beliefs = propagate(field.with_potentials(edge=edge), max_sweeps=4, tolerance=0, backend=backend)
        assert beliefs.backend == backend
        found += torch.autograd.grad(beliefs.node[..., 0].sum(), edge)
    torch.testing.assert_close(*found)


def test_without_triton_it_says_what_to_install(monkeypatch):
    monkeypatch.setattr(_triton, "unavailable", lambda: "Triton is not installed")
    with pytest.raises(OptionError, match="pip install 'triton"):
        propagate(random_field(4, 4, 3).to(DEVICE), backend="triton")


@pytest.mark.parametrize(("version", "works"), [("3.3.1", False), ("3.4.0", True), ("3.10.0+git1", True)])
def test_an_old_triton_is_left_alone(monkeypatch, version, works):
    monkeypatch.setattr("triton.__version__", version)
    _triton.unavailable.cache_clear()
    try:
        assert (_triton.unavailable() is None) == works
    finally:
        _triton.unavailable.cache_clear()


def test_device_code_can_be_imported_without_triton():
    """Modules are imported by tools that list a package; only running them takes Triton."""
    code = (
        "import sys; sys.modules['triton'] = None\n"
        "import accord.inference.kernels.triton.device._kernels, accord.inference.kernels as kernels\n"
        "assert 'triton' in kernels.KERNELS"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_auto_takes_it_on_gpus_alone():
    name = choose_kernel("auto", problem_of(random_field(4, 4, 3).to(DEVICE)))[0]
    assert (name == "triton") == (DEVICE == "cuda")


COMPILE = r"""
import re, sys, torch
from triton.backends.compiler import GPUTarget
from triton.runtime import driver

class Hopper:
    def get_current_target(self): return GPUTarget("cuda", 90, 32)
    def get_current_device(self): return 0
    def get_current_stream(self, device=0): return 0

driver.set_active(Hopper())
from inference.kernels.test_kernels import barred, problem_of, random_field
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


def test_it_compiles_for_a_gpu_without_one():
    """What the interpreter cannot tell: that the compiler takes the kernels, and loads and adds whole vectors."""
    environment = {key: value for key, value in os.environ.items() if key != "TRITON_INTERPRET"}
    environment["PYTHONPATH"] = os.pathsep.join([os.path.dirname(os.path.dirname(__file__)), *sys.path])
    done = subprocess.run([sys.executable, "-c", COMPILE], capture_output=True, text=True, env=environment)
    assert done.returncode == 0, done.stderr[-3000:]
