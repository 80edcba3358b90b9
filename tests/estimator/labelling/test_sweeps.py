"""`NodeClassifier.sweeps`: from each node's own evidence to the marginals, with what is known."""

import pytest
import torch
from support.made_graphs import made_trees
from support.made_recipes import recipe_for

from accord import NodeClassifier
from accord.encoders import MLP
from accord.errors import OptionError
from accord.graphs import graph_topology
from accord.learning import TrainingOptions
from accord.methods import METHODS

TREES = made_trees(20, 3, 3)


@pytest.fixture(scope="module", params=["spn", "crf", "gnn"])
def model(request):
    values = {
        "encoder": MLP(hidden=8),
        "edge_encoder": MLP(hidden=8),
        "training": TrainingOptions(max_epochs=15, accelerator="cpu"),
    }
    recipe = recipe_for(METHODS[request.param], values)
    made = NodeClassifier(request.param, recipe=recipe, accelerator="cpu", label_names=["a", "b", "c"])
    return made.fit(TREES[:14], TREES[14:])


@pytest.mark.parametrize("given", [{}, {"known": {0: "b"}}, {"forbid": [("a", "c")], "known": {1: 2}}])
def test_sweeps_lead_to_the_marginals(model, given):
    graph = max(TREES, key=lambda tree: tree.num_nodes)
    first, *others = model.sweeps(graph, **given)
    assert first.number == 0 and first.residual is None and not first.message_change.any()
    assert others[-1].converged and not any(sweep.converged for sweep in others[:-1])
    torch.testing.assert_close(others[-1].probabilities, model.predict_proba(graph, **given), atol=1e-4, rtol=0)
    assert all(sweep.message_change.shape == (graph_topology(graph).edge_index.shape[1],) for sweep in others)
    torch.testing.assert_close(first.probabilities.sum(-1), torch.ones(graph.num_nodes))


def test_bad_settings_are_refused(model):
    for bad in (0, -1, True, 1.5):
        with pytest.raises(OptionError, match="max_sweeps"):
            model.sweeps(TREES[0], max_sweeps=bad)
    with pytest.raises(OptionError, match="task"):
        model.sweeps(TREES[0], task=1)
