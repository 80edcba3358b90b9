"""The rebuilt published code: its messages and loss against loops and enumeration, and the rule of the verdicts."""

import importlib
import sys
from itertools import product
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch
from torch import nn
from torch_geometric.nn import GATConv

from accord.experiments._paper import PaperNumber

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "benchmarks" / "paper"
MODULES = ("authors_code", "explain_authors_fields")
HALF = torch.tensor([[0, 1, 1], [1, 2, 3]])  # a tree
ARCS = torch.cat([HALF, HALF.flip(0)], 1)
NODES, STATES = 4, 3


@pytest.fixture(scope="module")
def code():
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(FOLDER)
        names = {name: f"authors_code.{name}" for name in ("fields", "networks", "verdicts")}
        names["study"] = "explain_authors_fields"
        yield SimpleNamespace(**{name: importlib.import_module(path) for name, path in names.items()})
    for name in [name for name in sys.modules if name.startswith(MODULES)]:
        del sys.modules[name]


def made_field(seed=0):
    generator = torch.Generator().manual_seed(seed)
    half = torch.randn(len(HALF[0]), STATES, STATES, generator=generator)
    return torch.randn(NODES, STATES, generator=generator), torch.cat([half, half.mT])


def brute_beliefs(node, edge, reduce):
    """Log-beliefs of nodes over all labellings."""
    labellings = list(product(range(STATES), repeat=NODES))
    scores = [
        sum(node[v, labels[v]] for v in range(NODES))
        + sum(edge[e, labels[HALF[0, e]], labels[HALF[1, e]]] for e in range(len(HALF[0])))
        for labels in labellings
    ]
    rows = [
        [
            reduce(torch.stack([s for s, own in zip(scores, labellings, strict=True) if own[v] == k]), 0)
            for k in range(STATES)
        ]
        for v in range(NODES)
    ]
    return torch.stack([torch.stack(row) for row in rows]).log_softmax(-1)


@pytest.mark.parametrize("reduce", [torch.logsumexp, torch.amax])
def test_with_whole_messages_propagation_is_exact_on_a_tree(code, reduce):
    node, edge = made_field()
    beliefs = code.fields.propagate(ARCS, node, edge, reduce, sweeps=4, weight=1.0)[0]
    torch.testing.assert_close(beliefs.log_softmax(-1), brute_beliefs(node, edge, reduce))


@pytest.mark.parametrize("name", ["sums of logs", "sum-product"])
def test_messages_are_those_of_a_plain_loop(code, name):
    node, edge = made_field(1)
    edge = edge + torch.randn(edge.shape, generator=torch.Generator().manual_seed(2))  # a table for each direction
    messages = {(s, t): torch.full((STATES,), 1.0 / STATES).log() for s, t in ARCS.T.tolist()}
    tables = {(s, t): table for (s, t), table in zip(ARCS.T.tolist(), edge, strict=True)}
    for _ in range(3):
        told = {}
        for s, t in messages:
            row = []
            for x in range(STATES):
                terms = [
                    tables[s, t][own, x]
                    + node[s, own]
                    + 0.5 * sum(message[own] for (_, end), message in messages.items() if end == s)
                    - messages[t, s][own]
                    for own in range(STATES)
                ]
                row.append(torch.stack(terms).sum() if name == "sums of logs" else torch.stack(terms).logsumexp(0))
            told[s, t] = torch.stack(row).log_softmax(-1)
        messages = told
    wanted = torch.stack([node[v] + 0.5 * sum(m for (_, end), m in messages.items() if end == v) for v in range(NODES)])
    beliefs, pairs = code.fields.propagate(ARCS, node, edge, code.fields.MESSAGES[name], 3)
    torch.testing.assert_close(beliefs, wanted)
    pair = tables[1, 2] + (wanted[1] - messages[2, 1])[:, None] + (wanted[2] - messages[1, 2])[None, :]
    torch.testing.assert_close(pairs[1], pair)


