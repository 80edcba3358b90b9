"""What tests of the command line share: a small data folder with names for labels, and ways to call `accord`."""

from pathlib import Path

import torch
from torch_geometric.data import Data
from typer.testing import CliRunner

from accord.app.cli import app
from accord.datasets import write_graph

NAMES = ["apple", "pear", "quince"]
QUICK = ["--encoder", "mlp", "--max-epochs", "15", "--accelerator", "cpu"]


def make_graph(seed, num_nodes=7, with_labels=True):
    """A ring whose neighbours mostly agree; features show the label, now and then wrongly."""
    generator = torch.Generator().manual_seed(seed)
    y = torch.full((num_nodes,), seed % 3)
    y[: num_nodes // 2] = (seed + 1) % 3
    shown = torch.where(torch.rand(num_nodes, generator=generator) < 0.25, (y + 1) % 3, y)
    x = torch.nn.functional.one_hot(shown, 3).float() + 0.1 * torch.randn(num_nodes, 3, generator=generator)
    ring = torch.arange(num_nodes)
    edge_index = torch.stack([ring, ring.roll(-1)])
    node_id = 1000 * seed + ring
    return Data(x=x, edge_index=edge_index, node_id=node_id, y=y if with_labels else None)


def make_data(folder: Path, train=12, val=4, test=6) -> Path:
    """train as csv folders, val as json, test as npz; one test graph occurs in training as well."""
    for number in range(train):
        write_graph(make_graph(number), folder / "train" / f"g{number:02d}", NAMES)
    for number in range(val):
        write_graph(make_graph(100 + number), folder / "val" / f"g{number:02d}.json", NAMES)
    for number in range(test):
        write_graph(make_graph(200 + number if number else 0), folder / "test" / f"g{number:02d}.npz", NAMES)
    return folder


def call(*arguments):
    """Run `accord` in this process; errors that are bugs are raised."""
    result = CliRunner().invoke(app, [str(argument) for argument in arguments])
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    return result


def refused(*arguments):
    """The one line that `accord` says when it refuses."""
    result = call(*arguments)
    assert result.exit_code == 2, result.output
    line = result.stderr.strip()
    assert line.startswith("Error: ") and "\n" not in line, line
    return line
