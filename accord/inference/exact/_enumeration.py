"""Beliefs from the scores of all labellings: the oracle that other methods are tested against."""

import torch
from torch import Tensor

from accord.errors import InfeasibleError, InputTypeError, TooLargeError
from accord.field import PairwiseField
from accord.inference._options import Semiring, check_semiring
from accord.inference._semiring import REDUCE
from accord.inference.exact._beliefs import ExactBeliefs

MAX_ENUMERATED = 2**20  # labellings of a graph; more take too long to be of use in tests
MAX_NODES = 24  # axes of the table of all labellings; torch limits the number of axes


def enumerate_beliefs(field: PairwiseField, semiring: Semiring = "sum") -> ExactBeliefs:
    """Exact beliefs, one graph at a time, from the score of every labelling (same conventions as `propagate`).

    Raises:
        TooLargeError: a graph has more than 2**20 labellings; `eliminate_beliefs` goes much further.
        InfeasibleError: a graph has no labelling without forbidden states or pairs.
    """
    where = "enumerate_beliefs"
    if not isinstance(field, PairwiseField):
        raise InputTypeError(f"{where}: got a {type(field).__name__}, not a PairwiseField. Build one first.")
    check_semiring(semiring, where)
    node, edge = field.expanded()
    node_beliefs, edge_beliefs = torch.zeros_like(node), torch.zeros_like(edge)
    labels = torch.zeros(node.shape[:2], dtype=torch.long, device=node.device)
    totals = []
    for number in range(field.num_graphs):
        nodes = (field.graph == number).nonzero().flatten()
        edges = (field.graph[field.edge_index[0]] == number).nonzero().flatten()
        axis = {name: place for place, name in enumerate(nodes.tolist())}
        scores = _scores(field, node, edge, edges, axis)
        listed = scores.reshape(node.shape[0], -1)
        best = listed.detach().amax(-1, keepdim=True)
        if bool((best == -torch.inf).any()):
            raise InfeasibleError(
                f"{where}: graph {number} has no labelling without forbidden states or pairs. Relax one of them."
            )
        # The best score is subtracted first: next to a large one, the log of a count would be lost to rounding.
        excess = REDUCE[semiring](listed - best, dim=-1, keepdim=True)
        totals.append((best + excess)[:, 0])
        shifted = (listed - best - excess).reshape(scores.shape)
        for name, place in axis.items():
            node_beliefs[:, name] = _keep(shifted, (place,), semiring)
        for column in edges.tolist():
            s, t = (axis[int(name)] for name in field.edge_index[:, column])
            pair = _keep(shifted, (s, t), semiring)
            edge_beliefs[:, column] = pair if s < t else pair.transpose(-1, -2)
        labels[:, nodes] = _unravel(listed.argmax(-1), len(axis), field.num_states)

    def shape(values: Tensor) -> Tensor:
        return values.reshape(*field.replicas, *values.shape[1:])

    return ExactBeliefs(
        field,
        semiring,
        shape(node_beliefs),
        shape(edge_beliefs),
        shape(torch.stack(totals, -1)),
        shape(labels),
    )


def _scores(field: PairwiseField, node: Tensor, edge: Tensor, edges: Tensor, axis: dict[int, int]) -> Tensor:
    """Score of every labelling of one graph: [R, states, ..., states], one axis for each node."""
    count, states = len(axis), field.num_states
    if count > MAX_NODES or states**count > MAX_ENUMERATED:
        raise TooLargeError(
            f"enumerate_beliefs: a graph of {count} nodes with {states} states has {states}**{count} labellings, more "
            "than can be enumerated. Use eliminate_beliefs (exact) or propagate (fast)."
        )
    scores = node.new_zeros(node.shape[0], *(states,) * count)
    for name, place in axis.items():
        scores = scores + _along(node[:, name], (place,), count)
    for column in edges.tolist():
        s, t = (axis[int(end)] for end in field.edge_index[:, column])
        table = edge[:, column] if s < t else edge[:, column].transpose(-1, -2)
        scores = scores + _along(table, (min(s, t), max(s, t)), count)
    return scores


def _along(values: Tensor, places: tuple[int, ...], count: int) -> Tensor:
    """Spread [R, states, ...] over the axes `places` (ascending) of a table with `count` node axes."""
    shape = [1] * count
    for place in places:
        shape[place] = values.shape[-1]
    return values.reshape(values.shape[0], *shape)


def _keep(scores: Tensor, places: tuple[int, ...], semiring: str) -> Tensor:
    """Reduce over every node axis but `places`; the result has those axes in ascending order."""
    others = tuple(axis for axis in range(1, scores.dim()) if axis - 1 not in places)
    return REDUCE[semiring](scores, dim=others) if others else scores


def _unravel(index: Tensor, count: int, states: int) -> Tensor:
    """Labels [R, count] of labellings given by number; the last node's label changes fastest."""
    powers = states ** torch.arange(count - 1, -1, -1, device=index.device)
    return index[:, None] // powers % states
