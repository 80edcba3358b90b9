"""Models label a graph in parts as they label the whole graph."""

import warnings

import pytest
from distributed.in_parts import run_in_parts
from distributed.model_cases import MODELS, check_models, check_refused, check_warned, fit, labelled
from support.matrix import matrix

from accord.estimator import NodeClassifier

REFUSED = {
    "unet": (dict(encoder="unet"), "reads the graph as a whole"),
    "triangles": (dict(encoder="mlp", order=3), "triangles"),
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("models")
    for name in MODELS:
        fit(name, folder)
    return folder


@pytest.mark.parametrize("ranks", [2, matrix(4)])
def test_labels_and_probabilities_are_those_of_one_process(folder, ranks):
    joint = run_in_parts(check_models, ranks, folder)
    assert joint[0]["spn"] + joint[0]["crf"] > 0, "joint labels differ from each node's best state somewhere"


def test_models_that_need_the_whole_graph_are_refused(tmp_path):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for name, (parameters, _) in REFUSED.items():
            NodeClassifier(**parameters, max_epochs=2).fit([labelled(0, nodes=60)]).save(tmp_path / name)
    assert all(run_in_parts(check_refused, 2, tmp_path, {name: text for name, (_, text) in REFUSED.items()}))


def test_beliefs_that_do_not_converge_come_with_the_warning_of_one_process(folder):
    for rank, ((alone, parts), residual) in enumerate(run_in_parts(check_warned, 2, folder)):
        assert len(alone) == 1 and len(parts) == (rank == 0)
        changed = alone[0][alone[0].index("(") : alone[0].index(")")]
        assert residual > 0 and all("did not converge" in text and changed in text for text in parts)
