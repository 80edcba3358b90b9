"""The fused edge loss against the loss of the scores of every edge; Triton's kernel in its interpreter, or on a GPU."""

import pytest
import torch
from encoders.encoder_cases import ATTRIBUTES, FEATURES, SEEDS, random_batch
from hypothesis import given, settings
from hypothesis import strategies as st
from support.triton_interpreter import DEVICE
from torch_geometric.data import Data

from accord.encoders import GCN, BilinearScorer, LinearScorer, Noise
from accord.graphs import GraphBatch
from accord.learning.objectives import EdgePart, edge_loss
from accord.learning.objectives import _fused_edge_loss as fused
from accord.learning.objectives._triton_edge_loss import triton_sums


def labels(nodes, states, replicas, seed=0, missing=0.2):
    generator = torch.Generator().manual_seed(seed)
    drawn = torch.randint(0, states, (replicas, nodes), generator=generator)
    return drawn.masked_fill(torch.rand(replicas, nodes, generator=generator) < missing, -1)


def tables(nodes, replicas, states, seed=0):
    generator = torch.Generator().manual_seed(seed)
    shapes = (nodes, replicas, states, states), (nodes, replicas, states, states), (replicas, states, states)
    return [torch.randn(*shape, generator=generator, dtype=torch.float64) for shape in shapes]


def plain(at_source, at_target, shared, targets, batch, smoothing, weights=None):
    source, target = batch.topology.edge_index
    logits = at_source[source] + at_target[target] + shared
    return edge_loss(logits.transpose(0, 1), targets, batch.topology, smoothing, weights)


def with_gradients(function, parts, *rest):
    leaves = [part.clone().requires_grad_() for part in parts]
    loss = function(*leaves, *rest)
    (loss * torch.linspace(0.5, 2, len(loss), dtype=loss.dtype, device=loss.device)).sum().backward()
    return [loss.detach(), *(leaf.grad for leaf in leaves)]


@settings(max_examples=25)
@given(
    st.integers(0, 10**6),
    st.integers(1, 4),
    st.integers(1, 3),
    st.booleans(),
    st.sampled_from([0.0, 0.3]),
    st.booleans(),
    st.booleans(),
    st.booleans(),
)
def test_value_and_gradient_are_those_of_the_plain_loss(
    seed, states, replicas, together, smoothing, small_blocks, weighted, many_pairs
):
    batch = random_batch(dtype=torch.float64)
    targets = labels(batch.num_nodes, states, 1 if together else replicas, seed)
    parts = tables(batch.num_nodes, replicas, states, seed)
    weights = parts[2].exp() if weighted else None
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(fused, "BLOCK_NUMBERS", 50 if small_blocks else fused.BLOCK_NUMBERS)
        patch.setattr(fused, "MANY_PAIRS", 1 if many_pairs else fused.MANY_PAIRS)
        found = with_gradients(fused.split_edge_loss, parts, targets, batch, smoothing, weights)
    for mine, theirs in zip(found, with_gradients(plain, parts, targets, batch, smoothing, weights), strict=True):
        torch.testing.assert_close(mine, theirs)


def test_the_gradient_is_right():
    batch = random_batch(dtype=torch.float64)
    targets = labels(batch.num_nodes, 2, 2)
    parts = [part.requires_grad_() for part in tables(batch.num_nodes, 2, 2)]
    assert torch.autograd.gradcheck(lambda *parts: fused.split_edge_loss(*parts, targets, batch, 0.1), parts)


@pytest.mark.parametrize(
    ("states", "replicas", "smoothing", "together"), [(2, 5, 0.0, False), (3, 2, 0.2, False), (2, 3, 0.0, True)]
)
def test_the_kernel_gives_the_same_sums(states, replicas, smoothing, together):
    batch = random_batch(dtype=torch.float64)
    targets = labels(batch.num_nodes, states, 1 if together else replicas)
    parts = [part.flatten(-2) for part in tables(batch.num_nodes, replicas, states)]
    wanted = fused.plain_sums(*parts, targets, batch.topology.edge_index, smoothing)
    batch = batch.to(DEVICE, torch.float32)
    moved = [part.float().to(DEVICE) for part in parts]
    found = triton_sums(*moved, targets.to(DEVICE), fused.incidence(batch), smoothing)
    for mine, theirs in zip(found, wanted, strict=True):
        torch.testing.assert_close(mine.cpu().double(), theirs, rtol=1e-5, atol=1e-5)


def test_no_edges_and_no_labels():
    batch = GraphBatch.collate([Data(x=torch.randn(3, 2))])
    parts = tables(3, 2, 2)
    loss, *found = with_gradients(fused.split_edge_loss, parts, labels(3, 2, 2), batch, 0.0)
    assert torch.equal(loss, torch.zeros_like(loss)) and all(not gradient.any() for gradient in found)
    batch = random_batch(dtype=torch.float64)
    nothing = torch.full((1, batch.num_nodes), -1)
    loss, *found = with_gradients(fused.split_edge_loss, tables(batch.num_nodes, 2, 2), nothing, batch, 0.0)
    assert torch.equal(loss, torch.zeros_like(loss)) and all(not gradient.any() for gradient in found)


SCORERS = {
    "linear": LinearScorer(dropout=0.5),
    "oriented": LinearScorer(dropout=0.5, symmetric=False),
    "hidden": LinearScorer(4, dropout=0.5),
    "bilinear": BilinearScorer(dropout=0.5),
    "attributes": LinearScorer(dropout=0.5),
}


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("name", SCORERS)
def test_networks_learn_the_same(name, weighted):
    batch = random_batch(dtype=torch.float64)
    targets = labels(batch.num_nodes, 3, len(SEEDS))
    scorer = SCORERS[name].build(5, 3, SEEDS, ATTRIBUTES if name == "attributes" else 0)
    part = EdgePart(GCN(hidden=4, dropout=0.2).build(FEATURES, 5, SEEDS), scorer).double()

    def gradients(loss):
        part.zero_grad()
        loss.sum().backward()
        return [loss.detach(), *(parameter.grad.clone() for parameter in part.parameters())]

    weights = torch.rand(len(SEEDS), 3, 3, dtype=torch.float64) if weighted else None
    found = gradients(fused.network_edge_loss(part, batch, targets, Noise(SEEDS, 3), 0.1, weights))
    wanted = gradients(edge_loss(part(batch, Noise(SEEDS, 3)), targets, batch.topology, 0.1, weights))
    for mine, theirs in zip(found, wanted, strict=True):
        torch.testing.assert_close(mine, theirs)


def test_which_scorers_are_sums_over_both_ends():
    h = torch.randn(4, len(SEEDS), 5)
    split = {name: s.build(5, 3, SEEDS, ATTRIBUTES if name == "attributes" else 0) for name, s in SCORERS.items()}
    assert [name for name, s in split.items() if s.node_tables(h, None) is not None] == ["linear", "oriented"]
