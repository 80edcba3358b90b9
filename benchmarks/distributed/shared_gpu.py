"""Several processes whose parts all lie on one GPU: they exchange totals by gloo, through the memory of the host.

One GPU serves them in turn, so this shows that answers agree. It does not pay, and no times are taken.
"""

from pathlib import Path

import torch
from processes import Processes
from speed import AGREE, CHECKED, GRAPHS, Row, doubled, made_field

from accord.distributed import cut_field, cut_part, partition, propagate
from accord.inference import propagate as propagate_whole

CASES = (("grid", 3), ("power law", 3), ("citation", 3), ("grid", 10))
WAYS = ({}, {"damping": 0.4}, {"edge_appearance": 0.6}, {"semiring": "max"})
COUNTS = (1, 2, 4)
METHODS = {"grid": "blocks"}  # elsewhere nodes are dealt out by hash: METIS is not needed to show that answers agree


def compare(graph: str, edges: int, states: int, folder: Path) -> list[Row]:
    """A row for each number of processes: the largest difference of beliefs from those of one process."""
    index, whole, rows = GRAPHS[graph](edges), made_field(graph, edges, states).to("cuda"), []
    expected = str(folder / "expected.pt")
    exact = [propagate_whole(doubled(whole), max_sweeps=CHECKED, tolerance=0.0, **way).node.cpu() for way in WAYS]
    torch.save(torch.stack(exact), expected)
    nodes = int(index.max()) + 1
    for count in COUNTS:
        with Processes(count) as group:
            torch.save(partition(index, nodes, count, METHODS.get(graph, "hash")), folder / "owner.pt")
            group.run(_load, graph, edges, states, str(folder / "owner.pt"))
            worst = max(group.run(_check, expected))
            assert worst <= AGREE, f"{graph}: beliefs of {count} processes differ from those of one by {worst}"
        shape = {"graph": graph, "states": states, "nodes": nodes, "edges": index.shape[1], "count": count}
        rows.append({**shape, "difference": worst})
    return rows


def _load(rank: int, ranks: int, kept: Row, graph: str, edges: int, states: int, owner: str) -> None:
    field = made_field(graph, edges, states)
    kept["part"] = cut_part(field.edge_index, torch.load(owner), rank, ranks)
    kept["field"] = cut_field(field, kept["part"]).to("cuda")


def _check(rank: int, ranks: int, kept: Row, expected: str) -> float:
    """The largest difference of a belief of an own node from that of one process, in float64, over all ways."""
    part, worst = kept["part"], 0.0
    for way, whole in zip(WAYS, torch.load(expected), strict=True):
        found = propagate(part, doubled(kept["field"]), max_sweeps=CHECKED, tolerance=0.0, **way)
        assert found.node.is_cuda and found.backend == "reference"
        own = whole[part.nodes[: part.num_own]]
        worst = max(worst, float((found.node[: part.num_own].cpu().exp() - own.exp()).abs().max()))
    return worst
