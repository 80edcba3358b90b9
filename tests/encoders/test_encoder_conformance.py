"""Properties that every encoder has."""

import dataclasses
import json

import pytest
import torch
from encoders.encoder_cases import ENCODER_CASES, FEATURES, SEEDS, WIDE, random_batch, random_graph, random_graphs
from torch_geometric.data import Data

from accord.encoders import (
    GCN,
    Adapter,
    Encoder,
    EncoderSpec,
    GraphUNet,
    Noise,
    SequenceSpec,
    encoder_from_config,
)
from accord.errors import GraphError, OptionError
from accord.graphs import GraphBatch

OUT = 5
ALL = pytest.mark.parametrize("spec", ENCODER_CASES.values(), ids=ENCODER_CASES.keys())
WIDTHS = pytest.mark.parametrize("features", [FEATURES, WIDE], ids=["dense", "sparse"])


def gradients(encoder, batch, noise):
    """The output, and the parameters' gradients of a loss that is a sum over replicas."""
    out = encoder(batch, noise)
    weights = torch.linspace(-1, 1, out.shape[0] * out.shape[2], dtype=out.dtype).view(out.shape[0], 1, -1)
    (out * weights).sum().backward()
    return out.detach(), {name: parameter.grad for name, parameter in encoder.named_parameters()}


@ALL
@WIDTHS
def test_shapes_and_gradients(spec, features):
    batch = random_batch(features, spec=spec)
    encoder = spec.build(features, OUT, SEEDS)
    assert isinstance(encoder, Encoder)
    assert (encoder.out_channels, encoder.num_replicas) == (OUT, len(SEEDS))
    out, found = gradients(encoder, batch, Noise(SEEDS, 1))
    assert out.shape == (batch.num_nodes, len(SEEDS), OUT)
    assert out.isfinite().all()
    assert all(g is not None and g.isfinite().all() for g in found.values())
    assert sum(float(g.abs().sum()) > 0 for g in found.values()) >= len(found) - 2


@ALL
def test_evaluation_has_no_randomness(spec):
    batch, encoder = random_batch(spec=spec), spec.build(FEATURES, OUT, SEEDS)
    state = torch.get_rng_state()
    torch.testing.assert_close(encoder(batch), encoder(batch), rtol=0, atol=0)
    torch.testing.assert_close(encoder(batch, Noise(SEEDS, 1)), encoder(batch, Noise(SEEDS, 1)), rtol=0, atol=0)
    assert torch.equal(state, torch.get_rng_state()), "the caller's generator was used"


@ALL
def test_noise_differs_between_steps_where_there_is_dropout(spec):
    batch, encoder = random_batch(spec=spec), spec.build(FEATURES, OUT, SEEDS)
    same = torch.equal(encoder(batch, Noise(SEEDS, 1)), encoder(batch, Noise(SEEDS, 2)))
    drops = isinstance(spec, Adapter) or any("dropout" in name and value for name, value in vars(spec).items())
    assert same != drops


@ALL
@WIDTHS
def test_renumbering_nodes_renumbers_the_output(spec, features):
    if isinstance(spec, SequenceSpec):
        pytest.skip("the order of the nodes is that of the sequence")
    graph = random_graph(9, 4, features, dtype=torch.float64)
    order = torch.randperm(9, generator=torch.Generator().manual_seed(0))
    position = order.argsort()
    renumbered = Data(x=graph.x[order], edge_index=position[graph.edge_index])
    encoder = spec.build(features, OUT, SEEDS).double()
    torch.testing.assert_close(encoder(GraphBatch.collate([renumbered])), encoder(GraphBatch.collate([graph]))[order])


@ALL
@WIDTHS
def test_a_batch_equals_its_graphs_one_by_one(spec, features):
    graphs = random_graphs(features, torch.float64, spec)
    encoder = spec.build(features, OUT, SEEDS).double()
    apart = torch.cat([encoder(GraphBatch.collate([graph])) for graph in graphs])
    torch.testing.assert_close(encoder(GraphBatch.collate(graphs)), apart)


@ALL
@WIDTHS
def test_a_replica_depends_on_its_own_seed_only(spec, features):
    """Alone or among other replicas: the same weights, masks, outputs and gradients."""
    batch = random_batch(features, spec=spec)
    out, found = gradients(spec.build(features, OUT, SEEDS), batch, Noise(SEEDS, 7))
    for number, seed in enumerate(SEEDS):
        for seeds, place in (([seed], 0), ([99, seed, 98, 97], 1)):
            encoder = spec.build(features, OUT, seeds)
            other_out, other = gradients(encoder, batch, Noise(seeds, 7))
            torch.testing.assert_close(other_out[:, place], out[:, number], rtol=1e-5, atol=1e-5)
            for name, gradient in other.items():
                if "replicas." in name:  # an adapted module has a copy for each replica
                    if name.startswith(f"replicas.{place}."):
                        name_here = name.replace(f"replicas.{place}.", f"replicas.{number}.")
                        torch.testing.assert_close(gradient, found[name_here], rtol=1e-5, atol=1e-5)
                else:
                    torch.testing.assert_close(gradient[place], found[name][number], rtol=1e-5, atol=1e-5)


