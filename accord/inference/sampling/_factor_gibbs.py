"""Gibbs sampling of fields with factors: variables that share no factor are drawn together."""

from dataclasses import dataclass

import torch
from torch import Tensor

from accord.errors import TooLargeError
from accord.field.factors import AutomatonFactors, FactorField, FactorGroup, TableFactors
from accord.graphs.structure._colouring import colour_nodes
from accord.inference.exact import MAX_TABLE, draw_labels
from accord.inference.sampling._draw import draw


@dataclass(frozen=True, eq=False)
class Colour:
    """Variables that share no factor, and the factors that contain one of them."""

    field: FactorField
    nodes: Tensor  # [variables]
    groups: list[FactorGroup]
    place: list[Tensor]  # for each group [factors]: entry of `nodes` that the factor contains

    def conditional(self, labels: Tensor) -> Tensor:
        """Log-potentials [*lead, variables, states] of the variables' states given all other labels [*lead, nodes]."""
        lead, field = labels.shape[:-1], self.field
        scores = []
        for state in range(field.num_states):
            # A state that a variable does not have is forbidden by its own potential; factors are read at its last one.
            tried = labels.index_copy(-1, self.nodes, self._existing(state).expand(*lead, -1))
            score = field.node[..., self.nodes, state].expand(*lead, -1)
            for group, place in zip(self.groups, self.place, strict=True):
                score = score.index_add(-1, place, group.score(tried, lead))
            scores.append(score)
        return torch.stack(scores, -1)

    def _existing(self, state: int) -> Tensor:
        return (self.field.states[self.nodes] - 1).clamp(max=state)


def colours(field: FactorField) -> list[Colour]:
    """Split the variables into classes that share no factor."""
    pairs = [torch.empty(2, 0, dtype=torch.long, device=field.node.device)]
    for group in field.groups:
        one, two = torch.triu_indices(group.order, group.order, 1, device=group.scope.device)
        pairs.append(torch.stack([group.scope[:, one].flatten(), group.scope[:, two].flatten()]))
    found = []
    for nodes in colour_nodes(torch.cat(pairs, 1), field.num_nodes):
        entry = torch.full_like(field.graph, -1)
        entry[nodes] = torch.arange(len(nodes), device=nodes.device)
        groups, place = [], []
        for group in field.groups:
            inside = entry[group.scope].amax(1)  # [factors]
            rows = (inside >= 0).nonzero().flatten()
            groups.append(_some(group, rows))
            place.append(inside[rows])
        found.append(Colour(field, nodes, groups, place))
    return found


def walk(field: FactorField, labels: Tensor, sweeps: int, generator: torch.Generator | None) -> Tensor:
    """Labels [samples, *replicas, nodes] after so many visits of all variables."""
    labels = labels.clone()
    classes = colours(field)
    for _ in range(sweeps):
        for colour in classes:
            labels[..., colour.nodes] = draw(colour.conditional(labels), generator)
    return labels


def start_labels(field: FactorField, num_samples: int, generator: torch.Generator | None, where: str) -> Tensor:
    """Labels to start from: drawn from the variables' own potentials, or exactly where factors forbid those.

    They may be forbidden where exact samples are not affordable.
    """
    shape = (num_samples, *field.replicas, field.num_nodes)
    labels = draw(field.node.expand(*shape, field.num_states), generator).clamp(max=field.num_states - 1)
    if bool(field.score(labels).isfinite().all()):
        return labels

    def uniform(size: tuple[int, ...]) -> Tensor:
        device = field.node.device if generator is None else generator.device
        return torch.rand(size, dtype=torch.float64, device=device, generator=generator).to(field.node.device)

    try:
        drawn = draw_labels(field, lambda given: draw(given, generator), uniform, num_samples, MAX_TABLE, True, where)
    except TooLargeError:
        return labels
    return drawn.reshape(shape)


def _some(group: FactorGroup, rows: Tensor) -> FactorGroup:
    """Some of a group's factors."""
    if isinstance(group, TableFactors):
        return TableFactors(group.scope[rows], group.tables, group.table_of[rows])
    final = group.final if group.final.shape[-2] == 1 else group.final.index_select(-2, rows)
    return AutomatonFactors(group.scope[rows], group.transitions, final)
