"""Training goes on from a fitted or loaded model, and never ends worse on validation data."""

import pytest
import torch
from support.made_graphs import made_trees
from torch_geometric.data import Data

from accord import NodeClassifier
from accord.encoders import GCN, MLP
from accord.errors import GraphError, InputError, InputTypeError

STATES = 3
TRAIN, VAL, MORE, TEST = (made_trees(20, seed, STATES) for seed in range(4))


def model(**changes):
    options = {"encoder": MLP(hidden=8), "edge_encoder": MLP(hidden=8), "max_epochs": 10, "accelerator": "cpu"}
    return NodeClassifier(**{**options, **changes})


@pytest.fixture(scope="module")
def first():
    return model(features="standardised", max_epochs=5).fit(TRAIN, VAL)


@pytest.mark.parametrize("method", ["spn", "gnn", "crf", "gmnn", "smooth"])
def test_without_an_update_the_weights_are_those_of_the_start(method, tmp_path):
    before = model(method=method, max_epochs=4).fit(TRAIN, VAL)
    before.save(tmp_path)
    for start in (before, NodeClassifier.load(tmp_path)):
        after = model(method=method, max_epochs=0).fit(MORE, VAL, start=start)
        for name, value in before.model_.tensors().items():
            assert torch.equal(after.model_.tensors()[name], value), name


def test_training_goes_on_and_keeps_what_is_best(first):
    weights = {name: value.clone() for name, value in first.model_.tensors().items()}
    after = model(max_epochs=60).fit(MORE, VAL, start=first)
    history = after.model_.history
    assert any(not torch.equal(value, weights[name]) for name, value in after.model_.tensors().items())
    assert all(torch.equal(value, weights[name]) for name, value in first.model_.tensors().items())
    logits = first.model_.node_logits(first.collate(VAL))
    truth = torch.cat([graph.y for graph in VAL])
    assert history[0]["node_score"] == pytest.approx(float((logits[0].argmax(-1) == truth).double().mean()))
    kept = after.model_.node_logits(after.collate(VAL))[0].argmax(-1) == truth
    assert float(kept.double().mean()) >= history[0]["node_score"]


def test_features_are_treated_as_in_the_first_training(first):
    shifted = [Data(x=5 * graph.x + 2, edge_index=graph.edge_index, y=graph.y) for graph in MORE]
    after = model(max_epochs=0).fit(shifted, VAL, start=first)
    assert after.treatment_.equals(first.treatment_)
    assert torch.equal(after.model_.node_logits(after.collate(TEST)), first.model_.node_logits(first.collate(TEST)))


def test_a_model_may_go_on_from_itself(first):
    own = model().fit(TRAIN, VAL)
    before = {name: value.clone() for name, value in own.model_.tensors().items()}
    own.set_params(max_epochs=0).fit(MORE, VAL, start=own)
    assert all(torch.equal(value, before[name]) for name, value in own.model_.tensors().items())


def named(graphs, names, columns=("a", "b", "c")):
    order = [("a", "b", "c").index(name) for name in columns]
    return [
        Data(x=g.x[:, order], edge_index=g.edge_index, y=g.y, label_names=list(names), feature_names=list(columns))
        for g in graphs
    ]


def test_names_of_labels_and_features_are_taken_over():
    before = model().fit(named(TRAIN, "uvw"), named(VAL, "uvw"))
    few = named([graph for graph in MORE if int(graph.y.max()) < 2], "uvw", "cab")
    for graph in few:
        graph.label_names, graph.y = ["v", "u"], 1 - graph.y
    after = model(max_epochs=0).fit(few, named(VAL, "uvw"), start=before)
    assert after.label_names_ == ["u", "v", "w"] and after.feature_names_ == ["a", "b", "c"]
    assert after.shape_ == before.shape_
    graph = named(TEST, "uvw")[0]
    logits = (one.model_.node_logits(one.collate([graph])) for one in (before, after))
    assert torch.equal(*logits)
    with pytest.raises(GraphError, match="label 'x' is unknown. The model knows 'u', 'v', 'w'"):
        model().fit(named(MORE, "uvx"), start=before)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"method": "gnn"}, "start has method 'spn', this model 'gnn'"),
        ({"encoder": GCN(hidden=8)}, "start has encoder 'MLP', this model 'GCN'"),
        ({"encoder": MLP(hidden=16)}, r"other sizes: node/.* is \[1, "),
        ({"features": "raw"}, "start has features 'standardised', this model 'raw'"),
        ({"label_names": ["a", "b", "c"]}, r"start has label_names missing, this model \['a', 'b', 'c'\]"),
        ({"num_states": 4}, "start has num_states 3, this model 4"),
    ],
)
def test_other_settings_are_refused(first, changes, message):
    with pytest.raises(InputError, match=message):
        model(**changes).fit(MORE, VAL, start=first)


def test_other_data_are_refused(first):
    wide = [Data(x=torch.cat([g.x, g.x], 1), edge_index=g.edge_index, y=g.y) for g in MORE]
    with pytest.raises(InputError, match="graphs with features 3, these have 6"):
        model().fit(wide, wide, start=first)
    several = [Data(x=g.x, edge_index=g.edge_index, y=g.y[:, None].repeat(1, 2)) for g in MORE]
    with pytest.raises(InputError, match="graphs with tasks 1, these have 2"):
        model().fit(several, several, start=first)
    higher = [Data(x=g.x, edge_index=g.edge_index, y=g.y + 1) for g in MORE]
    with pytest.raises(GraphError, match="a label is 3, but num_states=3"):
        model().fit(higher, VAL, start=first)
    with pytest.raises(InputTypeError, match=r"start is a str.*NodeClassifier\.load"):
        model().fit(MORE, VAL, start="runs/first")
    with pytest.raises(InputError, match="start is not fitted"):
        model().fit(MORE, VAL, start=model())
