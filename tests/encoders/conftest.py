"""Graphs here have a dozen nodes: threads would only wait for each other, for minutes where cores are busy."""

import pytest
import torch


@pytest.fixture(autouse=True, scope="package")
def one_thread():
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)
