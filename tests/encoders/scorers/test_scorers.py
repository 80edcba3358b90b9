"""Properties that every edge scorer has, and the definition of each."""

import json

import pytest
import torch
from encoders.encoder_cases import ATTRIBUTES, SCORER_CASES, SEEDS, random_batch, random_graph, random_graphs
from torch_geometric.data import Data

from accord.encoders import (
    AgreementScorer,
    BilinearScorer,
    BiLSTM,
    FullBilinearScorer,
    LinearScorer,
    Noise,
    Scorer,
    ScorerSpec,
    scorer_from_config,
)
from accord.encoders.scorers import _scorer
from accord.encoders.scorers._linear import LinearEdgeScorer
from accord.errors import GraphError, OptionError
from accord.field import symmetrise
from accord.graphs import GraphBatch, Topology

CHANNELS, STATES = 5, 3
DTYPE = torch.float64
ALL = pytest.mark.parametrize("spec", SCORER_CASES.values(), ids=SCORER_CASES.keys())


def representation(batch, dtype=DTYPE):
    generator = torch.Generator().manual_seed(8)
    return torch.randn(batch.num_nodes, len(SEEDS), CHANNELS, generator=generator, dtype=DTYPE).to(dtype)


def built(spec, seeds=SEEDS, attributes=ATTRIBUTES):
    return spec.build(CHANNELS, STATES, seeds, attributes).double()


def reversed_edges(batch):
    """The same edges with the opposite stored direction."""
    old = batch.topology
    flipped = Topology(old.num_nodes, old.edge_index.flip(0), old.column, old.graph, old.num_graphs)
    return GraphBatch(batch.x, flipped, batch.y, batch.edge_attr)


@ALL
@pytest.mark.parametrize("attributes", [0, ATTRIBUTES])
def test_shapes_and_gradients(spec, attributes):
    batch = random_batch(dtype=DTYPE)
    scorer, h = built(spec, attributes=attributes), representation(batch).requires_grad_()
    assert isinstance(scorer, Scorer) and (scorer.num_states, scorer.num_replicas) == (STATES, len(SEEDS))
    tables = scorer(h, batch, Noise(SEEDS, 1))
    assert tables.shape == (len(SEEDS), batch.num_edges, STATES, STATES) and tables.is_contiguous()
    tables.square().sum().backward()
    assert all(p.grad is not None and float(p.grad.abs().sum()) > 0 for p in scorer.parameters())
    assert float(h.grad.abs().sum()) > 0
    assert not torch.equal(tables, scorer(h, batch))


@ALL
def test_gradients_are_right(spec):
    batch = GraphBatch.collate(random_graphs(dtype=DTYPE)[:1])
    scorer = built(spec)
    h = representation(batch).requires_grad_()
    assert torch.autograd.gradcheck(lambda *_: scorer(h, batch), (h, *scorer.parameters()))


@ALL
def test_direction_matters_only_if_not_symmetric(spec):
    batch = random_batch(dtype=DTYPE)
    scorer, h = built(spec), representation(batch)
    forward, backward = scorer(h, batch), scorer(h, reversed_edges(batch)).transpose(-1, -2)
    if spec.symmetric:
        torch.testing.assert_close(forward, backward)
    else:
        assert float((forward - backward).detach().abs().max()) > 1e-3


@ALL
def test_renumbering_nodes_keeps_the_tables(spec):
    graph = random_graphs(dtype=DTYPE)[3]
    order = torch.randperm(9, generator=torch.Generator().manual_seed(0))
    renumbered = Data(x=graph.x[order], edge_index=order.argsort()[graph.edge_index], edge_attr=graph.edge_attr)
    here, there = GraphBatch.collate([graph]), GraphBatch.collate([renumbered])
    scorer, h = built(spec), representation(here)
    torch.testing.assert_close(scorer(h[order], there), scorer(h, here))


