"""Labellings without forbidden states or pairs: arc consistency, and a search with a bounded amount of work.

Arc consistency removes a state of a node if some neighbour has no state left that may stand beside it. What it removes
is impossible in every labelling. On forests the rest is possible; on loopy graphs it need not be, and a backtracking
search decides, which keeps arc consistency after every choice (Sabin and Freuder 1994). Nodes that took part in many
contradictions are tried first, and the search restarts now and then (dom/wdeg, Boussemart et al. 2004). Everything is
deterministic.
"""

import heapq
from dataclasses import dataclass
from dataclasses import field as dataclass_field

import numpy as np
import torch
from torch import Tensor

from accord.errors import FieldError, InfeasibleError, InputTypeError
from accord.field import PairwiseField
from accord.graphs import Arcs
from accord.graphs._checks import check_numbers
from accord.inference._blocks import blocks

MAX_REVISIONS = 1_000_000  # arcs examined before a search gives up: a few seconds
FIRST_RESTART, RESTART_GROWTH = 100, 1.5  # contradictions before the first restart, and the growth of that number
LEFT, GIVEN = -2, -1  # of a state: it is possible; the field itself forbids it. Other numbers: the arc that removed it


def possible_states(field: PairwiseField) -> Tensor:
    """States [*replicas, nodes, states] that arc consistency leaves; on forests exactly those of some labelling.

    Raises:
        InfeasibleError: a node has no state left; its `nodes` are that node, then those whose states the field forbids
            and that cause it.
    """
    _check_field(field, "possible_states")
    node, edge = field.expanded()
    allowed = edge > -torch.inf  # [R, edges, states, states]
    possible = node > -torch.inf
    reason = torch.where(possible, LEFT, GIVEN)
    arcs = Arcs.along(field.edge_index)
    fresh = torch.ones(field.num_nodes, dtype=torch.bool, device=node.device)  # nodes that lost a state
    while True:
        empty = (~possible.any(-1)).nonzero()
        if len(empty):
            replica, place = empty[0].tolist()
            raise _contradiction(field.edge_index, allowed[replica], reason[replica], place)
        sending = fresh[arcs.source].nonzero().flatten()
        removed = _removed(arcs, allowed, possible, sending)
        if not len(removed):
            return possible.reshape(*field.replicas, *possible.shape[1:])
        replica, position, state = removed.unbind(-1)
        arc = sending[position]
        target = arcs.target[arc]
        possible[replica, target, state] = False
        reason[replica, target, state] = arc
        fresh = torch.zeros_like(fresh).index_fill_(0, target, True)


def _removed(arcs: Arcs, allowed: Tensor, possible: Tensor, sending: Tensor) -> Tensor:
    """Rows (replica, position in `sending`, state): states of an arc's target that its source cannot stand beside."""
    found = [torch.empty(0, 3, dtype=torch.long, device=sending.device)]
    for block in blocks(len(sending), allowed[:, :1].numel()):
        some = sending[block]
        tables = allowed[:, some % max(arcs.num_edges, 1)]
        tables = torch.where((some >= arcs.num_edges)[:, None, None], tables.mT, tables)
        supported = (possible[:, arcs.source[some], :, None] & tables).any(-2)
        rows = (possible[:, arcs.target[some]] & ~supported).nonzero()
        rows[:, 1] += block.start
        found.append(rows)
    return torch.cat(found)


def _contradiction(edge_index: Tensor, allowed: Tensor, reason: Tensor, place: int) -> InfeasibleError:
    """The error for a node without states: it names the nodes whose forbidden states are the cause."""
    num_edges = edge_index.shape[1]
    seen, causes, waiting = {place}, [], [place]
    while waiting:
        node = waiting.pop()
        if bool((reason[node] == GIVEN).any()):
            causes.append(node)
        for state in (reason[node] >= 0).nonzero().flatten().tolist():
            against, edge = divmod(int(reason[node, state]), num_edges)
            source = int(edge_index[against, edge])
            pairs = allowed[edge][state] if against else allowed[edge][:, state]
            if source not in seen and bool((pairs & (reason[source] != LEFT)).any()):
                seen.add(source)
                waiting.append(source)
    nodes = [place, *(node for node in sorted(causes) if node != place)]
    return InfeasibleError(
        f"possible_states: no state is left for node {place}, given the forbidden states of nodes "
        f"{', '.join(map(str, sorted(causes)[:8])) or 'none'} and the forbidden pairs between them. Relax one of them.",
        nodes,
    )


def find_labels(field: PairwiseField, preference: Tensor, max_revisions: int = MAX_REVISIONS) -> Tensor:
    """A labelling [nodes] without forbidden states or pairs, of a field with a single replica.

    Args:
        field: the field; only which states and pairs are forbidden counts.
        preference: [nodes, states]; of a node's states, those with higher values are tried first.
        max_revisions: arcs examined before the search gives up.

    Raises:
        InfeasibleError: there is no such labelling (`proved`), or none was found with that much work.
    """
    where = "find_labels"
    _check_field(field, where)
    if field.replicas.numel() != 1:
        raise FieldError(f"{where}: the field has {field.replicas.numel()} replicas. Search each by itself.")
    wishes = check_numbers(preference, "preference", where, field.node)
    if list(wishes.shape) != [field.num_nodes, field.num_states] or bool(wishes.isnan().any()):
        raise FieldError(
            f"{where}: preference has shape {list(wishes.shape)}, or holds NaN; numbers [nodes, states] = "
            f"{[field.num_nodes, field.num_states]} are needed. Zeros prefer nothing."
        )
    if isinstance(max_revisions, bool) or not isinstance(max_revisions, int):
        raise InputTypeError(f"{where}: max_revisions is a {type(max_revisions).__name__}, not an int.")
    node, edge = field.expanded()
    search = _Search(node[0], edge[0], field.edge_index, wishes, max_revisions)
    found = search.run()
    if found is not None:
        return torch.tensor(found, dtype=torch.long, device=field.node.device)
    nodes = list(range(field.num_nodes))
    if search.work > max_revisions:
        raise InfeasibleError(
            f"find_labels: no labelling without forbidden states or pairs was found in {max_revisions} steps; there "
            "may be one. Relax a constraint, or allow more steps.",
            nodes,
            proved=False,
        )
    raise InfeasibleError(
        "find_labels: there is no labelling without forbidden states or pairs. Relax one of them.", nodes
    )


