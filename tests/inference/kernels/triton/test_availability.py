"""What the Triton backend refuses, and what it reports where Triton is absent or too old."""

import subprocess
import sys

import pytest
import torch
from inference.kernel_cases import random_field

from accord import propagate
from accord.errors import OptionError
from accord.inference.kernels.triton import _solve as _triton

DEVICE = "cuda" if torch.cuda.is_available() else "cpu"

pytestmark = pytest.mark.skipif(_triton.unavailable() is not None, reason="Triton is not installed")


def test_problems_that_it_cannot_solve_are_refused(monkeypatch):
    field = random_field(4, 4, 3).to(DEVICE)
    with pytest.raises(OptionError, match="up to 64 states"):
        propagate(random_field(3, 2, 65).to(DEVICE), backend="triton")
    monkeypatch.delenv("TRITON_INTERPRET", raising=False)
    with pytest.raises(OptionError, match="the field is on cpu; move it to a GPU"):
        propagate(field.to("cpu"), backend="triton")


def test_gradients_go_through_it():
    """Whichever kernel ran the sweeps."""
    field = random_field(6, 7, 3).to(DEVICE)
    found = []
    for backend in ("triton", "reference"):
        edge = field.edge.clone().requires_grad_()
        beliefs = propagate(field.with_potentials(edge=edge), max_sweeps=4, tolerance=0, backend=backend)
        assert beliefs.backend == backend
        found += torch.autograd.grad(beliefs.node[..., 0].sum(), edge)
    torch.testing.assert_close(*found)


def test_without_triton_the_error_names_what_to_install(monkeypatch):
    monkeypatch.setattr(_triton, "unavailable", lambda: "Triton is not installed")
    with pytest.raises(OptionError, match="pip install 'triton"):
        propagate(random_field(4, 4, 3).to(DEVICE), backend="triton")


@pytest.mark.parametrize(("version", "works"), [("3.3.1", False), ("3.4.0", True), ("3.10.0+git1", True)])
def test_an_old_triton_is_not_used(monkeypatch, version, works):
    monkeypatch.setattr("triton.__version__", version)
    _triton.unavailable.cache_clear()
    try:
        assert (_triton.unavailable() is None) == works
    finally:
        _triton.unavailable.cache_clear()


def test_device_code_can_be_imported_without_triton():
    """Tools that list a package import all its modules; only running them needs Triton."""
    code = (
        "import sys; sys.modules['triton'] = None\n"
        "import accord.inference.kernels.triton.device._kernels, accord.inference.kernels as kernels\n"
        "assert 'triton' in kernels.KERNELS and kernels.triton.unavailable() == 'Triton is not installed'"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