def test_the_games_gradient_is_beliefs_less_labels(code):
    node, edge = (own.requires_grad_() for own in made_field(3))
    part = SimpleNamespace(arcs=ARCS, y=torch.tensor([0, 2, 1, 1]))
    code.fields.game_loss(part, node, edge, torch.logsumexp).backward()
    beliefs, pairs = code.fields.propagate(ARCS, node, edge, torch.logsumexp, code.fields.TRAINING)
    seen = torch.zeros(len(ARCS[0]), STATES, STATES)
    seen[range(len(ARCS[0])), part.y[ARCS[0]], part.y[ARCS[1]]] = 1.0
    torch.testing.assert_close(NODES * node.grad, beliefs.softmax(-1) - nn.functional.one_hot(part.y, STATES))
    torch.testing.assert_close(len(ARCS[0]) * edge.grad, pairs.flatten(1).softmax(-1).view_as(edge) - seen)


def test_potentials_divide_by_row_and_column_sums(code):
    node, edge = made_field(4)
    logs, potentials = code.fields.pseudomarginal_potentials(node, edge, 2.0)
    table = (2.0 * edge[0]).exp() / (2.0 * edge[0]).exp().sum()
    torch.testing.assert_close(potentials[0, 1, 2].exp(), table[1, 2] / (table[1].sum() * table[:, 2].sum()) ** 0.1)
    torch.testing.assert_close(logs.exp().sum(-1), torch.ones(NODES))


def test_graphs_without_edges_are_left_out_of_pairs(code):
    topology = SimpleNamespace(graph=torch.tensor([0, 0, 1, 2, 2]), num_graphs=3)
    arcs, y = torch.tensor([[0, 3, 1, 4], [1, 4, 0, 3]]), torch.tensor([0, 1, 0, 1, 1])
    part = SimpleNamespace(arcs=arcs, y=y, batch=SimpleNamespace(topology=topology))
    edge = torch.zeros(4, 2, 2)
    edge[0, 0, 1] = edge[1, 1, 1] = edge[2, 0, 0] = edge[3, 1, 1] = 1.0  # the third arc is wrong
    assert code.fields.arcs_right(part, edge, "graph") == 0.5 and code.fields.arcs_right(part, edge, "node") == 0.75


def test_the_bilinear_scorer_is_that_of_torch(code):
    network = code.networks.EdgeNetwork("linear", "", "bilinear", 5, STATES)
    x = torch.randn(NODES, 5)
    wanted = network.bilinear(x[ARCS[0]], x[ARCS[1]]).view(-1, STATES, STATES)
    torch.testing.assert_close(network(x, ARCS), wanted)
    averaged = code.networks.one_table_an_edge(wanted)
    torch.testing.assert_close(averaged[0], (wanted[0] + wanted[3].T) / 2)
    torch.testing.assert_close(averaged[3], averaged[0].T)


@pytest.mark.filterwarnings("ignore:Sparse")
def test_sparse_features_change_nothing_but_time(code):
    x = torch.zeros(NODES, 60)
    x[range(NODES), [3, 9, 9, 40]] = torch.tensor([1.0, -2.0, 3.0, 0.5])
    torch.manual_seed(0)
    network = code.networks.Stack([GATConv(60, 4), GATConv(4, STATES)], torch.relu, [nn.Linear(60, 4), nn.Linear(4, 3)])
    dense = network(x, ARCS)
    dense.square().sum().backward()
    slopes = [weight.grad.clone() for weight in network.parameters()]
    network.zero_grad()
    sparse = code.networks.with_sparse_features(network, [x])(x, ARCS)
    sparse.square().sum().backward()
    assert isinstance(network.skips[0], code.networks.SparseFirst)
    torch.testing.assert_close(sparse, dense)
    for weight, slope in zip(network.parameters(), slopes, strict=True):
        torch.testing.assert_close(weight.grad, slope)
    with pytest.raises(KeyError):  # features that it does not know
        network(x + 1.0, ARCS)


PAPER = PaperNumber(2, "SPN-GAT", "spn", "gat", "", "pubmed*", "graph", 50.0, 1.0)  # its interval: 48 to 52
NOISE = (0.1, -0.1, 0.2, -0.2, 0.0)


def values(level, noise=NOISE):
    return {seed: level + extra for seed, extra in enumerate(noise)}


