"""Choice of test graphs to show: graphs on which the parts of a model differ, as in the paper's case study."""

from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from accord.evaluation._answers import EDGE, NODE, Answers

MAX_NODES = 30  # in one drawing; of a larger graph only a neighbourhood is shown
MIN_NODES = 3  # smaller graphs show little
MAX_CASES = 4
MAX_TASKS, MAX_NEIGHBOURHOODS = 8, 60  # examined: a good example is enough, it need not be the best


@dataclass(frozen=True)
class Case:
    """One graph, or one neighbourhood of a large graph, with its true labels and the labels by each part."""

    title: str
    edges: list[list[int]]  # [2][edges]
    truth: list[int]  # -1 where unknown
    labels: dict[str, list[int]]  # part -> [nodes]
    images: list[list[float]] | None = None  # [nodes][pixels]

    def plain(self) -> dict[str, Any]:
        """The case as JSON values."""
        return asdict(self)


@dataclass(frozen=True, eq=False)
class Candidate:
    """Mistakes of each part on one graph and task."""

    task: int
    nodes: np.ndarray
    wrong: dict[str, int]  # part -> nodes labelled wrong
    joint: str  # the part that labels nodes jointly

    @property
    def is_gain(self) -> bool:
        """Whether the joint labels are all right and those of the node network are not."""
        return self.wrong[self.joint] == 0 and self.wrong[NODE] > 0

    @property
    def is_loss(self) -> bool:
        """Whether the joint labels have more mistakes than those of the node network."""
        return self.wrong[self.joint] > self.wrong[NODE]


def choose_cases(answers: Answers, images: Tensor | None = None) -> list[Case]:
    """Choose a few graphs that show what joint labels change: mostly gains, and one loss if there is any.

    Args:
        answers: predictions of the parts; there are no cases for a node network alone.
        images: [nodes, pixels] for nodes that are images, else None.
    """
    if answers.truth is None or answers.joint is None:
        return []
    candidates = list(_candidates(answers))
    gains = sorted((c for c in candidates if c.is_gain), key=lambda c: (-c.wrong[NODE], -c.wrong.get(EDGE, 0)))
    losses = sorted((c for c in candidates if c.is_loss), key=lambda c: c.wrong[NODE] - c.wrong[c.joint])
    # Cases where both networks alone make mistakes come first: the bottom row of the paper's case study.
    both = [c for c in gains if c.wrong.get(EDGE, 0) > 0]
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
    return [_case(answers, candidate, images) for candidate in picked]


def _candidates(answers: Answers) -> Iterator[Candidate]:
    """Graphs of suitable size, and neighbourhoods in larger graphs around nodes on which the parts differ."""
    truth = answers.truth
    assert truth is not None
    graph = answers.topology.graph.cpu().numpy()
    members = np.split(np.argsort(graph, kind="stable"), np.cumsum(np.bincount(graph))[:-1])
    neighbourhoods = 0
    for nodes in members:
        if len(nodes) < MIN_NODES:
            continue
        if len(nodes) <= MAX_NODES:
            for task in range(min(len(truth), MAX_TASKS)):
                yield _candidate(answers, task, nodes)
        elif neighbourhoods < MAX_NEIGHBOURHOODS:
            for task, centre in _disputed(answers, nodes):
                neighbourhoods += 1
                around = _neighbourhood(answers, centre)
                if len(around) >= MIN_NODES:
                    yield _candidate(answers, task, around)


def _candidate(answers: Answers, task: int, nodes: np.ndarray) -> Candidate:
    assert answers.truth is not None and answers.joint is not None
    truth = answers.truth[task, nodes]
    wrong = {
        name: int(((labels[task, nodes] != truth) & (truth >= 0)).sum()) for name, labels in answers.labels.items()
    }
    return Candidate(task, nodes, wrong, answers.joint)


def _disputed(answers: Answers, nodes: np.ndarray, limit: int = 6) -> list[tuple[int, int]]:
    """A few (task, node) of a large graph for which either the node network or the joint label is right."""
    assert answers.truth is not None and answers.joint is not None
    inside = torch.from_numpy(nodes)
    truth = answers.truth[:, inside]
    alone, jointly = answers.labels[NODE][:, inside], answers.labels[answers.joint][:, inside]
    found: list[tuple[int, int]] = []
    for better in (jointly, alone):
        places = ((alone != jointly) & (better == truth)).nonzero()[:limit]
        found += [(int(task), int(inside[node])) for task, node in places]
    return found


def _neighbourhood(answers: Answers, centre: int, limit: int = 16) -> np.ndarray:
    """At most `limit` nodes within two steps of `centre`, nearest first."""
    ends = torch.cat([answers.topology.edge_index, answers.topology.edge_index.flip(0)], 1).numpy()
    kept = [centre]
    for _ in range(2):
        near = np.unique(ends[1, np.isin(ends[0], kept)])
        kept += [int(node) for node in near if node not in kept][: limit - len(kept)]
    return np.array(kept)


def _case(answers: Answers, candidate: Candidate, images: Tensor | None) -> Case:
    assert answers.truth is not None
    nodes, task = candidate.nodes, candidate.task
    source, target = answers.topology.edge_index.cpu().numpy()
    inside = np.isin(source, nodes) & np.isin(target, nodes)
    number = {int(node): place for place, node in enumerate(nodes)}
    edges = [[number[int(node)] for node in ends[inside]] for ends in (source, target)]
    graph = int(answers.topology.graph[int(nodes[0])])
    part = f", label {task}" if len(answers.truth) > 1 else ""
    kind = (
        ": joint labels are all right" if candidate.is_gain else ": joint labels do worse" if candidate.is_loss else ""
    )
    return Case(
        title=f"test graph {graph}{part}{kind}",
        edges=edges,
        truth=answers.truth[task, nodes].tolist(),
        labels={name: labels[task, nodes].tolist() for name, labels in answers.labels.items()},
        images=None if images is None else images[nodes].tolist(),
    )
