"""Transitions that labels of a sequence never have, such as O before I-person."""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from accord.errors import OptionError
from accord.graphs.sequences import SequenceLayout

OUTSIDE, BEGIN, INSIDE = "O", "B-", "I-"


@dataclass(frozen=True)
class Transitions:
    """What no labelling of a sequence has.

    Args:
        pairs: (state, state of the next position).
        starts: states of first positions.
        ends: states of last positions.
    """

    pairs: tuple[tuple[int, int], ...] = ()
    starts: tuple[int, ...] = ()
    ends: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        object.__setattr__(self, "pairs", tuple((int(first), int(second)) for first, second in self.pairs))
        for name in ("starts", "ends"):
            object.__setattr__(self, name, tuple(map(int, getattr(self, name))))
        states = [*self.starts, *self.ends, *(state for pair in self.pairs for state in pair)]
        if states and min(states) < 0:
            raise OptionError(f"Transitions: {min(states)} is no state. States are numbered from 0.")

    def bar(self, node: Tensor, edge: Tensor, edge_index: Tensor, layout: SequenceLayout) -> tuple[Tensor, Tensor]:
        """Potentials [*replicas, nodes, states] and [*replicas, edges, states, states] with -inf for all of these.

        Args:
            node: of sequences.
            edge: of the steps between their positions; a table that all share (an expanded view) stays shared.
            edge_index: [2, edges].
            layout: where the nodes stand.
        """
        states = node.shape[-1]
        barred = torch.zeros(layout.num_nodes, states, dtype=torch.bool, device=node.device)
        for nodes, own in ((layout.first, self.starts), (layout.last, self.ends)):
            for state in own:
                barred[nodes, state] = True
        table = torch.zeros(states, states, dtype=torch.bool, device=node.device)
        for first, second in self.pairs:
            table[first, second] = True
        node = node.masked_fill(barred, -torch.inf)
        forward = edge_index[0] < edge_index[1]
        if edge.stride(-3) == 0 and edge.shape[-3] and bool(forward.all()):
            return node, edge[..., :1, :, :].masked_fill(table, -torch.inf).expand_as(edge)
        return node, edge.masked_fill(torch.where(forward[:, None, None], table, table.t()), -torch.inf)

    def violation(self, labels: Sequence[int]) -> int | None:
        """The first position of a sequence whose label is not possible there; None where all are.

        Missing labels (-1) are possible anywhere.
        """
        pairs = set(self.pairs)
        for place, state in enumerate(labels):
            if (place == 0 and state in self.starts) or (place == len(labels) - 1 and state in self.ends):
                return place
            if place and (labels[place - 1], state) in pairs:
                return place
        return None


def is_bio(names: Sequence[str]) -> bool:
    """Whether label names are of the form O, B-type, I-type, with an I-type among them."""
    known = all(name == OUTSIDE or (name[:2] in (BEGIN, INSIDE) and len(name) > 2) for name in names)
    return known and any(name.startswith(INSIDE) for name in names) and any(name.startswith(BEGIN) for name in names)


def bio_transitions(names: Sequence[str]) -> Transitions:
    """What the BIO scheme (IOB2) rules out: I-type at the start, or after anything but B-type and I-type.

    Args:
        names: of the states: O, B-type and I-type.
    """
    wrong = [name for name in names if name != OUTSIDE and not (name[:2] in (BEGIN, INSIDE) and len(name) > 2)]
    if wrong:
        raise OptionError(
            f"bio_transitions: the label {wrong[0]!r} is not of the BIO scheme. Its labels are O, B-type and I-type."
        )
    inside = [(state, name[2:]) for state, name in enumerate(names) if name.startswith(INSIDE)]
    pairs = [
        (before, state)
        for state, kind in inside
        for before, name in enumerate(names)
        if name not in (f"{BEGIN}{kind}", f"{INSIDE}{kind}")
    ]
    return Transitions(tuple(pairs), tuple(state for state, _ in inside))
