"""Why a node has its belief: own evidence plus one message from each neighbour, and where the messages come from.

At any time the belief of a node is the sum of these terms:

    log belief = evidence + sum over neighbours of (appearance x message), up to a constant

A message depends on the evidence of the node that sends it and on the messages that this node received. What the
evidence of a far node adds along a path is the difference that it makes there: the messages along the path are computed
once with this evidence and once without it, and all other messages stay. On a forest this is the whole effect of that
evidence.
"""

import heapq
from dataclasses import dataclass
from functools import cached_property

import torch
from torch import Tensor

from accord.field import PairwiseField
from accord.inference import Beliefs

MOST_MESSAGES = 100  # followed in a search for paths
LONGEST_PATH = 6  # nodes
MOST_NEIGHBOURS = 10  # of a node, that paths may come from
LEAST_LOG = -50.0  # stands for -inf where messages are compared


@dataclass(frozen=True, eq=False)
class Contributions:
    """Terms of one node's belief [states], in nats, in float64; evidence + sum of messages = log_belief + constant."""

    evidence: Tensor  # log-probabilities of the node by itself
    messages: dict[int, Tensor]  # neighbour -> what it adds, with mean 0 over the possible states
    log_belief: Tensor


@dataclass(frozen=True)
class EvidencePath:
    """How evidence of a far node reaches a node."""

    nodes: list[int]  # from the far node to the node itself
    nats: float  # what it adds to the difference between two states of the node


def contributions(beliefs: Beliefs, node: int, replica: int = 0) -> Contributions:
    """Take the belief of a node apart.

    Args:
        beliefs: sum-product beliefs; they need not have converged.
        node: which node of the field.
        replica: which replica of the field.
    """
    return _Terms(beliefs, replica).of(node)


def strongest_paths(
    beliefs: Beliefs, node: int, first: int, second: int, replica: int = 0, most: int = 5
) -> list[EvidencePath]:
    """The paths along which most evidence for state `first` against state `second` reaches a node.

    Messages are followed backwards, the most important first; paths never visit a node twice.

    Args:
        beliefs: converged sum-product beliefs.
        node: which node of the field.
        first: a possible state of the node.
        second: another possible state.
        replica: which replica of the field.
        most: how many paths to return.
    """
    terms = _Terms(beliefs, replica)
    found: list[EvidencePath] = []
    queue: list[tuple[float, tuple[int, ...]]] = []  # (importance, arcs from far to near)

    def difference(logs: Tensor) -> float:
        return float(logs[first] - logs[second])

    def enqueue(here: int, arcs: tuple[int, ...]) -> None:
        passed = {here, *(int(terms.target[arc]) for arc in arcs)}
        for arc in terms.strongest(here, None if arcs else (first, second)):
            if int(terms.source[arc]) not in passed:
                value = difference(terms.transmit(terms.messages[arc], (arc, *arcs)))
                value -= difference(terms.transmit(torch.zeros_like(terms.messages[arc]), (arc, *arcs)))
                heapq.heappush(queue, (-abs(value), (arc, *arcs)))

    enqueue(node, ())
    for _ in range(MOST_MESSAGES):
        if not queue:
            break
        _, arcs = heapq.heappop(queue)
        far, rest = int(terms.source[arcs[0]]), arcs[1:]
        told, untold = (terms.send(arcs[0], cavity) for cavity in terms.with_and_without_evidence(arcs[0]))
        nats = difference(terms.transmit(told, arcs)) - difference(terms.transmit(untold, arcs))
        found.append(EvidencePath([far, *(int(terms.target[arc]) for arc in arcs)], nats))
        if len(rest) + 2 < LONGEST_PATH:
            enqueue(far, arcs)
    return sorted(found, key=lambda path: -abs(path.nats))[:most]


def without_edges(field: PairwiseField, node: int, neighbour: int) -> PairwiseField:
    """The field without the edge between two nodes; all other potentials stay."""
    source, target = field.edge_index
    between = ((source == node) & (target == neighbour)) | ((source == neighbour) & (target == node))
    kept = (~between).nonzero().flatten()
    edge = field.edge.index_select(field.edge.dim() - 3, kept)
    return PairwiseField(field.edge_index[:, kept], field.node, edge, field.graph, field.num_graphs)


