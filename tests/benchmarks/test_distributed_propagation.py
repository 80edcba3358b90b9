"""The benchmark of partitioned propagation: its lattices, what it counts, and its page."""

import importlib
import json
import sys
from itertools import product
from pathlib import Path

import pytest
import torch

from accord.distributed import cut_part, partition

ROOT = Path(__file__).parents[2]
NAMES = ("load", "processes", "lattices", "memory", "speed", "exchange", "shared_gpu", "no_cost", "report")
NAMES += ("propagation",)


@pytest.fixture(scope="module")
def scripts():
    """The scripts, which import each other as they do when they are run; other processes find them in sys.path."""
    folder = str(ROOT / "benchmarks" / "distributed")
    sys.path.insert(0, folder)
    yield {name: importlib.import_module(name) for name in NAMES}
    sys.path.remove(folder)
    for name in NAMES:
        del sys.modules[name]


@pytest.mark.parametrize("ranks", [1, 2, 3, 4])
@pytest.mark.parametrize(("nodes", "offsets"), [(50, (1, 7)), (41, (1, 2, 3)), (24, (1, 11)), (30, (1,))])
def test_a_part_of_a_lattice_is_the_one_cut_out_of_the_whole(scripts, nodes, offsets, ranks):
    lattices = scripts["lattices"]
    numbers, targets = lattices.edges_from(torch.arange(nodes), offsets, nodes)
    whole = torch.stack([numbers // len(offsets), targets])
    field = lattices.lattice_field(lattices.lattice_part(nodes, offsets, 0, 1), 3)
    for rank in range(ranks):
        found = lattices.lattice_part(nodes, offsets, rank, ranks)
        cut = cut_part(whole, partition(whole, nodes, ranks, "blocks"), rank, ranks)
        for name in ("nodes", "edge_index", "edges", "counted"):
            torch.testing.assert_close(getattr(found, name), getattr(cut, name))
        assert (found.num_own, list(found.halo.receive)) == (cut.num_own, list(cut.halo.receive))
        for mine, expected in zip(found.halo.send, cut.halo.send, strict=True):
            torch.testing.assert_close(mine, expected)
        own = lattices.lattice_field(found, 3)
        torch.testing.assert_close(own.node, field.node[found.nodes])
        torch.testing.assert_close(own.edge, field.edge[found.edges])


def test_each_border_node_is_sent_once_to_each_process(scripts, monkeypatch, tmp_path):
    speed = scripts["speed"]
    star = torch.tensor([[0, 0, 0, 0], [1, 2, 3, 4]])
    # The centre goes to two other processes, and three leaves come to the centre's.
    assert speed.lower_bound(star, torch.tensor([0, 0, 1, 1, 2]), 3, 12) == 12 * (2 + 3)
    monkeypatch.setattr(speed, "COUNTS", (2,))
    monkeypatch.setattr(speed, "OTHERS", 2.0)  # no times are looked at
    (row,) = speed.compare("citation", 2000, 3, 1, tmp_path)
    assert row["bytes_sweep"] == row["bytes_bound"] > 0 and row["difference"] <= speed.AGREE


def test_processes_measure_what_they_hold(scripts):
    memory = scripts["memory"]
    with scripts["processes"].Processes(1) as processes:
        (row,) = processes.run(memory.hold, 200_000, (1, 100), 3)
        with pytest.raises(RuntimeError, match="half of 100 nodes"):
            processes.run(memory.hold, 100, (1, 60), 3)
    assert row["edges"] == 400_000 and row["seconds_sweep"] > 0
    assert row["peak"] - row["before"] > 400_000 * (36 + 16)  # tables and numbers of ends at least


def test_a_grid_that_does_not_fit_is_refused(scripts, monkeypatch):
    memory = scripts["memory"]
    monkeypatch.setattr(memory, "LIMIT", 10**6)
    with pytest.raises(MemoryError, match="Give fewer by --edges"):
        memory.huge(2 * 10**4, 3, 1)


def test_the_page_has_the_stored_figures(scripts):
    folder = ROOT / "results" / "distributed"
    stored = json.loads((folder / "propagation.json").read_text())
    assert (folder / "propagation.md").read_text() == scripts["propagation"].page(stored)
    assert stored["huge"]["rows"][-1]["edges"] == 10**8  # what the study is for
    assert stored["huge"]["rows"][-1]["total_peak"] < 24 * 2**30
    shared = scripts["shared_gpu"]
    measured = [((row["graph"], row["states"]), row["count"]) for row in stored["gpu"]["rows"]]
    assert measured == list(product(shared.CASES, shared.COUNTS))
    worst = max(row["difference"] for row in stored["gpu"]["rows"])
    assert f"agreed with one process to {worst:.0e}" in (ROOT / "docs" / "distributed.md").read_text()
    no_cost = json.loads((folder / "no_cost.json").read_text())
    assert (folder / "no_cost.md").read_text() == scripts["no_cost"].page(no_cost)
    assert [(case["graph"], case["states"]) for case in stored["speed"]] == list(scripts["speed"].CASES)
    assert all(row["bytes_sweep"] == row["bytes_bound"] for case in stored["speed"] for row in case["rows"])
