"""`fit(unlabelled=...)`: confident labels become training labels, and only a gain beyond noise is kept."""

import pytest
import torch
from support.made_graphs import made_trees
from torch_geometric.data import Data
from torch_geometric.nn import GCNConv

from accord import NodeClassifier
from accord.encoders import MLP
from accord.errors import GraphError, InputTypeError, OptionError
from accord.estimator.fitting import _unlabelled
from accord.estimator.fitting._unlabelled import confident_labels
from accord.learning import TrainingRun

STATES = 3
TRAIN, VALIDATION, MORE, TEST = (made_trees(20, seed, STATES) for seed in range(4))
UNLABELLED = [Data(x=graph.x, edge_index=graph.edge_index) for graph in MORE]


def model(**changes):
    options = {"encoder": MLP(hidden=8), "edge_encoder": MLP(hidden=8), "max_epochs": 24, "accelerator": "cpu"}
    return NodeClassifier(**{**options, **changes})


def tensors_of(fitted):
    return fitted.model_.tensors()


def assert_same_weights(one, other):
    assert all(torch.equal(value, tensors_of(other)[name]) for name, value in tensors_of(one).items())


@pytest.fixture(scope="module")
def plain():
    return model().fit(TRAIN, VALIDATION)


@pytest.fixture
def always(monkeypatch):
    """Keep every second training, so that what follows can be tested."""
    monkeypatch.setattr(_unlabelled, "is_better", lambda *given: True)


def by_hand(fitted, threshold=0.8):
    """Graphs with the labels that a user would take, by predict and predict_proba."""
    extra = []
    for graph, labels, marginals in zip(MORE, fitted.predict(MORE), fitted.predict_proba(MORE), strict=True):
        sure = marginals.gather(1, labels[:, None])[:, 0] >= threshold
        if bool(sure.any()):
            extra.append(Data(x=graph.x, edge_index=graph.edge_index, y=torch.where(sure, labels, -1)))
    return extra


def test_the_second_training_equals_one_with_these_labels_given(always):
    raw = model(features="raw").fit(TRAIN, VALIDATION)
    extra = by_hand(raw)
    assert extra
    expected = model(features="raw", recipe=raw.recipe_).fit([*TRAIN, *extra], VALIDATION)
    found = model(features="raw").fit(TRAIN, VALIDATION, unlabelled=UNLABELLED)
    assert_same_weights(found, expected)
    labels = sum(int((graph.y >= 0).sum()) for graph in extra)
    assert found.unlabelled_["share"] == pytest.approx(labels / sum(len(graph.x) for graph in MORE))
    assert found.unlabelled_["graphs"] == 20 and found.unlabelled_["kept"]
    assert found.unlabelled_["scores"] == pytest.approx([raw.score(VALIDATION), expected.score(VALIDATION)])


def test_without_a_gain_beyond_noise_the_first_model_stays(plain, monkeypatch):
    monkeypatch.setattr(_unlabelled, "is_better", lambda *given: False)
    found = model().fit(TRAIN, VALIDATION, unlabelled=MORE)
    assert not found.unlabelled_["kept"] and found.unlabelled_["share"] > 0
    assert_same_weights(found, plain)
    assert found.model_.history == plain.model_.history


def test_labels_and_masks_of_unlabelled_graphs_are_not_read(always):
    wrong = []
    for graph in MORE:
        changed = graph.clone()
        changed.y = (graph.y + 1) % STATES
        changed.train_mask = torch.ones(len(graph.x), dtype=torch.bool)
        wrong.append(changed)
    found, other = (model().fit(TRAIN, VALIDATION, unlabelled=graphs) for graphs in (UNLABELLED, wrong))
    assert_same_weights(found, other)


@pytest.mark.parametrize("helps", [True, False])
def test_labels_that_help_are_kept_and_wrong_ones_are_not(helps, monkeypatch):
    few, many, held_out = (made_trees(count, seed, STATES, 0.8) for count, seed in ((3, 8), (100, 5), (60, 7)))
    if not helps:
        for graph in many:
            graph.y = (graph.y + 1) % STATES
    monkeypatch.setattr(_unlabelled, "confident_labels", lambda *given: (many, 1.0))
    found = model(max_epochs=60, features="raw", num_states=STATES).fit(few, held_out, unlabelled=many)
    first, second = found.unlabelled_["scores"]
    assert found.unlabelled_["kept"] == helps == (second > first + 0.05)
    assert found.score(held_out) == pytest.approx(second if helps else first)


