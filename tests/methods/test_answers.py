"""What each part of a model says about a batch, from one run of the networks."""

import pytest
import torch
from support.made_graphs import made_trees
from support.made_recipes import recipe_for
from torch.testing import assert_close

from accord.encoders import GCN, MLP, LinearScorer
from accord.graphs import GraphBatch, topology
from accord.learning import PartOptions, Replicas, TrainingOptions, TrainingRun
from accord.methods import METHODS, Shape
from accord.methods._networks import edge_marginals

TRAIN, VAL = made_trees(30, 0, states=3), made_trees(15, 1, states=3)
RUN, SHAPE, REPLICAS = TrainingRun(TRAIN, VAL), Shape(3, 3), Replicas((0, 1))
VALUES = {
    "encoder": MLP(hidden=8),
    "edge_encoder": GCN(hidden=8),
    "edge_channels": 8,
    "scorer": LinearScorer(),
    "node": PartOptions(learning_rate=2e-2),
    "edge": PartOptions(learning_rate=2e-2),
    "training": TrainingOptions(max_epochs=10, accelerator="cpu"),
}
PARTS = {
    "crf": ["gnn", "edge", "crf"],
    "gmnn": ["gnn", "gmnn"],
    "gnn": ["gnn"],
    "smooth": ["gnn", "smooth"],
    "spn": ["gnn", "edge", "spn"],
}
CASES = [*((method, False) for method in PARTS), ("crf", True), ("spn", True)]
PATH = topology(torch.tensor([[0, 1], [1, 2]]), 4)


def trained(method, shared=False):
    return METHODS[method](recipe_for(METHODS[method], VALUES | {"shared": shared})).fit(RUN, SHAPE, REPLICAS)


@pytest.mark.parametrize(("method", "shared"), CASES)
def test_answers_are_those_of_the_parts_asked_one_by_one(method, shared):
    model, batch = trained(method, shared), GraphBatch.collate(VAL)
    answers = model.answers(batch)
    assert list(answers) == PARTS[method]
    expected = {"gnn": model.node_logits(batch).softmax(-1)}
    if "edge" in answers:
        expected["edge"] = edge_marginals(model.edge_logits(batch), batch.topology)
    expected[method] = model.calibrated(model.beliefs(batch, "sum"))
    for name, answer in answers.items():
        assert_close(answer.probabilities, expected[name], rtol=1e-6, atol=1e-6)
        assert_close(answer.probabilities.sum(-1), torch.ones(2, len(batch.y)))
        labels = model.labels(batch) if name == method else expected[name].argmax(-1)
        assert torch.equal(answer.labels, labels)


@pytest.mark.parametrize(("method", "shared"), CASES)
def test_networks_run_once_for_all_answers(method, shared):
    model, batch = trained(method, shared), GraphBatch.collate(VAL)
    calls = dict.fromkeys(model.parts, 0)
    for name, part in model.parts.items():
        part.register_forward_hook(lambda *_, name=name: calls.__setitem__(name, calls[name] + 1))
    model.answers(batch)
    if method == "gmnn":
        assert calls["node"] == 1 and calls["label"] == max(model.passes)
    else:
        assert set(calls.values()) == {1}


@pytest.mark.parametrize(("method", "shared"), CASES)
def test_one_field_gives_labels_and_beliefs(method, shared):
    model, batch = trained(method, shared), GraphBatch.collate(VAL)
    field = model.field(batch)
    assert torch.equal(model.labels_of(field), model.labels(batch))
    for semiring in ("sum", "max"):
        assert torch.equal(model.beliefs_of(field, semiring).node, model.beliefs(batch, semiring).node)


def test_edges_that_agree_give_their_common_marginals():
    node = torch.tensor([[0.7, 0.3], [0.2, 0.8], [0.5, 0.5]])
    source, target = PATH.edge_index
    tables = (node[source, :, None] * node[target, None, :]).log()
    known = edge_marginals(tables[None], PATH)[0]
    assert_close(known[:3], node)
    assert_close(known[3], torch.tensor([0.5, 0.5]))  # a node without edges


def test_edges_that_disagree_are_averaged_as_logs():
    tables = torch.stack([torch.tensor([[0.4, 0.4], [0.1, 0.1]]), torch.tensor([[0.2, 0.2], [0.3, 0.3]])]).log()
    known = edge_marginals(tables.transpose(-1, -2)[None], topology(torch.tensor([[1, 2], [0, 0]]), 3))[0]
    expected = torch.tensor([(0.8 * 0.4) ** 0.5, (0.2 * 0.6) ** 0.5])
    assert_close(known[0], expected / expected.sum())
