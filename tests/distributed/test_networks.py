"""Networks on parts of a graph give own nodes and all edges what they give them in the whole graph."""

import pytest
import torch
from distributed.in_parts import run_in_parts
from distributed.network_cases import ON_PARTS, check_networks, check_refusals, check_without_exchange
from support.matrix import matrix

from accord.distributed._halo import Halo
from accord.encoders import ENCODERS


@pytest.mark.parametrize("ranks", [2, matrix(4)])
def test_networks_on_parts_equal_those_on_the_whole_graph(ranks):
    for farthest in run_in_parts(check_networks, ranks):
        assert {name for name, _ in farthest} == set(ON_PARTS)
        assert {dtype for _, dtype in farthest} == {torch.float32, torch.float64}


def test_without_the_exchange_they_differ():
    for off in run_in_parts(check_without_exchange, 2):
        assert min(off.values()) > 1e-3


def test_what_cannot_run_on_parts_is_refused():
    assert all(run_in_parts(check_refusals, 2))


def test_every_encoder_says_whether_it_runs_on_parts():
    built = {name: spec.build(6, 4, [0]) for name, spec in ENCODERS.items()}
    runs = {name for name, encoder in built.items() if encoder.on_parts}
    assert runs == {"gcn", "sage", "gat", "gcnii", "mlp", "linear"}


def test_a_halo_without_neighbours_needs_no_processes():
    values = torch.ones(3, 2)
    assert Halo(3, [torch.empty(0, dtype=torch.long)], [0]).exchange(values) is values
