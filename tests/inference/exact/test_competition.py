"""Elimination against the reference answers of the UAI competitions."""

import gzip
import math
import os
from pathlib import Path

import pytest
import torch

from accord import FactorField, TableFactors
from accord.inference import eliminate_beliefs

WIDE = 2**27  # entries of one table; the widest model here has cliques of 11 states ** 7


def read_field(path):
    """A model of the UAI format; factors of one shape are a group."""
    words = iter(gzip.open(path, "rt").read().split())
    next(words)
    counts = [int(next(words)) for _ in range(int(next(words)))]
    scopes = [[int(next(words)) for _ in range(int(next(words)))] for _ in range(int(next(words)))]
    shapes = {}
    for scope in scopes:
        values = [float(next(words)) for _ in range(int(next(words)))]
        shape = tuple(counts[node] for node in scope)
        shapes.setdefault(shape, []).append((scope, torch.tensor(values, dtype=torch.float64).log().reshape(shape)))
    groups = [
        TableFactors(torch.tensor([scope for scope, _ in members]), torch.stack([table for _, table in members]))
        for members in shapes.values()
    ]
    return FactorField(
        torch.zeros(len(counts), max(counts), dtype=torch.float64), groups, num_states=torch.tensor(counts)
    )


def assert_reference(name):
    folder = Path(os.environ["ACCORD_DATA"]) / "uai"
    field = read_field(folder / f"{name}.uai.gz")
    beliefs = eliminate_beliefs(field, max_table=WIDE)
    wanted = float((folder / f"{name}.PR").read_text().split()[1]) * math.log(10)
    assert float(beliefs.log_partition) == pytest.approx(wanted, rel=1e-5)  # given in six digits
    words = iter((folder / f"{name}.MAR").read_text().split()[1:])
    assert int(next(words)) == field.num_nodes
    for variable in range(field.num_nodes):
        marginal = torch.tensor([float(next(words)) for _ in range(int(next(words)))], dtype=torch.float64)
        torch.testing.assert_close(beliefs.node[variable, : len(marginal)].exp(), marginal, rtol=0, atol=1e-5)


@pytest.mark.data("uai/mar_CSP_12.uai.gz")
def test_constraints_of_three_variables_with_two_to_four_states():
    assert_reference("mar_CSP_12")


@pytest.mark.data("uai/mar_Grids_11.uai.gz")
def test_grid():
    assert_reference("mar_Grids_11")


@pytest.mark.data("uai/mar_Grids_13.uai.gz")
def test_grid_with_strong_couplings():
    assert_reference("mar_Grids_13")


@pytest.mark.data("uai/mar_Segmentation_12.uai.gz")
def test_segmentation():
    assert_reference("mar_Segmentation_12")


@pytest.mark.data("uai/mar_DBN_12.uai.gz")
def test_dynamic_network():
    assert_reference("mar_DBN_12")
