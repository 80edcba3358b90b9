"""One data folder and one run trained on it, shared by all tests of the command line."""

import pytest
from support.command_line import QUICK, call, make_data


@pytest.fixture(scope="session")
def data_folder(tmp_path_factory):
    return make_data(tmp_path_factory.mktemp("data") / "fruit")


@pytest.fixture(scope="session")
def trained(data_folder, tmp_path_factory):
    """A finished run, which tests must not change."""
    run = tmp_path_factory.mktemp("runs") / "fruit"
    result = call("fit", data_folder, "--run", run, *QUICK)
    assert result.exit_code == 0, result.output
    return run
