"""Linear maps with one weight for each replica, against plain products; gradients by finite differences."""

import pytest
import torch
from torch.testing import assert_close

from accord.encoders.replica._linear import ReplicaLayerNorm, replica_linear, replica_linear_onto

NODES, REPLICAS, INPUTS, OUTPUTS = 5, 3, 4, 2


def drawn(*shapes):
    generator = torch.Generator().manual_seed(0)
    return [torch.randn(*shape, dtype=torch.float64, generator=generator, requires_grad=True) for shape in shapes]


@pytest.mark.parametrize("shared", [False, True])
def test_maps_are_products_for_each_replica(shared):
    shape = (NODES, INPUTS) if shared else (NODES, REPLICAS, INPUTS)
    h, weight, bias = drawn(shape, (REPLICAS, INPUTS, OUTPUTS), (REPLICAS, OUTPUTS))
    wanted = torch.einsum("ni,rio->nro" if shared else "nri,rio->nro", h, weight) + bias
    assert_close(replica_linear(h, weight, bias), wanted)
    assert_close(replica_linear(h, weight), wanted - bias)
    assert torch.autograd.gradcheck(replica_linear, (h, weight, bias))


@pytest.mark.parametrize("shared", [False, True])
def test_products_are_added_in_place(shared):
    shape = (NODES, INPUTS) if shared else (NODES, REPLICAS, INPUTS)
    base, h, weight = drawn((NODES, REPLICAS, OUTPUTS), shape, (REPLICAS, INPUTS, OUTPUTS))
    given = base.detach().clone()
    found = replica_linear_onto(given, h.detach(), weight.detach())
    assert found.data_ptr() == given.data_ptr() and not torch.equal(given, base)
    assert_close(found, (base + replica_linear(h, weight)).detach())
    assert torch.autograd.gradcheck(lambda b, *rest: replica_linear_onto(b * 1, *rest), (base, h, weight))
    viewed = replica_linear_onto((base * 1).unflatten(2, (1, OUTPUTS)).flatten(2), h, weight)
    names, node = set(), viewed.grad_fn
    while node is not None:
        names.add(node.name())
        node = node.next_functions[0][0] if node.next_functions else None
    assert not any("CopySlices" in name for name in names), "autograd copies every gradient"


def test_other_layouts_and_precisions_are_added_out_of_place():
    base, h, weight = drawn((NODES, REPLICAS, OUTPUTS), (NODES, REPLICAS, INPUTS), (REPLICAS, INPUTS, OUTPUTS))
    wanted = base + replica_linear(h, weight)
    strided = base.detach().transpose(0, 1).contiguous().transpose(0, 1)
    before = strided.clone()
    assert_close(replica_linear_onto(strided, h, weight), wanted)
    assert torch.equal(strided, before)
    single = replica_linear_onto(base.detach().float(), h, weight)
    assert single.dtype == torch.float64 and torch.allclose(single, wanted, atol=1e-5)


def test_layer_norm_starts_as_torchs():
    (h,) = drawn((NODES, REPLICAS, INPUTS))
    ours, theirs = ReplicaLayerNorm(INPUTS, list(range(REPLICAS))).double(), torch.nn.LayerNorm(INPUTS).double()
    assert_close(ours(h), theirs(h))
