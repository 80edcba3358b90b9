"""Beliefs from the scores of all labellings: the oracle that other methods are tested against."""

from collections.abc import Sequence
from math import prod

import torch
from torch import Tensor

from accord.errors import InfeasibleError, InputTypeError, TooLargeError
from accord.field import PairwiseField
from accord.field.factors import AutomatonFactors, FactorField, FactorGroup, TableFactors
from accord.inference._options import Semiring, check_semiring
from accord.inference._semiring import REDUCE
from accord.inference.exact._beliefs import ExactBeliefs

MAX_ENUMERATED = 2**20  # labellings of a graph; more take too long to be of use in tests
MAX_NODES = 24  # axes of the table of all labellings; torch limits the number of axes


def enumerate_beliefs(field: PairwiseField | FactorField, semiring: Semiring = "sum") -> ExactBeliefs:
    """Exact beliefs, one graph at a time, from the score of every labelling (same conventions as `propagate`).

    Raises:
        TooLargeError: a graph has more than 2**20 labellings; `eliminate_beliefs` goes much further.
        InfeasibleError: a graph has no labelling without forbidden states or pairs.
    """
    where = "enumerate_beliefs"
    if not isinstance(field, (PairwiseField, FactorField)):
        raise InputTypeError(
            f"{where}: got a {type(field).__name__}, not a PairwiseField or FactorField. Build one first."
        )
    check_semiring(semiring, where)
    count = field.replicas.numel()
    node = field.node.new_full((count, field.num_nodes, field.num_states), -torch.inf)
    scopes, factors = _empty_beliefs(field, count)
    labels = torch.zeros(node.shape[:2], dtype=torch.long, device=node.device)
    totals = []
    for number in range(field.num_graphs):
        nodes = (field.graph == number).nonzero().flatten()
        axis = {name: place for place, name in enumerate(nodes.tolist())}
        scores = _scores(field, nodes, number)
        listed = scores.reshape(count, -1)
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
            marginal = _keep(shifted, (place,), semiring)
            node[:, name, : marginal.shape[1]] = marginal
        for scope, beliefs in zip(scopes, factors, strict=True):
            if beliefs is None:
                continue
            for row in (field.graph[scope[:, 0]] == number).nonzero().flatten().tolist():
                marginal = _keep(shifted, tuple(axis[name] for name in scope[row].tolist()), semiring)
                into: tuple[slice | int, ...] = (slice(None), row, *map(slice, marginal.shape[1:]))
                beliefs[into] = marginal
        labels[:, nodes] = _unravel(listed.argmax(-1), scores.shape[1:])

    def shape(values: Tensor) -> Tensor:
        return values.reshape(*field.replicas, *values.shape[1:])

    return ExactBeliefs(
        field,
        semiring,
        shape(node),
        tuple(None if beliefs is None else shape(beliefs) for beliefs in factors),
        shape(torch.stack(totals, -1)),
        shape(labels),
    )


def _empty_beliefs(field: PairwiseField | FactorField, count: int) -> tuple[list[Tensor], list[Tensor | None]]:
    """Scopes [factors, order] of all groups, and room for their beliefs; None for rules."""
    if isinstance(field, PairwiseField):
        return [field.edge_index.t()], [field.edge.new_zeros(count, *field.edge.shape[-3:])]
    factors = [
        field.node.new_full((count, group.num_factors, *group.shape), -torch.inf)
        if isinstance(group, TableFactors)
        else None
        for group in field.groups
    ]
    return [group.scope for group in field.groups], factors


def _scores(field: PairwiseField | FactorField, nodes: Tensor, number: int) -> Tensor:
    """Score of every labelling of one graph: [R, states, ..., states], one axis for each node, of its own length."""
    states = field.states[nodes].tolist() if isinstance(field, FactorField) else [field.num_states] * len(nodes)
    if len(states) > MAX_NODES or prod(states) > MAX_ENUMERATED:
        each = f"{states[0]}**{len(states)}" if len(set(states)) == 1 else str(prod(states))
        raise TooLargeError(
            f"enumerate_beliefs: a graph of {len(states)} nodes with {max(states)} states has {each} labellings, more "
            "than can be enumerated. Use eliminate_beliefs (exact) or propagate (fast)."
        )
    alone = _alone(field, nodes, number) if field.num_graphs > 1 else field
    every = torch.arange(prod(states), device=nodes.device)
    lead = [1] * len(field.replicas)
    labels = _unravel(every, states).reshape(len(every), *lead, len(nodes))
    scores = alone.score(labels)[..., 0].reshape(len(every), field.replicas.numel())
    return scores.t().reshape(-1, *states)


def _alone(field: PairwiseField | FactorField, nodes: Tensor, number: int) -> PairwiseField | FactorField:
    """One graph of a batch."""
    place = torch.empty_like(field.graph)
    place[nodes] = torch.arange(len(nodes), device=nodes.device)
    node = field.node.index_select(-2, nodes)
    if isinstance(field, PairwiseField):
        edges = (field.graph[field.edge_index[0]] == number).nonzero().flatten()
        return PairwiseField(place[field.edge_index[:, edges]], node, field.edge.index_select(-3, edges), num_graphs=1)
    groups: list[FactorGroup] = []
    for group in field.groups:
        rows = (field.graph[group.scope[:, 0]] == number).nonzero().flatten()
        scope = place[group.scope[rows]]
        if isinstance(group, TableFactors):
            groups.append(TableFactors(scope, group.tables, group.table_of[rows]))
        else:
            final = group.final if group.final.shape[-2] == 1 else group.final.index_select(-2, rows)
            groups.append(AutomatonFactors(scope, group.transitions, final))
    return FactorField(node, groups, num_states=field.states[nodes], num_graphs=1)


def _keep(scores: Tensor, places: tuple[int, ...], semiring: str) -> Tensor:
    """Reduce over every node axis but `places`; the result has those axes in the order given."""
    others = tuple(axis for axis in range(1, scores.dim()) if axis - 1 not in places)
    kept = REDUCE[semiring](scores, dim=others) if others else scores
    ascending = sorted(places)
    return kept.permute(0, *(ascending.index(place) + 1 for place in places))


def _unravel(index: Tensor, states: Sequence[int]) -> Tensor:
    """Labels [..., nodes] of labellings given by number; the last node's label changes fastest."""
    labels = []
    for size in reversed(states):
        labels.append(index % size)
        index = index // size
    return torch.stack(labels[::-1], -1) if labels else index[..., None][..., :0]