class _Terms:
    """Potentials and messages of one replica, in float64 on the CPU; tables are read as they are needed."""

    def __init__(self, beliefs: Beliefs, replica: int) -> None:
        problem = beliefs.problem
        messages = beliefs.messages.detach()
        self.problem, self.replica = problem, replica
        self.node = problem.node[replica].detach().double().cpu()
        self.messages = messages.reshape(len(problem.node), *messages.shape[-2:])[replica].double().cpu()
        appearance = problem.appearance.detach()
        self.appearance = appearance[replica if len(appearance) > 1 else 0].double().cpu().repeat(2)
        self.source, self.target = (ends.cpu() for ends in (problem.arcs.source, problem.arcs.target))
        self.num_edges = problem.arcs.num_edges
        self._cavities: dict[int, Tensor] = {}

    @cached_property
    def _by_target(self) -> tuple[Tensor, Tensor]:
        """Arcs sorted by the node where they end, and where the arcs of each node begin."""
        counts = torch.bincount(self.target, minlength=len(self.node))
        return self.target.argsort(stable=True), torch.cat([counts.new_zeros(1), counts.cumsum(0)])

    def arriving(self, node: int) -> Tensor:
        """The arcs that end at a node, by number."""
        order, first = self._by_target
        return order[int(first[node]) : int(first[node + 1])]

    def strongest(self, node: int, states: tuple[int, int] | None = None) -> list[int]:
        """The arcs that tell a node most: whose messages differ most between two states, or between any."""
        arcs = self.arriving(node)
        messages = self.appearance[arcs, None] * self.messages[arcs].clamp_min(LEAST_LOG)
        if states is not None:
            messages = messages[:, list(states)]
        spread = messages.amax(-1) - messages.amin(-1)
        strongest: list[int] = arcs[spread.argsort(descending=True, stable=True)[:MOST_NEIGHBOURS]].tolist()
        return strongest

    def of(self, node: int) -> Contributions:
        """Terms of a node's belief."""
        arcs = self.arriving(node).tolist()
        terms = {int(self.source[arc]): self.appearance[arc] * self.messages[arc] for arc in arcs}
        total = self.node[node] + sum(terms.values(), torch.zeros_like(self.node[node]))
        return Contributions(
            self.node[node].log_softmax(-1),
            {neighbour: _centred(term) for neighbour, term in terms.items()},
            total.log_softmax(-1),
        )

    def transmit(self, message: Tensor, arcs: tuple[int, ...]) -> Tensor:
        """What the last of some arcs adds to the belief at its end, if the first one carries this message.

        Each arc starts where the one before ends. All other messages stay.
        """
        for before, arc in zip(arcs, arcs[1:], strict=False):
            message = self.send(arc, self.cavity(arc, (before, message)))
        return self.appearance[arcs[-1]] * message

    def send(self, arc: int, cavity: Tensor) -> Tensor:
        """The message of an arc whose sender has this cavity [states], up to a constant."""
        against, edge = divmod(arc, self.num_edges)
        table = self.problem.edge[self.replica, edge].detach().double().cpu() / self.appearance[arc]
        return ((table.t() if against else table) + cavity[:, None]).logsumexp(0)

    def cavity(self, arc: int, replaced: tuple[int, Tensor] | None = None) -> Tensor:
        """The sender's belief without what the receiver told it [states], up to a constant.

        Args:
            arc: whose sender.
            replaced: an arc to the sender, and a message that takes the place of its own.
        """
        if arc not in self._cavities:
            self._cavities[arc] = self._cavity(arc)
        if replaced is None:
            return self._cavities[arc]
        other, message = replaced
        old = self.messages[other]
        if bool((old == -torch.inf).any()):
            return self._cavity(arc, replaced)
        return self._cavities[arc] + self.appearance[other] * (message - old)

    def _cavity(self, arc: int, replaced: tuple[int, Tensor] | None = None, evidence: Tensor | None = None) -> Tensor:
        sender = int(self.source[arc])
        arcs = self.arriving(sender)
        messages, weight = self.messages[arcs], self.appearance[arcs, None]
        if replaced is not None:
            messages[arcs == replaced[0]] = replaced[1]
        back = self.source[arcs] == self.target[arc]
        total = (self.node[sender] if evidence is None else evidence) + (weight * messages)[~back].sum(0)
        # With reweighting, a part of the receiver's message stays; states that it rules out may return.
        return total + ((weight - 1) * messages.masked_fill(messages == -torch.inf, 0.0))[back].sum(0)

    def with_and_without_evidence(self, arc: int) -> tuple[Tensor, Tensor]:
        """The cavity of an arc's sender, and the same without the sender's own evidence."""
        return self.cavity(arc), self._cavity(arc, evidence=torch.zeros_like(self.node[0]))


def _centred(logs: Tensor) -> Tensor:
    possible = logs > -torch.inf
    return logs - logs[possible].mean()
