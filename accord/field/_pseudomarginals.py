"""Pseudomarginals, and how they combine into a field (Prop. 1 and Eq. 5 of the paper).

The paper divides an edge's table by the *node* network's marginals. Two networks trained separately do not agree on
those marginals, so dividing by the table's *own* sums, to a power chosen on validation data, works better in practice.
Both are values of one option here.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import torch
from torch import Tensor

from accord.errors import FieldError, InfeasibleError, InputTypeError, OptionError
from accord.field._checks import broadcast_replicas, check_forms, check_potentials
from accord.field._field import PairwiseField
from accord.graphs._checks import check_edge_index, check_numbers, check_same_device, check_tensor

Normaliser = Callable[["Pseudomarginals", Tensor], tuple[Tensor, Tensor]]


@dataclass(frozen=True)
class Pseudomarginals:
    """Log-distributions over the states of each node and over the pairs of states of each edge."""

    node: Tensor  # [*replicas, nodes, states]
    edge: Tensor  # [*replicas, edges, states, states]

    def __post_init__(self) -> None:
        check_forms(self.node, self.edge, "Pseudomarginals")

    @cached_property
    def own_sums(self) -> tuple[Tensor, Tensor]:
        """Row and column sums of every edge's table, as logs; computed once and used by every field made from them."""
        return self.edge.logsumexp(-1), self.edge.logsumexp(-2)

    @classmethod
    def from_logits(cls, node: Tensor, edge: Tensor, sharpness: float | Tensor = 1.0) -> "Pseudomarginals":
        """Softmax of scores; `sharpness` (the paper's gamma) multiplies the edge scores first.

        A score of -inf stays -inf: that state or pair is forbidden. `sharpness` may hold one value for each replica.
        """
        where = "Pseudomarginals.from_logits"
        check_forms(node, edge, where)
        check_potentials(where, node=node, edge=edge)
        factor = _per_replica(sharpness, edge, 3, "sharpness", where)
        broadcast_replicas(where, node=node.shape[:-2], edge=edge.shape[:-3], sharpness=factor.shape[:-3])
        sharp = _scale(edge, factor)
        tables = _log_softmax(sharp.flatten(-2), "pair of states", "edge", where)
        return cls(_log_softmax(node, "state", "node", where), tables.view_as(sharp))

    @classmethod
    def from_probabilities(cls, node: Tensor, edge: Tensor) -> "Pseudomarginals":
        """Logs of probabilities; 0 becomes the smallest positive number.

        A network that is certain (probability 1 after rounding) gives evidence, not a constraint: if it were one, two
        certain networks that disagree would leave no labelling at all. For constraints use `clamp` and `forbid`.
        """
        where = "Pseudomarginals.from_probabilities"
        check_forms(node, edge, where)
        check_potentials(where, node=node, edge=edge)
        for name, values in (("node", node.detach()), ("edge", edge.detach())):
            if values.numel() and (float(values.min()) < 0 or float(values.max()) > 1 + 1e-4):
                raise FieldError(
                    f"{where}: {name} probabilities run from {float(values.min()):.4g} to {float(values.max()):.4g}; "
                    "they must lie between 0 and 1. For scores use from_logits."
                )
        tiny = torch.finfo(node.dtype).tiny
        return cls(node.clamp_min(tiny).log(), edge.clamp_min(tiny).log())

    def shrunk(self, node: float | Tensor, edge: float | Tensor) -> "Pseudomarginals":
        """Mixed with what little data cannot rule out, so that no potential is larger than the data support.

        A node's distribution gets a share `node` of the uniform one. An edge's row and column sums get a share `edge`
        of the uniform one, and its table a share `edge` of the product of these sums, which is independence. With a
        share e, log tau_st less both sums then lies between log(e) and log(states / e), whatever the networks say.

        Args:
            node: from 0 to 1, one value or one for each replica; 0, for all of them, changes nothing.
            edge: the same for edges.

        Forbidden states and pairs (-inf) stay forbidden.
        """
        where = "Pseudomarginals.shrunk"
        at_nodes, at_edges = _share(node, self.node, 2, "node", where), _share(edge, self.edge, 3, "edge", where)
        nodes, tables = self.node, self.edge
        uniform = nodes.new_tensor(1 / nodes.shape[-1])
        # Probabilities may underflow to 0 here: what is mixed in counts then, and that does not underflow.
        if bool(at_nodes.any()):
            nodes = _logs(torch.lerp(nodes.exp(), uniform, at_nodes), nodes)
        if not bool(at_edges.any()):
            return Pseudomarginals(nodes, tables)
        pairs = tables.exp()
        row, column = (torch.lerp(pairs.sum(place, keepdim=True), uniform, at_edges) for place in (-1, -2))
        found = Pseudomarginals(nodes, _logs(torch.lerp(pairs, row * column, at_edges), tables))
        found.__dict__["own_sums"] = row.log()[..., 0], column.log()[..., 0, :]  # the sums that bound the potentials
        return found