def _check_field(field: object, where: str) -> None:
    if not isinstance(field, PairwiseField):
        raise InputTypeError(f"{where}: got a {type(field).__name__}, not a PairwiseField. Build one first.")
    field.check_changes(where)


@dataclass(eq=False)
class _Support:
    """Which states of the other end a set of states allows; sets of states are the bits of a number."""

    rows: list[int]  # by own state: states of the other end that may stand beside it
    known: dict[int, int] = dataclass_field(default_factory=dict)

    def of(self, states: int) -> int:
        """States that at least one of these states may stand beside."""
        found = self.known.get(states)
        if found is None:
            found = 0
            for state, row in enumerate(self.rows):
                if states >> state & 1:
                    found |= row
            self.known[states] = found
        return found


class _Search:
    """Domains of all nodes, what was removed from them, and the choices that led there."""

    def __init__(self, node: Tensor, edge: Tensor, edge_index: Tensor, preference: Tensor, max_revisions: int) -> None:
        self.max_revisions, self.work = max_revisions, 0
        self.domains = [_bits(row) for row in (node > -torch.inf).cpu().numpy()]
        self.order = preference.argsort(dim=-1, descending=True, stable=True).tolist()
        self.arcs: list[list[tuple[int, _Support]]] = [[] for _ in self.domains]
        tables: dict[bytes, tuple[_Support, _Support]] = {}
        allowed = (edge > -torch.inf).cpu().numpy()
        for table, (source, target) in zip(allowed, edge_index.t().tolist(), strict=True):
            key = table.tobytes()
            if key not in tables:
                tables[key] = (_Support([_bits(row) for row in table]), _Support([_bits(row) for row in table.T]))
            along, against = tables[key]
            self.arcs[source].append((target, along))
            self.arcs[target].append((source, against))
        self.weight = [1] * len(self.domains)  # contradictions that a node took part in
        self.trail: list[tuple[int, int]] = []  # (node, its states before)
        self.heap: list[tuple[float, int, int]] = []  # (urgency, node, its states then); entries may be outdated

    def run(self) -> list[int] | None:
        """Labels, or None: there are none, or `work` exceeds its limit."""
        if not all(self.domains) or not self.narrow(list(range(len(self.domains)))):
            return None
        self.trail.clear()
        limit, failures = float(FIRST_RESTART), 0
        choices: list[tuple[int, int, int]] = []  # (node, state, length of the trail before)
        self.restart()
        while True:
            node = self.next_node()
            if node is None:
                return [states.bit_length() - 1 for states in self.domains]
            state = next(state for state in self.order[node] if self.domains[node] >> state & 1)
            choices.append((node, state, len(self.trail)))
            self.set(node, 1 << state)
            while not self.narrow([node]):
                failures += 1
                if self.work > self.max_revisions or not choices:
                    return None
                node, state, mark = choices.pop()
                self.undo(mark)
                self.set(node, self.domains[node] & ~(1 << state))
                if not choices:
                    self.trail.clear()  # the state is impossible whatever is chosen
            if failures > limit and choices:
                limit, failures = limit * RESTART_GROWTH, 0
                self.undo(choices[0][2])
                choices.clear()
                self.restart()

    def narrow(self, waiting: list[int]) -> bool:
        """Remove what cannot stand beside the states of these nodes, and so on; False on a contradiction."""
        if not all(self.domains[node] for node in waiting):
            return False
        while waiting:
            node = waiting.pop()
            own = self.domains[node]
            for other, support in self.arcs[node]:
                self.work += 1
                left = self.domains[other] & support.of(own)
                if left != self.domains[other]:
                    self.set(other, left)
                    if not left:
                        self.weight[node] += 1
                        self.weight[other] += 1
                        return False
                    waiting.append(other)
            if self.work > self.max_revisions:
                return False
        return True

    def set(self, node: int, states: int) -> None:
        """Change the states of a node; `undo` restores them."""
        self.trail.append((node, self.domains[node]))
        self.domains[node] = states
        self.note(node)

    def undo(self, mark: int) -> None:
        """Restore all domains to what they were when the trail had this length."""
        while len(self.trail) > mark:
            node, states = self.trail.pop()
            self.domains[node] = states
            self.note(node)

    def note(self, node: int) -> None:
        """Queue a node that is not decided yet: few states and many contradictions make it urgent."""
        states = self.domains[node]
        if states & (states - 1):
            heapq.heappush(self.heap, (states.bit_count() / self.weight[node], node, states))

    def restart(self) -> None:
        """Queue all nodes anew, with the weights of now."""
        self.heap.clear()
        for node in range(len(self.domains)):
            self.note(node)

    def next_node(self) -> int | None:
        """The most urgent node; None where every node has one state."""
        while self.heap:
            _, node, states = heapq.heappop(self.heap)
            if self.domains[node] == states:
                return node
        return None


def _bits(row: np.ndarray) -> int:
    """The True entries as bits of a number."""
    return int.from_bytes(np.packbits(row, bitorder="little").tobytes(), "little")