def test_nothing_is_trained_where_no_label_is_confident(plain, monkeypatch):
    monkeypatch.setattr(_unlabelled, "CONFIDENT", 1.1)
    found = model().fit(TRAIN, VALIDATION, unlabelled=MORE)
    assert found.unlabelled_ == {"graphs": 20, "share": 0.0, "kept": False, "scores": None}
    assert_same_weights(found, plain)


def test_unusual_graphs_get_no_labels(plain, monkeypatch):
    run = TrainingRun(TRAIN, VALIDATION)
    treated = [plain.treatment_.apply(graph) for graph in UNLABELLED]
    assert confident_labels(plain, treated, run)[0]
    monkeypatch.setattr(
        _unlabelled, "unusual_graphs", lambda own, differing, topology: torch.ones(1, topology.num_graphs).bool()
    )
    assert confident_labels(plain, treated, run) == ([], 0.0)


def test_refit_trains_on_the_confident_labels_too(always, monkeypatch):
    seen = []
    monkeypatch.setattr("accord.estimator._classifier.refit", lambda own, method, run, *given: seen.append(run))
    found = model(refit=True).fit(TRAIN, VALIDATION, unlabelled=MORE)
    assert found.unlabelled_["kept"] and len(seen[0].train) > len(TRAIN)


@pytest.mark.parametrize(
    "changes", [{"ensemble": 2, "refit": True}, {"method": "gnn"}, {"method": "crf"}, {"class_weight": "balanced"}]
)
def test_it_works_with_other_options(changes, always):
    rows = []
    fitted = model(max_epochs=3, **changes).fit(TRAIN, VALIDATION, unlabelled=MORE, report=rows.append)
    assert fitted.predict(TEST[0]).shape == (TEST[0].num_nodes,)
    epochs = [row["epoch"] for row in fitted.model_.history]
    assert epochs == sorted(set(epochs)), "epochs of the second training follow those of the first"
    assert {row["epoch"] for row in rows} == set(epochs)


def test_several_tasks_have_labels_of_their_own(always):
    def two(graphs):
        return [Data(x=g.x, edge_index=g.edge_index, y=torch.stack([g.y % 2, (g.y > 0).long()], 1)) for g in graphs]

    fitted = model().fit(two(TRAIN), two(VALIDATION), unlabelled=UNLABELLED)
    assert fitted.unlabelled_["kept"] and fitted.predict(TEST[0]).shape == (TEST[0].num_nodes, 2)


def test_the_start_of_both_trainings_is_the_same(plain, always):
    found = model(max_epochs=0).fit(TRAIN, VALIDATION, unlabelled=MORE, start=plain)
    assert_same_weights(found, plain)


def test_a_stopped_fit_continues_to_the_same_model(always, tmp_path):
    expected = model().fit(TRAIN, VALIDATION, unlabelled=MORE)
    model().fit(TRAIN, VALIDATION, folder=tmp_path)
    found = model().fit(TRAIN, VALIDATION, folder=tmp_path, unlabelled=MORE)
    assert (tmp_path / "unlabelled" / "checkpoint.safetensors").is_file()
    assert_same_weights(found, expected)


def test_a_saved_model_tells_what_was_used(always, tmp_path, plain):
    found = model().fit(TRAIN, VALIDATION, unlabelled=MORE)
    found.save(tmp_path)
    assert NodeClassifier.load(tmp_path).unlabelled_ == found.unlabelled_
    assert "Confident labels of 20 unlabelled graphs" in (tmp_path / "README.md").read_text()
    assert plain.unlabelled_ is None


def test_graphs_that_do_not_fit_are_refused_before_training():
    untrained = model()
    with pytest.raises(GraphError, match="trained on 3"):
        untrained.fit(TRAIN, VALIDATION, unlabelled=[Data(x=torch.zeros(2, 5))])
    with pytest.raises(InputTypeError, match="unlabelled"):
        untrained.fit(TRAIN, VALIDATION, unlabelled=7)
    with pytest.raises(GraphError, match="empty"):
        untrained.fit(TRAIN, VALIDATION, unlabelled=[])
    assert not hasattr(untrained, "model_")
    with pytest.raises(OptionError, match="cannot start again"):
        model(encoder=GCNConv(STATES, STATES)).fit(TRAIN, VALIDATION, unlabelled=MORE)