def node_marginals(marginals: Pseudomarginals, edge_index: Tensor) -> tuple[Tensor, Tensor]:
    """The node network's log-marginals at both ends of each edge, as in Eq. 5 of the paper."""
    return marginals.node[..., edge_index[0], :], marginals.node[..., edge_index[1], :]


def own_sums(marginals: Pseudomarginals, edge_index: Tensor) -> tuple[Tensor, Tensor]:
    """Row and column sums of the edge tables themselves, as logs; `edge_index` is not used."""
    return marginals.own_sums


def blend(node_share: Tensor) -> Normaliser:
    """A mixture: `node_share` of the node network's marginals and the rest own sums; one value for each replica."""

    def blended(marginals: Pseudomarginals, edge_index: Tensor) -> tuple[Tensor, Tensor]:
        share = node_share.to(marginals.node)[..., None, None]
        own, node = own_sums(marginals, edge_index), node_marginals(marginals, edge_index)
        row, column = (
            (1 - share) * _finite(of_table) + share * _finite(of_node)
            for of_table, of_node in zip(own, node, strict=True)
        )
        return row, column

    return blended


NORMALISERS: dict[str, Normaliser] = {"node": node_marginals, "own": own_sums}


@dataclass(frozen=True, kw_only=True)
class Combination:
    """How pseudomarginals become a field; every number may hold one value for each replica.

        node potential = node_weight * log tau_s
        edge potential = log tau_st - power * (normaliser at s + normaliser at t)

    `normaliser` is "own" (`own_sums`), "node" (`node_marginals`), or a function such as `blend` returns. Sharpness is
    not set here: it multiplies the scores before the softmax (`Pseudomarginals.from_logits`).
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
        """The field that these pseudomarginals define."""
        where = "Combination.field"
        if not isinstance(marginals, Pseudomarginals):
            raise InputTypeError(
                f"{where}: got a {type(marginals).__name__}, not Pseudomarginals. Build them with from_logits."
            )
        index = check_edge_index(edge_index, marginals.node.shape[-2], where)
        check_same_device(where, edge_index=index, marginals=marginals.node)
        if marginals.edge.shape[-3] != index.shape[1]:
            raise FieldError(
                f"{where}: there are {index.shape[1]} edges but {marginals.edge.shape[-3]} tables of pseudomarginals. "
                "Give one table for each column of edge_index."
            )
        row, column = _normaliser(self.normaliser)(marginals, index)
        edge_power = _per_replica(self.power, marginals.edge, 3, "power", where)
        weight = _per_replica(self.node_weight, marginals.node, 2, "node_weight", where)
        broadcast_replicas(
            where,
            node=marginals.node.shape[:-2],
            edge=marginals.edge.shape[:-3],
            power=edge_power.shape[:-3],
            node_weight=weight.shape[:-2],
        )
        # Where a normaliser is -inf, nothing is divided: the entry itself is -inf already.
        divisor = _finite(row)[..., :, None] + _finite(column)[..., None, :]
        node, edge = _scale(marginals.node, weight), _divide(marginals.edge, divisor, edge_power)
        return PairwiseField(index, node, edge, graph, num_graphs)


def symmetrise(forward: Tensor, backward: Tensor) -> Tensor:
    """One table for an undirected edge: the average of g(s, t) and the transpose of g(t, s)."""
    where = "symmetrise"
    for name, tables in (("forward", forward), ("backward", backward)):
        if not check_tensor(tables, name, where).is_floating_point():
            raise InputTypeError(f"{where}: {name} has dtype {tables.dtype}; scores are floats. Convert with .float().")
    if forward.shape != backward.shape or forward.dim() < 2 or forward.shape[-1] != forward.shape[-2]:
        raise FieldError(
            f"{where}: g(s, t) has shape {list(forward.shape)} and g(t, s) {list(backward.shape)}, but both must be "
            "[..., states, states]. Score every edge in both directions."
        )
    check_same_device(where, forward=forward, backward=backward)
    return (forward + backward.transpose(-1, -2)) / 2


def _normaliser(choice: Normaliser | str) -> Normaliser:
    if isinstance(choice, str):
        if choice not in NORMALISERS:
            raise OptionError(f"Combination: normaliser {choice!r} is unknown. Choose one of {sorted(NORMALISERS)}.")
        return NORMALISERS[choice]
    if not callable(choice):
        raise InputTypeError(
            f"Combination: normaliser is a {type(choice).__name__}, not a name or a function. "
            f"Choose one of {sorted(NORMALISERS)}."
        )
    return choice


def _log_softmax(scores: Tensor, what: str, whose: str, where: str) -> Tensor:
    """Log-distributions over the last axis; refuses rows that are all -inf, and overflow."""
    best = scores.detach().amax(-1)
    if bool((best == -torch.inf).any()):
        number = int((best == -torch.inf).nonzero()[0, -1])
        raise InfeasibleError(
            f"{where}: every {what} of {whose} {number} is forbidden (-inf). Leave at least one that is possible."
        )
    if bool((best == torch.inf).any()):
        raise OptionError(f"{where}: sharpness makes scores overflow {scores.dtype}. Lower it, or the scores.")
    return scores.log_softmax(-1)


def _has_barred(values: Tensor) -> bool:
    """Whether any value is -inf; most fields forbid nothing, and then large tables need not be copied."""
    return bool(values.numel()) and bool(values.detach().amin() == -torch.inf)


def _divide(tables: Tensor, divisor: Tensor, power: Tensor) -> Tensor:
    """tables - power * divisor. If no gradient is recorded, `divisor` is overwritten: new memory is slow to clear."""
    recorded = torch.is_grad_enabled() and any(part.requires_grad for part in (tables, divisor, power))
    if recorded or divisor.shape != torch.broadcast_shapes(tables.shape, divisor.shape, power.shape):
        return tables - power * divisor
    return torch.sub(tables, divisor.mul_(power), out=divisor)


def _finite(values: Tensor) -> Tensor:
    return values.masked_fill(values == -torch.inf, 0.0) if _has_barred(values) else values


def _scale(values: Tensor, factor: Tensor) -> Tensor:
    """Multiply; -inf stays -inf, even where the factor is 0."""
    if not _has_barred(values):
        return factor * values
    scaled = factor * _finite(values)
    return scaled.masked_fill((values == -torch.inf).expand_as(scaled), -torch.inf)


def _logs(probabilities: Tensor, before: Tensor) -> Tensor:
    """Logs of probabilities; what was forbidden (-inf) before stays forbidden."""
    logs = probabilities.log()
    return logs.masked_fill(before == -torch.inf, -torch.inf) if _has_barred(before) else logs


def _share(value: float | Tensor, like: Tensor, inner: int, name: str, where: str) -> Tensor:
    """A share, or one for each replica, shaped to mix into `like`."""
    share = _per_replica(value, like, inner, f"the share at each {name}", where)
    if bool((share > 1).any()) or (bool(share.any()) and bool((share == 0).any())):
        raise OptionError(
            f"{where}: the share at each {name} is {share.flatten().tolist()}. Give numbers from 0 to 1; either all of "
            "them are 0 or none is."
        )
    return share


def _per_replica(value: float | Tensor, like: Tensor, inner: int, name: str, where: str) -> Tensor:
    """A number, or one for each replica, shaped to multiply `like`; finite and not negative."""
    numbers = check_numbers(value, name, where, like)
    if not bool((numbers.isfinite() & (numbers >= 0)).all()):
        raise OptionError(
            f"{where}: {name} is {numbers.tolist()}; it must be finite and not negative. 1 changes nothing."
        )
    return numbers.reshape(*numbers.shape, *(1,) * inner) if numbers.dim() else numbers
