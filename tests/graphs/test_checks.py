"""Features are finite floats, one row for each node."""

import pytest
import torch

from accord.errors import GraphError, InputTypeError
from accord.graphs._checks import check_features


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.float16, torch.bfloat16])
@pytest.mark.parametrize("shape", [(3, 2), (0, 2), (3, 0)])
def test_good_features_come_back_as_they_are(dtype, shape):
    x = torch.ones(shape, dtype=dtype, requires_grad=True)
    assert check_features(x, shape[0], "fit") is x


@pytest.mark.parametrize("number", [float("nan"), float("inf"), float("-inf")])
def test_the_first_feature_that_is_not_finite_is_named(number):
    x = torch.ones(4, 3, requires_grad=True)
    with torch.no_grad():
        x[2, 1] = x[3, 0] = number
    with pytest.raises(GraphError, match=rf"fit: x holds {number} \(2 bad entries, the first at node 2, feature 1\)"):
        check_features(x, 4, "fit")


@pytest.mark.parametrize(
    ("x", "error", "says"),
    [
        (torch.ones(3), GraphError, r"x\[:, None\]"),
        (torch.ones(2, 3), GraphError, r"\[3, features\] is needed"),
        (torch.ones(1, 3, 2), GraphError, r"shape \[1, 3, 2\]"),
        (torch.ones(3, 2).long(), InputTypeError, r"Convert them with \.float\(\)"),
        (torch.ones(3, 2).bool(), InputTypeError, "torch.bool"),
        (torch.ones(3, 2).to_sparse(), InputTypeError, "dense"),
        (torch.ones(3, 2, device="meta"), InputTypeError, "meta"),
        ([[1.0]], InputTypeError, "torch.as_tensor"),
        (None, InputTypeError, "NoneType"),
    ],
)
def test_features_of_another_form_are_refused(x, error, says):
    with pytest.raises(error, match=says):
        check_features(x, 3, "fit")