def judge(code, ours, **ways):
    renamed = {code.verdicts.PUBLISHED if way == "published" else way: own for way, own in ways.items()}
    return code.verdicts.verdict(list(values(ours).values()), PAPER, code.verdicts.Cell(renamed))


def test_a_cause_needs_five_paired_seeds_and_the_papers_interval(code):
    assert judge(code, 55, published=values(55), scaled=values(51, NOISE[::-1])) == "cause shown: scaled"
    short = {seed: own for seed, own in values(51).items() if seed < 4}
    assert judge(code, 55, published=values(55), scaled=short) == code.verdicts.EXCLUDED
    assert judge(code, 55, published=values(55), scaled=values(53, NOISE[::-1])) == code.verdicts.EXCLUDED
    wild = values(51, (9.0, -9.0, 5.0, -5.0, 0.0))  # near the paper on average, by chance
    assert judge(code, 55, published=values(55), scaled=wild) == code.verdicts.EXCLUDED


def test_significance_is_corrected_for_the_number_of_variants(code):
    shaky = values(51.5, (2.2, -3.1, 1.0, 2.0, -2.1))
    assert judge(code, 55, published=values(55), scaled=shaky).startswith(code.verdicts.CAUSE)
    others = {f"other {n}": values(55, NOISE[n:] + NOISE[:n]) for n in range(1, 5)}
    assert judge(code, 55, published=values(55), scaled=shaky, **others) == code.verdicts.EXCLUDED


def test_a_rebuild_on_the_same_side_excludes_the_implementation(code):
    assert judge(code, 55, published=values(54)) == code.verdicts.EXCLUDED
    assert judge(code, 55, published=values(45)) == code.verdicts.OPEN  # misses on the other side
    assert judge(code, 55, published=values(52.3, (1.0, -1.0, 1.0, -1.0, 0.0))) == code.verdicts.OPEN
    assert judge(code, 55, published={1: 54.0, 2: 54.1}) == code.verdicts.OPEN  # two seeds
    assert judge(code, 55) == code.verdicts.OPEN


def test_a_rebuild_that_reaches_the_paper_shows_that_ours_differs(code):
    assert judge(code, 55, published=values(51)) == code.verdicts.DIFFERS
    assert judge(code, 52.1, published=values(51.9, (0.5, -0.5, 0.5, -0.5, 0.0))) == code.verdicts.OPEN
    assert judge(code, 55, published={1: 51.0, 2: 51.1, 3: 50.9}) == code.verdicts.OPEN  # three seeds


def test_a_record_of_few_seeds_is_added_to(code, tmp_path, monkeypatch):
    asked = []
    monkeypatch.setitem(code.study.MODELS, "gcn", (lambda *cell: asked.append(cell) or {"gnn": {}}, "gcn"))
    monkeypatch.chdir(ROOT)
    for seeds in (["1"], ["1", "2"]):
        monkeypatch.setattr(
            sys, "argv", ["x", str(tmp_path), "--models", "gcn", "--benchmarks", "cora*", "--seeds", *seeds]
        )
        code.study.main()
    assert [cell[2] for cell in asked] == [1, 2] and "cells are off" in (tmp_path / "README.md").read_text()


def test_the_committed_page_is_written_from_the_records_and_the_store(code, monkeypatch):
    """Apart from its first lines, which have the date and the machine."""
    monkeypatch.chdir(ROOT)
    folder = ROOT / "results" / "authors_fields"
    fresh = code.verdicts.page(code.study.stored(folder), code.study.STORE)
    told = (folder / "README.md").read_text()
    assert told.split("\n\n", 2)[2] == fresh.split("\n\n", 2)[2]


def test_earlier_records_of_gcn_and_sage_count_seed_by_seed(code, monkeypatch):
    monkeypatch.chdir(ROOT)
    cells = code.verdicts.cells_of(code.study.earlier(code.study.EARLIER))
    sage = cells["gnn", "sage", "pubmed*", "graph"].ways
    assert set(sage) == {"as published", "kept by nodes", "scaled outputs", "scaled outputs, kept by nodes"}
    assert set(sage["as published"]) == {1, 2, 3} and ("gnn", "gcnii", "cora*", "graph") not in cells
