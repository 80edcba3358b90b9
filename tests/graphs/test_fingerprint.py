"""The code for the content of graphs."""

import pytest
import torch
from torch_geometric.data import Data

from accord._files import fingerprint
from accord.graphs import fingerprint_graphs

TYPES = [torch.float32, torch.float64, torch.float16, torch.bfloat16, torch.int64, torch.bool]


def graph(dtype):
    index = torch.tensor([[0, 1], [1, 2]])
    return Data(x=torch.arange(6.0).view(3, 2), edge_index=index, edge_attr=torch.ones(2, 3).to(dtype))


@pytest.mark.parametrize("dtype", TYPES)
def test_numbers_of_every_type_count(dtype):
    before, after = graph(dtype), graph(dtype)
    assert fingerprint_graphs([before]) == fingerprint_graphs([after])
    after.edge_attr[1, 2] = 0
    assert fingerprint_graphs([before]) != fingerprint_graphs([after])
    assert len({fingerprint_graphs([graph(other)]) for other in TYPES}) == len(TYPES)


def test_the_code_is_that_of_names_shapes_types_and_bytes():
    """Runs of earlier versions keep such codes."""
    one = Data(x=torch.arange(6.0).view(3, 2).t(), edge_index=torch.empty(2, 0, dtype=torch.long))
    parts = ["x [2, 3] torch.float32", one.x.contiguous().numpy().tobytes(), "edge_index [2, 0] torch.int64", b""]
    assert fingerprint_graphs([one]) == fingerprint(parts)