@ALL
def test_seeds_give_different_weights(spec):
    out = spec.build(FEATURES, OUT, SEEDS)(random_batch(spec=spec)).detach()
    assert float((out[:, 0] - out[:, 1]).abs().max()) > 1e-3


@ALL
@pytest.mark.parametrize("nodes, columns", [(1, 0), (3, 0), (1, 2)])
def test_graphs_without_edges(spec, nodes, columns):
    batch = GraphBatch.collate([random_graph(nodes, 1, columns=columns, spec=spec)])
    encoder = spec.build(FEATURES, OUT, SEEDS)
    out, _ = gradients(encoder, batch, Noise(SEEDS, 1))
    assert out.shape == (nodes, len(SEEDS), OUT) and out.isfinite().all()


@pytest.mark.parametrize("name", [name for name in ENCODER_CASES if "unet" not in name and "adapter" not in name])
@WIDTHS
def test_gradients_equal_finite_differences(name, features):
    """The directional derivative along a random direction, against a central difference."""
    spec = ENCODER_CASES[name]
    if getattr(spec, "activation", "tanh") in ("relu", "leaky_relu"):
        spec = dataclasses.replace(spec, activation="tanh")  # differentiable everywhere
    batch, noise = random_batch(features, torch.float64, spec), Noise(SEEDS, 5)
    encoder = spec.build(features, OUT, SEEDS).double()
    generator = torch.Generator().manual_seed(1)
    parameters = list(encoder.parameters())
    directions = [torch.randn(p.shape, generator=generator, dtype=p.dtype) for p in parameters]
    target = torch.randn(batch.num_nodes, len(SEEDS), OUT, generator=generator, dtype=torch.float64)
    found = torch.autograd.grad((encoder(batch, noise) * target).sum(), parameters)
    slope = sum(float((g * d).sum()) for g, d in zip(found, directions, strict=True))
    values, step = [], 1e-6
    for sign in (1, -1):
        with torch.no_grad():
            for p, d in zip(parameters, directions, strict=True):
                p += sign * step * d
            values.append(float((encoder(batch, noise) * target).sum()))
            for p, d in zip(parameters, directions, strict=True):
                p -= sign * step * d
    assert slope == pytest.approx((values[0] - values[1]) / (2 * step), rel=1e-5, abs=1e-5)


def test_gradients_reach_the_features():
    batch = random_batch(WIDE, torch.float64)
    for name in ("gcn all options", "sage", "gat", "gcnii"):
        x = batch.x.clone().requires_grad_()
        moved = GraphBatch(x, batch.topology)
        ENCODER_CASES[name].build(WIDE, OUT, SEEDS).double()(moved, Noise(SEEDS, 1)).square().sum().backward()
        assert x.grad is not None and float(x.grad.abs().sum()) > 0


@ALL
def test_sparse_and_dense_products_give_the_same_output(spec, monkeypatch):
    encoder = spec.build(WIDE, OUT, SEEDS).double()
    sparse = encoder(random_batch(WIDE, torch.float64, spec), Noise(SEEDS, 3))
    monkeypatch.setattr("accord.encoders.replica._inputs.SPARSE_BELOW", 0.0)
    torch.testing.assert_close(encoder(random_batch(WIDE, torch.float64, spec), Noise(SEEDS, 3)), sparse)


@ALL
def test_mixed_precision_stays_close(spec):
    batch, encoder = random_batch(WIDE, spec=spec), spec.build(WIDE, OUT, SEEDS)
    if "UNet" in type(spec).__name__:
        pytest.skip("PyG's sparse products have no half precision on the CPU")
    exact = encoder(batch).detach()
    with torch.autocast("cpu", torch.bfloat16):
        rough = encoder(batch)
        rough.float().square().sum().backward()
    assert float((rough.detach().float() - exact).abs().max()) < 0.1 * (1 + float(exact.abs().max()))


@ALL
@pytest.mark.skipif(not torch.cuda.is_available(), reason="no GPU")
def test_a_gpu_gives_the_same_output(spec):
    batch = random_batch(dtype=torch.float64, spec=spec)
    encoder = spec.build(FEATURES, OUT, SEEDS).double()
    torchs_noise = isinstance(spec, (Adapter, GraphUNet))  # drawn on the device, which gives other numbers
    here = encoder(batch, None if torchs_noise else Noise(SEEDS, 4))
    there = encoder.cuda()(batch.to("cuda"), None if torchs_noise else Noise(torch.tensor(SEEDS).cuda(), 4))
    torch.testing.assert_close(there.cpu(), here)


@ALL
def test_configurations_are_read_back_from_json(spec):
    if isinstance(spec, Adapter):
        with pytest.raises(OptionError, match="cannot be saved"):
            spec.to_config()
        return
    config = json.loads(json.dumps(spec.to_config()))
    assert encoder_from_config(config) == type(spec).from_config(config) == EncoderSpec.from_config(config) == spec


def test_graphs_with_other_features_are_refused():
    encoder = GCN().build(FEATURES + 1, OUT, SEEDS)
    with pytest.raises(GraphError, match="7 features a node.*built for 8"):
        encoder(random_batch())
    with pytest.raises(OptionError, match="2 replicas"):
        GCN().build(FEATURES, OUT, SEEDS)(random_batch(), Noise([1, 2], 0))
