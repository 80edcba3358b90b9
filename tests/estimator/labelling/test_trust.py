"""Labels to trust: states never seen, bounded potentials, warnings, falling back, calibration and abstaining."""

import copy
import dataclasses
import json
import math

import pytest
import torch
from support.made_recipes import recipe_for
from torch_geometric.data import Data

import accord
from accord.encoders import GCN, MLP
from accord.errors import DepartureWarning, InputError, InputTypeError, MajorityWarning, OptionError
from accord.evaluation import expected_calibration_error
from accord.learning import PartOptions, TrainingOptions
from accord.methods import METHODS

STATES = 3


def made_graph(nodes, seed, first=0, noise=1.0, scale=1.0):
    """Several rings of labels that mostly repeat; features are noisy labels, as counts up to `scale`."""
    generator = torch.Generator().manual_seed(seed)
    turns = (torch.rand(nodes, generator=generator) < 0.2).cumsum(0)
    y = (turns % STATES) + first
    x = torch.nn.functional.one_hot(y - first, STATES) + noise * torch.randn(nodes, STATES, generator=generator)
    ring = torch.stack([torch.arange(nodes), (torch.arange(nodes) + 1) % nodes])
    jumps = torch.randint(0, nodes, (2, nodes // 4), generator=generator)
    same = y[jumps[0]] == y[jumps[1]]
    edges = torch.cat([ring, jumps[:, same & (jumps[0] != jumps[1])]], 1)
    counts = (scale * x.clamp_min(0) / x.max()).round() if scale > 1 else x
    return Data(x=counts, edge_index=torch.cat([edges, edges.flip(0)], 1), y=y)


def classifier(**changes):
    options = {"encoder": MLP(hidden=8), "edge_encoder": GCN(hidden=8), "max_epochs": 30, "accelerator": "cpu"}
    return accord.NodeClassifier(**{**options, **changes})


def fast(method):
    """A recipe that learns within a few epochs."""
    part = PartOptions(learning_rate=3e-2)
    networks = {"encoder": MLP(hidden=8), "edge_encoder": GCN(hidden=8), "node": part, "edge": part}
    return recipe_for(METHODS[method], networks | {"training": TrainingOptions(max_epochs=15, accelerator="cpu")})


TRAIN, VAL, TEST = ([made_graph(60, seed + 10 * part) for seed in range(4)] for part in range(3))
SHIFTED = [[made_graph(60, seed + 10 * part, first=1) for seed in range(4)] for part in range(3)]


@pytest.fixture(scope="module")
def fitted():
    return classifier().fit(TRAIN, VAL)


@pytest.mark.parametrize("method", METHODS)
def test_a_state_without_training_labels_is_never_predicted(method, tmp_path):
    """Labels 1..K leave state 0 empty, and num_states may allow more than occur."""
    train, val, test = SHIFTED
    isolated = Data(x=50 * torch.randn(4, STATES), edge_index=torch.empty(2, 0, dtype=torch.long))
    model = classifier(method=method, num_states=6, max_epochs=3).fit(train, val)
    model.save(tmp_path)
    for own in (model, accord.NodeClassifier.load(tmp_path)):
        assert own.choice_["unseen"] == [[0, 4, 5]]
        for graph in (*test, isolated):
            answers = own.answers([graph])
            for name, labels in answers.labels.items():
                assert set(labels.unique().tolist()) <= {1, 2, 3}
                probabilities = answers.probabilities[name]
                assert not bool(probabilities[..., [0, 4, 5]].any()) and bool(probabilities.isfinite().all())
            assert set(own.predict(graph).unique().tolist()) <= {1, 2, 3}
            assert not bool(own.predict_proba(graph)[:, [0, 4, 5]].any())
    assert math.isfinite(model.score(test, "likelihood")) and math.isfinite(model.score(test, "auc"))


def test_states_are_seen_for_each_task_and_a_task_without_labels_has_all():
    def tasks(graph, second):
        return Data(x=graph.x, edge_index=graph.edge_index, y=torch.stack([(graph.y == 0).long(), second], 1))

    zeros, missing = torch.zeros(60, dtype=torch.long), torch.full((60,), -1)
    model = classifier(max_epochs=3).fit([tasks(g, zeros) for g in TRAIN], [tasks(g, zeros) for g in VAL])
    assert model.choice_["unseen"] == [[], [1]]
    assert not bool(model.predict(TEST[0])[:, 1].any()) and bool(model.predict(TEST[0])[:, 0].any())
    model = classifier(max_epochs=3).fit([tasks(g, missing) for g in TRAIN], [tasks(g, missing) for g in VAL])
    assert model.choice_["unseen"] == [[], []]


@pytest.mark.parametrize("seed", range(3))
def test_rare_labels_and_raw_counts_do_not_break_joint_labels(seed):
    """One graph, labels from 1, one of them rare, counts up to 1e3: potentials of rare pairs used to exceed bounds."""
    train, val, test = (made_graph(200, seed + part, first=1, noise=0.3, scale=1e3) for part in (0, 100, 200))
    for graph in (train, val):
        graph.y[graph.y == 3] = torch.where(torch.arange(200)[graph.y == 3] < 8, 3, -1)
    model = classifier(seed=seed, max_epochs=60, num_states=4).fit([train], [val])
    edges = model.shape_.num_states * (train.num_edges // 2 + 1)
    most, least = math.log(edges) + 1, -3 * math.log(edges)

    def extremes(choice):
        own = copy.copy(model.model_)
        own.chosen = choice
        potentials = own.field(model.collate([test])).edge
        finite = potentials[potentials.isfinite()]
        return float(finite.min()), float(finite.max())

    chosen = model.model_.chosen
    ones, none = torch.ones_like(chosen.power), torch.zeros_like(chosen.node_shrinkage)
    strongest = dataclasses.replace(chosen, sharpness=10 * ones, power=ones)  # of all candidates
    for choice in (chosen, strongest):
        low, high = extremes(choice)
        assert least <= low and high <= most
    unbounded = dataclasses.replace(strongest, node_shrinkage=none, edge_shrinkage=none)
    assert extremes(unbounded)[1] > 1.5 * most  # what shrinking rare pairs prevents
    answers = model.answers([test])
    right = {name: float((labels[0] == test.y).double().mean()) for name, labels in answers.labels.items()}
    assert right["spn"] >= right["gnn"] - 0.03


def test_probabilities_are_calibrated_and_labels_are_not_touched():
    val, test = ([made_graph(60, seed + start) for seed in range(20)] for start in (100, 200))
    model = accord.NodeClassifier(recipe=fast("spn")).fit(TRAIN, val)
    batch, answers = model.collate(test), model.answers(test)
    beliefs = model.model_.beliefs(batch, "sum")
    before, after, alone = (
        expected_calibration_error(probabilities[0], answers.truth[0])
        for probabilities in (beliefs.node.exp(), answers.probabilities["spn"], answers.probabilities["gnn"])
    )
    assert after < alone and after < 0.05 and after < before
    assert torch.equal(model.model_.labels(batch), answers.labels["spn"])
    torch.testing.assert_close(model.predict_proba(TEST[0]), model.answers([TEST[0]]).probabilities["spn"][0])


def test_abstaining_reaches_the_precision_and_is_saved(fitted, tmp_path):
    fitted.save(tmp_path)
    again = accord.NodeClassifier.load(tmp_path)
    kept = []
    for precision in (0.5, 0.8, 0.9):
        labels = [fitted.predict(graph, precision=precision) for graph in TEST]
        assert all(torch.equal(a, again.predict(g, precision=precision)) for a, g in zip(labels, TEST, strict=True))
        given, truth = torch.cat(labels), torch.cat([graph.y for graph in TEST])
        everything = torch.cat([fitted.predict(graph) for graph in TEST])
        assert torch.equal(given[given >= 0], everything[given >= 0])
        assert (given == truth)[given >= 0].double().mean() >= precision - 0.1
        kept.append(int((given >= 0).sum()))
    assert kept[0] >= kept[1] >= kept[2] > 0
    assert bool((fitted.predict(TEST[0], precision=1.0) == -1).all())
    for wrong in (0.0, 1.5, "x", True):
        with pytest.raises(OptionError, match="precision is"):
            fitted.predict(TEST[0], precision=wrong)
    with pytest.raises(InputError, match="no precision is known"):
        classifier(max_epochs=0).fit(TRAIN, VAL).predict(TEST[0], precision=0.9)


def test_far_departures_warn_and_fall_back(fitted, tmp_path):
    model = classifier(fallback=True).fit(TRAIN, VAL)
    model.save(tmp_path)
    again = accord.NodeClassifier.load(tmp_path)
    assert again.fallback and again.choice_ == model.choice_
    far = TEST[0].clone()
    alone = model.answers([far]).labels["gnn"][0]
    for own in (model, again):
        own.model_.validated.departure[0] = [10_000.0, 0.0, 0.0]  # validation graphs without any difference
        differing = int((own.answers([far]).labels["spn"][0] != alone).sum())
        assert differing > 5
        with pytest.warns(DepartureWarning, match=f"at {differing} of 60 nodes; on validation graphs at 0 of 10000"):
            assert torch.equal(own.predict(far), alone)
    fitted.predict(far)  # usual differences do not warn


def test_a_model_no_better_than_the_majority_says_so():
    def scrambled(graphs, seed):
        generator = torch.Generator().manual_seed(seed)
        y = (torch.rand(len(graphs), 60, generator=generator) < 0.1).long()
        blank = torch.zeros(60, STATES)
        return [Data(x=blank, edge_index=g.edge_index, y=own) for g, own in zip(graphs, y, strict=True)]

    with pytest.warns(MajorityWarning, match="not better than the most frequent training label. Check that"):
        classifier().fit(scrambled(TRAIN, 0), scrambled(VAL, 1))


@pytest.mark.parametrize("level", ["f1", "likelihood", "auc"])
@pytest.mark.parametrize("method", METHODS)
def test_every_method_learns_at_every_level(method, level, tmp_path):
    model = classifier(method=method, level=level, recipe=fast(method)).fit(TRAIN, VAL)
    model.save(tmp_path)
    score = model.score(TEST)
    assert math.isfinite(score) and accord.NodeClassifier.load(tmp_path).score(TEST) == pytest.approx(score)
    assert score == pytest.approx(model.score(TEST, level)) and model.score(TEST, "node") > 0.5


def test_models_saved_before_read_as_they_were(fitted, tmp_path):
    """Without what is measured now: nothing is barred, beliefs are not calibrated, potentials not shrunk."""
    fitted.save(tmp_path)
    config = json.loads((tmp_path / "model.json").read_text())
    for key in ("unseen", "temperature", "evidence_share", "departure", "precision"):
        del config["choice"][key]
    for key in ("node_shrinkage", "edge_shrinkage"):
        config["choice"][key] = [0.0]
    del config["fallback"], config["sha256"], config["recipe"]["rule"], config["recipe"]["shrinkage"]
    (tmp_path / "model.json").write_text(json.dumps(config))
    old = accord.NodeClassifier.load(tmp_path)
    assert old.recipe_.rule == "score" and old.recipe_.shrinkage == 0 and old.fallback is False
    batch = old.collate([TEST[0]])
    assert torch.equal(old.predict_proba(TEST[0]), old.model_.beliefs(batch, "sum").node[0].exp())
    assert len(old.predict(TEST[0])) == 60
    with pytest.raises(InputTypeError, match="fallback"):
        classifier(fallback="yes").fit(TRAIN, VAL)
