"""Which test graphs to show: those on which the parts of a model differ, as in the paper's case study."""

from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from accord.app.labelling import Labelled, joint_part

MAX_NODES = 30  # of a drawing; of larger graphs a neighbourhood is cut out
MIN_NODES = 3  # smaller graphs have little to show
MAX_CASES = 4
MAX_TASKS, MAX_CUT_OUT = 8, 60  # that are looked at; there is no need to find the very best picture


@dataclass(frozen=True)
class Case:
    """One graph, or a neighbourhood in a large one, and its labels by each part."""

    title: str
    edges: list[list[int]]  # two lists
    truth: list[int]  # -1 where unknown
    labels: dict[str, list[int]]
    images: list[list[float]] | None = None  # pixels of each node

    def plain(self) -> dict[str, Any]:
        """As JSON values."""
        return asdict(self)


@dataclass(frozen=True, eq=False)
class Candidate:
    """How the parts do on one graph and task."""

    task: int
    nodes: np.ndarray
    wrong: dict[str, int]
    joint: str  # the part that stands for the whole model

    @property
    def is_gain(self) -> bool:
        """Whether the field is right throughout where the node network is not."""
        return self.wrong[self.joint] == 0 and self.wrong["gnn"] > 0

    @property
    def is_loss(self) -> bool:
        """Whether the field makes mistakes that the node network does not."""
        return self.wrong[self.joint] > self.wrong["gnn"]


def choose_cases(labelled: Labelled, images: Tensor | None = None) -> list[Case]:
    """A few graphs that show what the field changes: mostly gains, and one failure if there is one.

    Args:
        labelled: what the parts say; nothing is shown of a node network alone.
        images: [nodes, pixels], where nodes have images.
    """
    if labelled.truth is None or joint_part(labelled.labels) is None:
        return []
    candidates = list(_candidates(labelled))
    gains = sorted((c for c in candidates if c.is_gain), key=lambda c: (-c.wrong["gnn"], -c.wrong.get("edge", 0)))
    losses = sorted((c for c in candidates if c.is_loss), key=lambda c: c.wrong["gnn"] - c.wrong[c.joint])
    # Where the edge network errs too, neither network alone would have done: the paper's bottom case.
    both = [c for c in gains if c.wrong.get("edge", 0) > 0]
    picked: list[Candidate] = []
    for pool, count in ((both, 2), (gains, MAX_CASES - 1), (losses, MAX_CASES)):
        for candidate in pool:
            if len(picked) < count and candidate not in picked:
                picked.append(candidate)
                if pool is losses:
                    break
    if not picked:
        differing = sorted(candidates, key=lambda c: -max(c.wrong.values()))
        picked = [c for c in differing if len(set(c.wrong.values())) > 1][:MAX_CASES]
    return [_case(labelled, candidate, images) for candidate in picked]


def _candidates(labelled: Labelled) -> Iterator[Candidate]:
    """Every graph whose size suits, or a neighbourhood of a node where the parts differ."""
    truth = labelled.truth
    assert truth is not None
    graph = labelled.topology.graph.cpu().numpy()
    members = np.split(np.argsort(graph, kind="stable"), np.cumsum(np.bincount(graph))[:-1])
    cut_out = 0
    for nodes in members:
        if len(nodes) < MIN_NODES:
            continue
        if len(nodes) <= MAX_NODES:
            for task in range(min(len(truth), MAX_TASKS)):
                yield _judge(labelled, task, nodes)
        elif cut_out < MAX_CUT_OUT:
            for task, centre in _disputed(labelled, nodes):
                cut_out += 1
                around = _neighbourhood(labelled, centre)
                if len(around) >= MIN_NODES:
                    yield _judge(labelled, task, around)


def _joint(labelled: Labelled) -> str:
    name = joint_part(labelled.labels)
    assert name is not None  # nothing is chosen of a node network alone
    return name


def _judge(labelled: Labelled, task: int, nodes: np.ndarray) -> Candidate:
    assert labelled.truth is not None
    truth = labelled.truth[task, nodes]
    wrong = {
        name: int(((labels[task, nodes] != truth) & (truth >= 0)).sum()) for name, labels in labelled.labels.items()
    }
    return Candidate(task, nodes, wrong, _joint(labelled))


def _disputed(labelled: Labelled, nodes: np.ndarray, limit: int = 6) -> list[tuple[int, int]]:
    """A few (task, node) of a large graph where node network and field differ and one is right."""
    assert labelled.truth is not None
    inside = torch.from_numpy(nodes)
    truth = labelled.truth[:, inside]
    alone, jointly = labelled.labels["gnn"][:, inside], labelled.labels[_joint(labelled)][:, inside]
    found: list[tuple[int, int]] = []
    for better in (jointly, alone):
        places = ((alone != jointly) & (better == truth)).nonzero()[:limit]
        found += [(int(task), int(inside[node])) for task, node in places]
    return found


def _neighbourhood(labelled: Labelled, centre: int, limit: int = 16) -> np.ndarray:
    """Nodes within two steps of `centre`, the nearest first, at most `limit`."""
    ends = torch.cat([labelled.topology.edge_index, labelled.topology.edge_index.flip(0)], 1).numpy()
    kept = [centre]
    for _ in range(2):
        near = np.unique(ends[1, np.isin(ends[0], kept)])
        kept += [int(node) for node in near if node not in kept][: limit - len(kept)]
    return np.array(kept)


def _case(labelled: Labelled, candidate: Candidate, images: Tensor | None) -> Case:
    assert labelled.truth is not None
    nodes, task = candidate.nodes, candidate.task
    source, target = labelled.topology.edge_index.cpu().numpy()
    inside = np.isin(source, nodes) & np.isin(target, nodes)
    number = {int(node): place for place, node in enumerate(nodes)}
    edges = [[number[int(node)] for node in ends[inside]] for ends in (source, target)]
    graph = int(labelled.topology.graph[int(nodes[0])])
    part = f", label {task}" if len(labelled.truth) > 1 else ""
    kind = (
        ": joint labels are all right" if candidate.is_gain else ": joint labels do worse" if candidate.is_loss else ""
    )
    return Case(
        title=f"test graph {graph}{part}{kind}",
        edges=edges,
        truth=labelled.truth[task, nodes].tolist(),
        labels={name: labels[task, nodes].tolist() for name, labels in labelled.labels.items()},
        images=None if images is None else images[nodes].tolist(),
    )
