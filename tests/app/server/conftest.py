"""A served model: as an application in this process, and as a real server in another."""

import pytest
from support.command_line import NAMES, make_graph
from support.serving import Server, here_app

from accord.app.server.limits import Limits
from accord.datasets import write_graph
from accord.estimator import NodeClassifier


@pytest.fixture(scope="session")
def model(trained):
    return NodeClassifier.load(trained)


@pytest.fixture(scope="session")
def graph_file(tmp_path_factory):
    """A graph as a .json file, with labels."""
    path = tmp_path_factory.mktemp("graphs") / "ring.json"
    write_graph(make_graph(300), path, NAMES)
    return path


@pytest.fixture
def app(model, data_folder, tmp_path):
    return here_app(model, tmp_path, Limits(megabytes=1, nodes=200, edges=400, graphs=3), str(data_folder))


@pytest.fixture(scope="module")
def server(trained, data_folder):
    with Server(trained, "--data", data_folder, "--max-megabytes", "2", "--max-seconds", "20") as running:
        yield running
