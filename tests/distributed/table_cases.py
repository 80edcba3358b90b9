"""Graphs in folders, and what every process that reads them finds."""

import pytest
import torch
import torch.distributed as dist
from distributed.whole_graphs import whole_graph

from accord.distributed import cut_graph, read_parts
from accord.distributed._partition import hash_part
from accord.errors import GraphError

CASES = {  # name: files, whether there is a column `part`, how many parts it names, edge attributes, named columns
    "hash": (3, None, 0, False),
    "one file": (1, None, 2, True),
    "parts": (5, 4, 0, True),
    "fewer parts than processes": (2, 2, 1, False),
}


def named_graph(case):
    files, parts, attributes, named = CASES[case]
    data = whole_graph("power" if files > 2 else "random", seed=files, attributes=attributes)
    if named:
        data.feature_names = [f"f{n}" for n in range(6)]
        if attributes:
            data.edge_names = ["weight", "length"]
    owner = None if parts is None else torch.arange(60) % parts
    return data, files, owner


def same_halo(first, second):
    return (
        first.num_own == second.num_own
        and list(first.receive) == list(second.receive)
        and all(torch.equal(a, b) for a, b in zip(first.send, second.send, strict=True))
    )


def check_folders(rank, ranks, root):
    for case in CASES:
        data, _, parts = named_graph(case)
        found = read_parts(root / case)
        owner = hash_part(data.node_id, ranks) if parts is None else parts * ranks // CASES[case][1]
        wanted = cut_graph(data, owner, rank, ranks)
        part, cut = found.part, wanted.part
        for name in ("nodes", "edge_index", "edges", "counted"):
            assert torch.equal(getattr(part, name), getattr(cut, name)), (case, name)
        assert (part.rank, part.ranks, part.num_nodes) == (rank, ranks, 60)
        assert same_halo(part.halo, cut.halo), case
        for name in ("x", "ids", "edge_index", "y"):
            assert torch.equal(getattr(found, name), getattr(wanted, name)), (case, name)
        assert (found.edge_attr is None) == (wanted.edge_attr is None)
        assert found.edge_attr is None or torch.equal(found.edge_attr, wanted.edge_attr)
        assert found.feature_names == (wanted.feature_names or tuple(f"x{n}" for n in range(6)))
        numbers = part.nodes.double()[:, None].clone()
        numbers[part.num_own :] = -1
        assert torch.equal(part.halo.exchange(numbers)[:, 0], part.nodes.double()), "ghosts come from their owners"
    with pytest.raises(GraphError, match="the id 5 occurs twice"):
        read_parts(root / "twice")
    with pytest.raises(GraphError, match=r"target 99 is not an id in"):
        read_parts(root / "no such node")
    with pytest.raises(GraphError, match="NaN or infinity"):
        read_parts(root / "missing")
    with pytest.raises(GraphError, match="cannot be read as a Parquet file"):
        read_parts(root / "damaged")
    assert dist.get_rank() == rank  # all processes came through all errors
    return int(part.counted.sum()), part.num_own, found.part.edges.tolist()
