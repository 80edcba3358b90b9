"""Attempts at edge networks: pairs within two hops, structure of edges, priors and the logistic rescaling."""

import importlib.util
import sys
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from torch_geometric.data import Data

from accord.encoders import MLP, AgreementScorer
from accord.graphs import GraphBatch
from accord.learning import Replicas
from accord.methods import Shape, preset_recipe
from accord.tuning._candidates import OPTIONS, Candidate

SCRIPT = Path(__file__).parents[2] / "benchmarks" / "defaults" / "edge_attempts.py"
STATES = 3


@pytest.fixture(scope="module")
def script():
    spec = importlib.util.spec_from_file_location("edge_attempts", SCRIPT)
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # dataclasses look their module up
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(SCRIPT.parent)
        yield spec.loader.exec_module(module) or module
    for name in (spec.name, "edge_networks", "edge_page"):
        del sys.modules[name]


def random_graph(seed: int, nodes: int = 12) -> Data:
    generator = torch.Generator().manual_seed(seed)
    edges = torch.randint(nodes, (2, 2 * nodes), generator=generator)
    edges = edges[:, edges[0] != edges[1]]
    y = torch.randint(STATES, (nodes,), generator=generator)
    x = torch.randn(nodes, 4, generator=generator) + y[:, None]
    return Data(x=x, y=y, edge_index=torch.cat([edges, edges.flip(0)], 1), node_id=torch.arange(nodes))


@pytest.fixture
def setting(script):
    splits = {name: [random_graph(10 * n + i) for i in range(6)] for n, name in enumerate(("train", "fit", "judge"))}
    splits["test"] = splits["judge"][:2]
    recipe = preset_recipe("accord", "gcnii")
    recipe = replace(recipe, training=replace(recipe.training, max_epochs=10, accelerator="cpu"), edge_channels=4)
    numbers = sum(graph.num_nodes for own in splits.values() for graph in own)
    node = torch.randn(2, numbers, STATES, generator=torch.Generator().manual_seed(1)).log_softmax(-1)
    candidate = Candidate(MLP(hidden=8), OPTIONS)
    return script.Setting(
        "node",
        recipe,
        (candidate,),
        Shape(4, STATES),
        Replicas((0, 1)),
        script.numbered(splits),
        node,
        torch.nn.Identity(),
    )


def test_pairs_within_two_hops_share_a_neighbour_and_no_edge(script):
    from edge_networks import within_two_hops

    path = Data(x=torch.zeros(5, 1), edge_index=torch.tensor([[0, 1, 2, 0], [1, 2, 3, 2]]))  # a triangle with a tail
    pairs = within_two_hops(GraphBatch.collate([path]).topology)
    assert {tuple(sorted(pair)) for pair in pairs.edge_index.t().tolist()} == {(0, 3), (1, 3)}


def test_structure_of_a_triangle_with_a_tail(script):
    from edge_networks import structure_of

    graph = Data(x=torch.eye(4), edge_index=torch.tensor([[0, 1, 2, 0], [1, 2, 3, 2]]))
    columns = structure_of(graph)
    log = torch.tensor([2.0, 3.0, 4.0]).log()  # of one more than degrees 1, 2 and 3
    expected = torch.tensor([[2.0, 1 / torch.tensor(3.0).log(), 2 * log[1], 0.0], [1.0, 0.0, log[2] + log[0], 0.0]])
    expected[0, 0], expected[1, 0] = torch.tensor(2.0).log(), 0.0  # one common neighbour, none
    expected[1, 3] = log[2] - log[0]
    torch.testing.assert_close(columns[[0, 2], :4], expected)


def test_a_prior_is_the_product_of_both_ends(script, setting):
    """With a scorer of zeros, tables are those of the node network."""
    network = script.train(setting, setting.edges[0], AgreementScorer(), setting.node, by_loss=True)
    for parameter in network.scorer.parameters():
        torch.nn.init.zeros_(parameter)
    tables = script.tables_of(setting, network)["judge"]
    torch.testing.assert_close(tables, setting.node_pairs("judge"))


def test_the_logistic_changes_agreement_and_keeps_proportions(script, setting):
    base = {split: setting.node_pairs(split) for split in ("fit", "judge", "test")}
    found = script.calibrated(setting, base, base)
    for split, tables in found.items():
        torch.testing.assert_close(tables.exp().sum((-1, -2)), torch.ones(tables.shape[:2]))
        shift = tables - base[split]
        diagonal = shift.diagonal(dim1=-2, dim2=-1)
        torch.testing.assert_close(diagonal, diagonal[..., :1].expand_as(diagonal), atol=1e-4, rtol=0)
    # On its own data the fit is no less likely than the share of equal edges.
    equal = setting.equal("fit").float()
    cost = torch.nn.functional.binary_cross_entropy
    fitted = script.agreement_of(found["fit"])
    assert cost(fitted, equal) < cost(equal.mean(1, keepdim=True).expand_as(equal), equal)


def test_an_encoder_starts_from_the_node_network(script, setting):
    """Without updates, hidden layers equal the node network's; the last layer has another width and is new."""
    stopped = replace(setting.recipe, training=replace(setting.recipe.training, max_epochs=0))
    setting.recipe = stopped
    start = torch.nn.Module()
    start.encoder = setting.edges[0].encoder.build(4, STATES, [5, 6])
    network = script.train(setting, setting.edges[0], start=start)
    own, theirs = dict(network.encoder.named_parameters()), dict(start.encoder.named_parameters())
    same = [name for name in own if own[name].shape == theirs[name].shape]
    assert same and len(same) < len(own)
    assert all(torch.equal(own[name], theirs[name]) for name in same)


def test_all_attempts_give_scores_on_both_splits(script, setting, monkeypatch):
    monkeypatch.setattr(script, "load_setting", lambda *_: setting)
    setting.recipe = replace(
        setting.recipe, encoder=MLP(hidden=8), training=replace(setting.recipe.training, max_epochs=2)
    )
    setting.node_part = torch.nn.Module()
    setting.node_part.encoder = MLP(hidden=8).build(4, STATES, [5, 6])
    records = script.run_task("cora*", (0, 1), 2)
    assert [record["attempt"] for record in records][:2] == [script.ALONE, "default"]
    assert all(len(record[split]["graph"]) == 2 for record in records for split in ("judge", "test"))
    page = script.markdown(records, {"device": "cpu", "torch": "2", "date": "today"})
    assert all(f"| {record['attempt']} |" in page for record in records)


def test_a_gain_beyond_the_deviation_of_seeds_is_bold(script):
    def record(attempt, scores):
        return {"task": "made*", "seeds": [0, 1], "attempt": attempt, "judge": {"graph": scores}, "test": {}}

    records = [record("default", [0.5, 0.7]), record("clear", [0.52, 0.72]), record("noise", [0.6, 0.62])]
    from edge_page import gains

    lines = gains(records, ["made*"], "graph", "graphs").splitlines()
    assert lines[0] == "| graphs | made\\* |"
    assert lines[2:] == ["| clear | **+2.0 ± 0.0** |", "| noise | +1.0 ± 12.7 |"]
