"""Rows of tables on their way to other processes: delivery, and a directory of nodes that everybody can ask."""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
import torch.distributed as dist
from torch import Tensor

from accord.distributed._partition import hash_part
from accord.distributed._together import Group, peers, place, stage


@dataclass(frozen=True, eq=False)
class Route:
    """How many rows go to each process and come from it, and the order in which they are sent."""

    order: Tensor  # [rows]: sorted by receiver
    sent: list[int]
    received: list[int]
    group: Group

    def deliver(self, rows: Tensor) -> Tensor:
        """Send rows [rows, ...] to their receivers; what is received is grouped by sender, each in its own order."""
        return self._exchange(rows[self.order], self.sent, self.received)

    def answer(self, answers: Tensor) -> Tensor:
        """Send one answer for each received row back, [rows, ...] in the order of the rows that were sent."""
        returned = self._exchange(answers, self.received, self.sent)
        found = torch.empty_like(returned)
        found[self.order] = returned
        return found

    def _exchange(self, rows: Tensor, sent: list[int], received: list[int]) -> Tensor:
        if len(sent) == 1:
            return rows
        if not rows.shape[1:].numel():  # a table without such columns
            return rows.new_empty(sum(received), *rows.shape[1:])
        leaving = stage(rows, self.group).contiguous()
        out = leaving.new_empty(sum(received), *rows.shape[1:])
        with peers(self.group):
            dist.all_to_all_single(out, leaving, received, sent, group=self.group)
        return out.to(rows.device)


def route(receiver: Tensor, group: Group = None) -> Route:
    """A route for rows whose receivers are known [rows]."""
    ranks = place(group)[1]
    sent = torch.bincount(receiver, minlength=ranks)
    received = sent
    if ranks > 1:
        leaving = stage(sent, group)
        received = torch.empty_like(leaving)
        with peers(group):
            dist.all_to_all_single(received, leaving, group=group)
    return Route(receiver.argsort(stable=True), sent.tolist(), received.tolist(), group)


def deliver(rows: Sequence[Tensor], receiver: Tensor, group: Group = None) -> list[Tensor]:
    """Send rows of several columns to their receivers [rows]."""
    way = route(receiver, group)
    return [way.deliver(column) for column in rows]


@dataclass(frozen=True, eq=False)
class Directory:
    """This process's share of a table of all nodes: those whose id has its hash."""

    ids: Tensor  # [share], ascending
    facts: Tensor  # [share, facts]: what is known about each
    group: Group

    def repeated(self) -> int | None:
        """An id that was given twice; None if there is none. Every id is in one share, so all shares must be asked."""
        twice = (self.ids[1:] == self.ids[:-1]).nonzero()
        return int(self.ids[int(twice[0])]) if len(twice) else None

    def find(self, ids: Tensor) -> Tensor:
        """Facts about nodes [ids, facts], -1 where there is no such node; all processes ask together."""
        asked, place_of = ids.unique(return_inverse=True)
        way = route(hash_part(asked, place(self.group)[1]), self.group)
        wanted = way.deliver(asked)
        row = torch.searchsorted(self.ids, wanted).clamp_max(max(len(self.ids) - 1, 0))
        facts = wanted.new_full((len(wanted), self.facts.shape[1]), -1)
        if len(self.ids):
            known = self.ids[row] == wanted
            facts[known] = self.facts[row[known]]
        return way.answer(facts)[place_of]


def open_directory(ids: Tensor, facts: Tensor, group: Group = None) -> Directory:
    """A directory of nodes, each given by one process: its id [nodes] and facts about it [nodes, facts], int64."""
    received, found = deliver([ids, facts], hash_part(ids, place(group)[1]), group)
    received, order = received.sort()
    return Directory(received, found[order], group)
