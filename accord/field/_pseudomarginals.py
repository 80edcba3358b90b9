"""Pseudomarginals, and how they combine into a field (Prop. 1 and Eq. 5 of the paper).

The paper's letter divides an edge's table by the *node* network's marginals. Two networks trained apart do not agree
on those marginals, so dividing by the table's *own* sums, to a power chosen on validation, works better in practice;
both are values of the same option here.
"""

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from accord.errors import FieldError, OptionError
from accord.field._checks import check_potentials
from accord.field._field import PairwiseField

Normaliser = Callable[["Pseudomarginals", Tensor], tuple[Tensor, Tensor]]


@dataclass(frozen=True)
class Pseudomarginals:
    """Log-distributions over the states of each node and over the pairs of states of each edge."""

    node: Tensor  # [*replicas, nodes, states]
    edge: Tensor  # [*replicas, edges, states, states]

    @classmethod
    def from_logits(cls, node: Tensor, edge: Tensor, sharpness: float | Tensor = 1.0) -> "Pseudomarginals":
        """Softmax of scores; `sharpness` (the paper's gamma) multiplies the edge scores first.

        A score of -inf stays: that state or pair is forbidden. `sharpness` may hold one value for each replica.
        """
        where = "Pseudomarginals.from_logits"
        check_potentials(node, "node", "nodes, states", where)
        check_potentials(edge, "edge", "edges, states, states", where)
        sharp = _scale(edge, _per_replica(sharpness, edge, 3, "sharpness", where))
        return cls(node.log_softmax(-1), sharp.flatten(-2).log_softmax(-1).view_as(sharp))

    @classmethod
    def from_probabilities(cls, node: Tensor, edge: Tensor) -> "Pseudomarginals":
        """Logs of probabilities; 0 becomes the smallest positive number.

        A network that is *sure* (probability 1 after rounding) gives evidence, not a constraint: taken as one, two
        sure networks that disagree would leave no labelling at all. Constraints are `clamp` and `forbid`.
        """
        where = "Pseudomarginals.from_probabilities"
        for name, values in (("node", node), ("edge", edge)):
            axes = "nodes, states" if name == "node" else "edges, states, states"
            check_potentials(values, name, axes, where)
            if values.numel() and (float(values.min()) < 0 or float(values.max()) > 1 + 1e-4):
                raise FieldError(
                    f"{where}: {name} probabilities run from {float(values.min()):.4g} to {float(values.max()):.4g}; "
                    "they must lie between 0 and 1. Scores go through from_logits."
                )
        tiny = torch.finfo(node.dtype).tiny
        return cls(node.clamp_min(tiny).log(), edge.clamp_min(tiny).log())


def node_marginals(marginals: Pseudomarginals, edge_index: Tensor) -> tuple[Tensor, Tensor]:
    """The node network's log-marginals at both ends: the paper's letter."""
    return marginals.node[..., edge_index[0], :], marginals.node[..., edge_index[1], :]


def own_sums(marginals: Pseudomarginals, edge_index: Tensor) -> tuple[Tensor, Tensor]:
    """The edge table's own row and column sums, as logs."""
    return marginals.edge.logsumexp(-1), marginals.edge.logsumexp(-2)


NORMALISERS: dict[str, Normaliser] = {"node": node_marginals, "own": own_sums}


@dataclass(frozen=True, kw_only=True)
class Combination:
    """How pseudomarginals become a field; every number may hold one value for each replica.

    node potential = node_weight * log tau_s
    edge potential = log tau_st - power * (normaliser at s + normaliser at t)

    Sharpness belongs to the scores, before the softmax (`Pseudomarginals.from_logits`), never to the potential.
    """

    normaliser: Normaliser | str = own_sums
    power: float | Tensor = 1.0
    node_weight: float | Tensor = 1.0

    def field(
        self,
        marginals: Pseudomarginals,
        edge_index: Tensor,
        graph: Tensor | None = None,
        num_graphs: int | None = None,
    ) -> PairwiseField:
        """Potentials of the field that these pseudomarginals stand for."""
        where = "Combination.field"
        row, column = _normaliser(self.normaliser)(marginals, edge_index)
        edge_power = _per_replica(self.power, marginals.edge, 3, "power", where)
        weight = _per_replica(self.node_weight, marginals.node, 2, "node_weight", where)
        # A forbidden state divides by nothing: its own -inf already says all there is to say.
        divisor = _finite(row)[..., :, None] + _finite(column)[..., None, :]
        node = _scale(marginals.node, weight)
        return PairwiseField(edge_index, node, marginals.edge - edge_power * divisor, graph, num_graphs)  # type: ignore[arg-type]


def symmetrise(forward: Tensor, backward: Tensor) -> Tensor:
    """One table for an undirected edge: the average of g(s, t) and the transpose of g(t, s)."""
    if forward.shape != backward.shape:
        raise FieldError(
            f"symmetrise: g(s, t) has shape {list(forward.shape)} but g(t, s) {list(backward.shape)}. "
            "Score every edge in both directions."
        )
    return (forward + backward.transpose(-1, -2)) / 2


def _normaliser(choice: Normaliser | str) -> Normaliser:
    if not isinstance(choice, str):
        return choice
    if choice not in NORMALISERS:
        raise OptionError(f"Combination: normaliser {choice!r} is unknown. Choose one of {sorted(NORMALISERS)}.")
    return NORMALISERS[choice]


def _finite(values: Tensor) -> Tensor:
    return values.masked_fill(values == -torch.inf, 0.0)


def _scale(values: Tensor, factor: Tensor) -> Tensor:
    """Multiply, keeping -inf also where the factor is 0."""
    scaled = factor * _finite(values)
    return scaled.masked_fill((values == -torch.inf).expand_as(scaled), -torch.inf)


def _per_replica(value: float | Tensor, like: Tensor, inner: int, name: str, where: str) -> Tensor:
    """A number, or one for each replica, shaped to multiply `like`; finite and not negative."""
    numbers = torch.as_tensor(value, dtype=like.dtype, device=like.device)
    if not bool((numbers.isfinite() & (numbers >= 0)).all()):
        raise OptionError(f"{where}: {name} is {value}; it must be finite and not negative.")
    return numbers.reshape(*numbers.shape, *(1,) * inner) if numbers.dim() else numbers