@ALL
@pytest.mark.parametrize("attributes", [0, ATTRIBUTES])
def test_scoring_in_blocks_gives_the_same_tables(spec, attributes, monkeypatch):
    batch = random_batch(dtype=DTYPE)
    scorer, h = built(spec, attributes=attributes), representation(batch)
    whole = scorer(h, batch)
    sizes = []
    score = scorer.score
    monkeypatch.setattr(scorer, "score", lambda *given: sizes.append(len(tables := score(*given))) or tables)
    monkeypatch.setattr(_scorer, "SCORING_BLOCK_ELEMENTS", 150)
    with torch.no_grad():
        torch.testing.assert_close(scorer(h, batch), whole.detach())
    assert len(sizes) > 1 and sum(sizes) == batch.num_edges
    sizes.clear()
    scorer(h, batch)
    assert sizes == [batch.num_edges]  # with a gradient, autograd would keep every block


@ALL
def test_a_batch_equals_its_graphs_one_by_one(spec):
    graphs = random_graphs(dtype=DTYPE)
    batch, scorer = GraphBatch.collate(graphs), built(spec)
    h = representation(batch)
    pieces = h.split([len(graph.x) for graph in graphs])
    apart = [scorer(piece, GraphBatch.collate([graph])) for piece, graph in zip(pieces, graphs, strict=True)]
    torch.testing.assert_close(scorer(h, batch), torch.cat(apart, 1))


@ALL
def test_a_replica_depends_on_its_own_seed_only(spec):
    batch = random_batch(dtype=DTYPE)
    h = representation(batch)
    scorer = built(spec)
    tables = scorer(h, batch, Noise(SEEDS, 2))
    tables.square().sum().backward()
    for number, seed in enumerate(SEEDS):
        alone = built(spec, [seed])
        table = alone(h[:, number : number + 1], batch, Noise([seed], 2))
        table.square().sum().backward()
        torch.testing.assert_close(table[0], tables[number])
        for mine, ours in zip(alone.parameters(), scorer.parameters(), strict=True):
            torch.testing.assert_close(mine.grad[0], ours.grad[number])


@ALL
def test_no_edges(spec):
    batch = GraphBatch.collate([Data(x=torch.randn(2, 3))])
    h = representation(batch, dtype=torch.float32).requires_grad_()
    tables = spec.build(CHANNELS, STATES, SEEDS, ATTRIBUTES)(h, batch, Noise(SEEDS, 0))
    assert tables.shape == (len(SEEDS), 0, STATES, STATES)
    tables.sum().backward()


@ALL
def test_edge_attributes_change_the_tables(spec):
    batch = random_batch(dtype=DTYPE)
    other = GraphBatch(batch.x, batch.topology, batch.y, batch.edge_attr + 1)
    scorer, h = built(spec), representation(batch)
    moved = (scorer(h, batch) - scorer(h, other)).abs().amax((-1, -2)) > 0
    assert float(moved.double().mean()) > 0.5  # a ReLU may cut some off
    with pytest.raises(GraphError, match="0 attributes an edge.*built for 2"):
        scorer(h, GraphBatch(batch.x, batch.topology))


def test_the_linear_scorer_equals_the_papers_formula():
    """W [v_s; v_t] + b, averaged over both directions."""
    batch = random_batch(dtype=DTYPE)
    h = representation(batch)
    for spec in (LinearScorer(), LinearScorer(symmetric=False)):
        scorer = built(spec)

        def g(s, t, scorer=scorer):
            ends = torch.cat([h[s], h[t], batch.edge_attr[:, None].expand(-1, len(SEEDS), -1)], -1)
            weight = torch.cat([scorer.source, scorer.target, scorer.attribute], 1)
            return (torch.einsum("erc,rcd->red", ends, weight) + scorer.bias[:, None]).unflatten(-1, (STATES, STATES))

        s, t = batch.topology.edge_index
        wanted = symmetrise(g(s, t), g(t, s)) if spec.symmetric else g(s, t)
        torch.testing.assert_close(scorer(h, batch), wanted)


