"""Which kernel is chosen for a problem."""

import pytest
import torch
from inference.kernel_cases import problem_of, random_field, requires

from accord import propagate
from accord.errors import OptionError
from accord.inference.kernels import check_backend, choose_kernel, triton
from accord.inference.kernels.cpu import _solve

DEVICE = "cuda" if torch.cuda.is_available() else "cpu"


def test_auto_takes_the_fast_kernel_if_it_can_solve_the_problem():
    requires("native")
    field = random_field(6, 8, 3)
    assert choose_kernel("auto", problem_of(field))[0] == "native"
    for states in (3, 65, 300):
        field = random_field(6, 5, states)
        learnt = field.with_potentials(node=field.node.clone().requires_grad_())
        assert choose_kernel("auto", problem_of(field))[0] == "native"
        assert choose_kernel("auto", problem_of(learnt))[0] == "native"
    with pytest.raises(OptionError, match="unknown"):
        check_backend("fastest")


def test_native_refuses_too_many_states(monkeypatch):
    monkeypatch.setattr(_solve, "MAX_STATES", 8)
    assert choose_kernel("auto", problem_of(random_field(3, 2, 9)))[0] == "reference"
    with pytest.raises(OptionError, match="up to 8 states"):
        propagate(random_field(3, 2, 9), backend="native")


@pytest.mark.skipif(triton.unavailable() is not None, reason="Triton is not installed")
def test_auto_takes_the_triton_kernel_on_gpus_only():
    name = choose_kernel("auto", problem_of(random_field(4, 4, 3).to(DEVICE)))[0]
    assert (name == "triton") == (DEVICE == "cuda")
