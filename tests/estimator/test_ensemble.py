"""The front door's `ensemble` and `refit`: one model, saved as one, that says how it was made."""

import json

import pytest
import torch
from support.made_graphs import made_trees
from torch.testing import assert_close

from accord import NodeClassifier
from accord._files import sealed
from accord.encoders import GCN, MLP
from accord.errors import InputError, InputTypeError, OptionError
from accord.estimator.fitting import _inputs
from accord.learning.training._fixed_length import FixedLengthTrainer

TRAIN, VAL, TEST = made_trees(30, 0, states=3), made_trees(15, 1, states=3), made_trees(10, 2, states=3)


def classifier(**changes):
    options = {"encoder": MLP(hidden=8), "edge_encoder": GCN(hidden=8), "max_epochs": 10, "accelerator": "cpu"}
    return NodeClassifier(**{**options, **changes})


@pytest.fixture(scope="module")
def fitted():
    return classifier(ensemble=3, refit=True, seed=5).fit(TRAIN, VAL)


def test_members_have_consecutive_seeds():
    whole = classifier(ensemble=2, seed=5, method="gnn").fit(TRAIN, VAL)
    apart = [classifier(seed=seed, method="gnn").fit(TRAIN, VAL) for seed in (5, 6)]
    evidence = [one.model_.node_logits(one.collate(TEST[:1])).softmax(-1) for one in apart]  # before calibration
    found = whole.model_.node_logits(whole.collate(TEST[:1])).softmax(-1)
    assert_close(found, torch.stack(evidence).mean(0), rtol=1e-4, atol=1e-5)


def test_an_ensemble_is_saved_as_one_model(fitted, tmp_path):
    fitted.save(tmp_path)
    loaded = NodeClassifier.load(tmp_path)
    assert (loaded.ensemble, loaded.refit, loaded.seed) == (3, True, 5)
    for graph in TEST:
        assert torch.equal(loaded.predict(graph), fitted.predict(graph))
        assert torch.equal(loaded.predict_proba(graph), fitted.predict_proba(graph))
    card = (tmp_path / "README.md").read_text()
    assert "Average of 3 members, seeds 5 to 7" in card and "training and validation graphs together" in card
    assert len(fitted.choice_["sharpness"]) == 1


def test_plain_models_do_not_mention_ensembles_and_older_files_stay_readable(tmp_path):
    model = classifier().fit(TRAIN, VAL)
    model.save(tmp_path)
    card = (tmp_path / "README.md").read_text()
    assert "members" not in card and "refit" not in card
    config = json.loads((tmp_path / "model.json").read_text())
    older = {name: value for name, value in config.items() if name not in ("ensemble", "refit", "sha256")}
    (tmp_path / "model.json").write_text(json.dumps(sealed(older)))
    loaded = NodeClassifier.load(tmp_path)
    assert (loaded.ensemble, loaded.refit) == (1, False)
    assert torch.equal(loaded.predict(TEST[0]), model.predict(TEST[0]))


@pytest.mark.parametrize("members", [0, 2, 10**9, 1.5, None, True])
def test_a_saved_number_of_members_that_does_not_fit_is_refused(fitted, tmp_path, members):
    fitted.save(tmp_path)
    config = json.loads((tmp_path / "model.json").read_text()) | {"ensemble": members}
    del config["sha256"]
    (tmp_path / "model.json").write_text(json.dumps(sealed(config)))
    with pytest.raises(InputError):
        NodeClassifier.load(tmp_path)


def test_portions_count_the_tables_of_all_members(fitted, monkeypatch):
    whole = fitted.answers(TEST)
    edges = max(graph.num_edges for graph in TEST)
    monkeypatch.setattr(_inputs, "PORTION_NUMBERS", 3 * 3**2 * edges)  # one graph of three members
    assert len(list(fitted._batches(TEST))) > 4
    assert torch.equal(fitted.answers(TEST).labels["spn"], whole.labels["spn"])


def test_refit_learns_from_validation_labels():
    few, labels = TRAIN[:4], [graph.y.clone() for graph in VAL]
    options = {"method": "gnn", "num_states": 3, "max_epochs": 60}
    plain, again = (classifier(refit=on, **options).fit(few, VAL) for on in (False, True))
    assert all(torch.equal(graph.y, y) for graph, y in zip(VAL, labels, strict=True))  # what was given is unchanged

    def likelihood(model):
        rows = [model.predict_proba(graph).log().gather(1, graph.y[:, None]) for graph in VAL]
        return float(torch.cat(rows).mean())

    assert likelihood(again) > likelihood(plain) + 0.05
    assert again.model_.history[-1]["epoch"] > plain.model_.history[-1]["epoch"]


def test_one_graph_is_refitted_on_all_its_labels(monkeypatch):
    graph, seen = TRAIN[0], []
    batches = FixedLengthTrainer.batches
    monkeypatch.setattr(FixedLengthTrainer, "batches", lambda self, train: seen.append(train) or batches(self, train))
    classifier(refit=True, num_states=3).fit(graph)
    ((whole,),) = seen
    assert torch.equal(whole.y, graph.y)


@pytest.mark.parametrize(
    ("changes", "error", "message"),
    [
        ({"ensemble": 0}, OptionError, "ensemble is 0; it must be at least 1"),
        ({"ensemble": None}, InputTypeError, "ensemble is None; a whole number"),
        ({"ensemble": 2.0}, InputTypeError, "ensemble is 2.0; a whole number"),
        ({"refit": 1}, InputTypeError, "refit is 1; True or False"),
        ({"ensemble": 2, "method": "gmnn"}, OptionError, "'gmnn' does not support ensemble=2"),
        ({"refit": True, "method": "crf"}, OptionError, "'crf' does not support refit=True"),
        ({"refit": True, "refine": True}, OptionError, "refinement does not support refit=True"),
    ],
)
def test_what_cannot_be_used_is_refused_by_name(changes, error, message):
    with pytest.raises(error, match=message):
        classifier(**changes).fit(TRAIN, VAL)
