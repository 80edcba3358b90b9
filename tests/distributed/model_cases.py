"""Fitted models of every method, and their labels of a graph in parts next to those of the whole graph."""

import warnings

import pytest
import torch
from distributed.whole_graphs import whole_graph

from accord.distributed import cut_graph, partition
from accord.errors import ConvergenceWarning, OptionError
from accord.estimator import NodeClassifier, predict_part
from accord.graphs import graph_topology
from accord.inference import propagate
from accord.methods import ProxyModel

MODELS = {  # parameters, edge attributes, tasks
    "spn": (dict(method="spn", encoder="gcn"), 0, 1),
    "spn of edge attributes": (dict(method="spn", encoder="sage", edge_encoder="gat"), 2, 1),
    "spn of two tasks": (dict(method="spn", encoder="gcnii", ensemble=2, features="standardised"), 0, 2),
    "crf": (dict(method="crf", encoder="gat", symmetric=False), 0, 1),
    "gmnn": (dict(method="gmnn", encoder="gcn"), 0, 1),
    "gnn": (dict(method="gnn", encoder="sage", features="row-normalised"), 0, 1),
    "smooth": (dict(method="smooth", encoder="mlp"), 0, 1),
}

SOMETIMES = {"spn": 0.7, "smooth": 0.7}  # a precision that some labels of these models reach on `labelled` graphs


def labelled(seed, attributes=0, tasks=1, nodes=150):
    """A graph whose labels tend to agree along edges, and whose features are noisy labels; state 3 never occurs."""
    generator = torch.Generator().manual_seed(seed)
    data = whole_graph("power" if seed % 2 else "random", nodes=nodes, seed=seed, attributes=attributes)
    y = torch.randint(0, 3, (nodes, tasks), generator=generator)
    for source, target in data.edge_index.t().tolist():
        y[target] = torch.where(torch.rand(tasks, generator=generator) < 0.3, y[source], y[target])
    shown = torch.nn.functional.one_hot(y[:, 0], 3) + torch.nn.functional.one_hot(y[:, -1], 3)
    data.x = torch.cat([shown + torch.randn(nodes, 3, generator=generator), data.x[:, :3]], 1)
    data.y = y[:, 0] if tasks == 1 else y
    return data


def fit(name, folder):
    """Fit and save a model."""
    parameters, attributes, tasks = MODELS[name]
    graphs = [labelled(seed, attributes, tasks, 60) for seed in range(4)]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = NodeClassifier(**parameters, num_states=4, max_epochs=15, seed=1).fit(graphs[:3], graphs[3:])
    model.save(folder / name)
    return model


def check_models(rank, ranks, folder):
    """Labels and probabilities of own nodes are those of the whole graph; how often each model differs from argmax."""
    joint = {}
    for number, (name, (_, attributes, tasks)) in enumerate(MODELS.items()):
        model = NodeClassifier.load(folder / name)
        data = labelled(11 + number, attributes, tasks)
        wanted, probabilities = model.predict(data), model.predict_proba(data)
        owner = partition(graph_topology(data).edge_index, 150, ranks, ("metis", "hash")[number % 2])
        graph = cut_graph(data, owner, rank, ranks)
        found = predict_part(model, graph)
        own = graph.part.nodes[: graph.part.num_own]
        by_node = found.probabilities[0] if tasks == 1 else found.probabilities.transpose(0, 1)
        torch.testing.assert_close(by_node, probabilities[own], rtol=1e-5, atol=1e-5, msg=name)
        assert torch.equal(found.labels[0] if tasks == 1 else found.labels.t(), wanted[own]), name
        assert torch.equal(found.ids, data.node_id[own])
        joint[name] = int((wanted != probabilities.argmax(-1)).sum())
    sure = model.predict(data, precision=SOMETIMES[name])
    assert 0 < int((sure < 0).sum()) < len(sure)
    assert torch.equal(predict_part(model, graph, SOMETIMES[name]).labels[0], sure[own])
    return joint


def check_refused(rank, ranks, folder, messages):
    """Models that need the whole graph are refused before any work, in every process."""
    data = labelled(0)
    graph = cut_graph(data, torch.arange(150) % ranks, rank, ranks)
    for name, message in messages.items():
        with pytest.raises(OptionError, match=message):
            predict_part(NodeClassifier.load(folder / name), graph)
    return True


def check_warned(rank, ranks, folder):
    """What one process says of beliefs that did not converge, and what this one of several says."""
    ProxyModel.beliefs_of = lambda self, field, semiring="sum": propagate(field, semiring=semiring, max_sweeps=1)
    model, data = NodeClassifier.load(folder / "spn"), labelled(11)
    graph = cut_graph(data, torch.arange(150) % ranks, rank, ranks)
    said = []
    for call in (lambda: model.predict_proba(data), lambda: predict_part(model, graph)):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always", ConvergenceWarning)
            found = call()
        said.append([str(one.message) for one in caught if one.category is ConvergenceWarning])
    return said, found.residual