@pytest.mark.parametrize("attributes", [0, ATTRIBUTES])
@pytest.mark.parametrize("nodes", [1, 2, 7])
def test_the_linear_scorer_gives_the_same_tables_and_gradients_at_edges_as_at_nodes(attributes, nodes):
    """On a forest it works on edges; on the same edges of a graph with more of them it works on nodes."""
    paths = [random_graph(size, seed, dtype=DTYPE, spec=BiLSTM()) for seed, size in enumerate((nodes, 5, 1))]
    batch = GraphBatch.collate(paths)
    scorer, h = built(LinearScorer(dropout=0.3, symmetric=False), attributes=attributes), representation(batch)
    weights = torch.randn(len(SEEDS), batch.num_edges, STATES, STATES, dtype=DTYPE)
    for noise in (None, Noise(SEEDS, 1)):
        found = []
        for call in (scorer.forward, lambda *given: Scorer.forward(scorer, *given)):
            own = h.clone().requires_grad_()
            tables = call(own, batch, noise)
            (tables * weights).sum().backward()
            found.append([tables.detach(), own.grad, *(p.grad for p in scorer.parameters())])
            scorer.zero_grad()
        for one, other in zip(*found, strict=True):
            torch.testing.assert_close(one, other)


def test_the_linear_scorer_makes_no_tables_of_nodes_in_forests(monkeypatch):
    def fail(*_):
        raise AssertionError("tables of nodes")

    monkeypatch.setattr(LinearEdgeScorer, "prepare", fail)
    graph = random_graph(6, 0, dtype=DTYPE, spec=BiLSTM())
    path, scorer = GraphBatch.collate([graph]), built(LinearScorer(symmetric=False))
    assert scorer(representation(path), path).shape[1] == 5
    with pytest.raises(AssertionError, match="tables of nodes"):
        scorer(representation(random_batch(dtype=DTYPE)), random_batch(dtype=DTYPE))


def test_the_bilinear_scorer_equals_the_papers_formula():
    """(W v_s)(W v_t)^T."""
    batch = random_batch(dtype=DTYPE)
    h, scorer = representation(batch), built(BilinearScorer(), attributes=0)
    v = torch.einsum("nrc,rck->rnk", h, scorer.weight)
    s, t = batch.topology.edge_index
    torch.testing.assert_close(scorer(h, batch), v[:, s, :, None] * v[:, t, None, :])


@pytest.mark.parametrize("symmetric", [True, False])
def test_the_full_bilinear_scorer_equals_torchs(symmetric):
    """torch.nn.Bilinear in both directions, averaged if symmetric."""
    batch = random_batch(dtype=DTYPE)
    h, scorer = representation(batch), built(FullBilinearScorer(symmetric=symmetric), attributes=0)
    s, t = batch.topology.edge_index
    for replica in range(len(SEEDS)):
        plain = torch.nn.Bilinear(CHANNELS, CHANNELS, STATES**2, dtype=DTYPE)
        plain.weight.data = scorer.weight[replica].detach().permute(1, 2, 0, 3).reshape(STATES**2, CHANNELS, CHANNELS)
        plain.bias.data = scorer.bias[replica].detach().flatten()
        v = h[:, replica]
        along, against = (plain(v[a], v[b]).view(-1, STATES, STATES) for a, b in ((s, t), (t, s)))
        wanted = (along + against.transpose(1, 2)) / 2 if symmetric else along
        torch.testing.assert_close(scorer(h, batch)[replica], wanted)


def test_agreement_is_one_number_on_the_diagonal():
    batch = random_batch(dtype=DTYPE)
    tables = built(AgreementScorer(hidden=4))(representation(batch), batch)
    torch.testing.assert_close(tables, tables[..., :1, :1] * torch.eye(STATES, dtype=DTYPE))


@ALL
def test_configurations_are_read_back_from_json(spec):
    config = json.loads(json.dumps(spec.to_config()))
    assert scorer_from_config(config) == ScorerSpec.from_config(config) == spec


def test_impossible_options_are_refused():
    with pytest.raises(OptionError):
        LinearScorer(hidden=0)
    with pytest.raises(OptionError):
        LinearScorer().build(3, 0, SEEDS)
