"""Memory of training on a stream does not grow with the number of graphs; that of training on a list does."""

import os
import subprocess
import sys

import numpy as np
import pytest

from accord._memory import resident_memory

MB = 2**20
FEW, MANY, NODES, FEATURES = 100, 600, 100, 1000
GROWTH = (MANY - FEW) * NODES * FEATURES * 4 / MB  # of the training set from few to many graphs: 191 MB

# Prints the peak of the process, in MB; a first small training loads what all need.
CODE = """
import sys
from pathlib import Path
from accord import NodeClassifier
from accord._memory import resident_memory
from accord.datasets import GraphFiles, read_graph, read_graphs
from accord.encoders import MLP
kind, folder, scratch = sys.argv[1:]
first = [read_graph(path) for path in sorted(Path(folder).iterdir())[:3]]
def train(graphs):
    model = NodeClassifier(encoder=MLP(hidden=4), edge_encoder=MLP(hidden=4), features="standardised", max_epochs=2)
    model.fit(graphs, first[:1])
train(first)
train(GraphFiles(folder, scratch=scratch) if kind == "stream" else read_graphs(folder))
print(resident_memory(peak=True) / 2**20)
"""


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    """Folders of few and of many graphs; the few are among the many."""
    few, many = (tmp_path_factory.mktemp(name) for name in ("few", "many"))
    generator = np.random.default_rng(0)
    start = np.arange(NODES - 1)
    for number in range(MANY):
        x = generator.standard_normal((NODES, FEATURES), np.float32)
        path = many / f"{number:04d}.npz"
        np.savez(path, x=x, y=(x[:, 0] > 0).astype(np.int64), edge_index=np.stack([start, start + 1]))
        if number < FEW:
            (few / path.name).symlink_to(path)
    return few, many


@pytest.mark.matrix
@pytest.mark.skipif(resident_memory(peak=True) is None, reason="the system does not report the peak of a process")
def test_memory_does_not_grow_with_the_number_of_graphs(folders, tmp_path):
    few, many = folders

    def peak(kind, folder):
        command = [sys.executable, "-c", CODE, kind, str(folder), str(tmp_path)]
        environment = os.environ | {"OMP_NUM_THREADS": "1", "MALLOC_ARENA_MAX": "1"}
        done = subprocess.run(command, capture_output=True, text=True, env=environment, timeout=240)
        assert done.returncode == 0, done.stderr
        return float(done.stdout)

    streamed, listed = (peak(kind, many) - peak(kind, few) for kind in ("stream", "list"))
    print(f"from {FEW} to {MANY} graphs: {streamed:.0f} MB more streamed, {listed:.0f} MB more in memory")
    assert streamed < GROWTH / 2 and listed > 2 * GROWTH  # a busy system changes peaks by tens of MB
