"""The exchange at the border of a part: values of nodes that other processes own."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch.distributed as dist
from torch import Tensor

from accord.distributed._together import peers, stage

Wait = Callable[[], None]


@dataclass(frozen=True, eq=False)
class Halo:
    """Who sends which rows to whom.

    Rows of a part are its own nodes, then its ghosts: neighbours that other processes own, grouped by owner.

    Args:
        num_own: own nodes.
        send: for each process, the own rows that it needs.
        receive: for each process, how many ghosts come from it.
        group: the processes; None for all.
    """

    num_own: int
    send: Sequence[Tensor]
    receive: Sequence[int]
    group: dist.ProcessGroup | None = None

    @property
    def num_ghosts(self) -> int:
        """Rows that come from other processes."""
        return sum(self.receive)

    @property
    def rows_sent(self) -> int:
        """Rows that go to other processes in one exchange: each border node once for each process that needs it."""
        return sum(len(rows) for rows in self.send)

    def exchange(self, values: Tensor) -> Tensor:
        """Fill the rows of ghosts, in place, with what their owners have.

        Args:
            values: [own + ghosts, ...].
        """
        self.start(values)()
        return values

    def start(self, values: Tensor) -> Wait:
        """Begin an exchange; the rows of ghosts are filled once the returned function has been called.

        Own rows may be changed as soon as this returns.
        """
        arriving = self.post([values.index_select(0, rows.to(values.device)) for rows in self.send])

        def wait() -> None:
            if self.num_ghosts:
                values[self.num_own : self.num_own + self.num_ghosts] = arriving()
            else:
                arriving()

        return wait

    def post(self, parcels: Sequence[Tensor]) -> Callable[[], Tensor]:
        """Begin an exchange of rows that were collected already; the returned function waits for those of ghosts.

        Args:
            parcels: for each process, what it gets: a row for each of `send`.
        """
        like = parcels[0]
        if not any(len(rows) for rows in self.send) and not self.num_ghosts:
            return lambda: like.new_empty(0, *like.shape[1:])
        leaving = [stage(parcel, self.group).contiguous() for parcel in parcels]  # kept until they have been sent
        ghosts = leaving[0].new_empty(self.num_ghosts, *like.shape[1:])
        # As one batch: nccl would otherwise send in turn, and two processes that both send first would wait for ever.
        moves = [
            dist.P2POp(dist.isend, parcel, group=self.group, group_peer=process)
            for process, parcel in enumerate(leaving)
            if len(parcel)
        ] + [
            dist.P2POp(dist.irecv, place, group=self.group, group_peer=process)
            for process, place in enumerate(ghosts.split(list(self.receive)))
            if len(place)
        ]
        with peers(self.group):
            requests = dist.batch_isend_irecv(moves)

        def wait() -> Tensor:
            with peers(self.group):
                for request in requests:
                    request.wait()
            leaving.clear()
            return ghosts.to(like.device)

        return wait
