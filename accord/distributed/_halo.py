"""The exchange at the border of a part: values of nodes that other processes own."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
import torch.distributed as dist
from torch import Tensor

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
                values[self.num_own : self.num_own + self.num_ghosts] = arriving().to(values.device)
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
        staged = _stage(like, self.group)
        ghosts = torch.empty(self.num_ghosts, *like.shape[1:], dtype=like.dtype, device=staged)
        requests: list[dist.Work | None] = []
        leaving = [parcel.to(staged).contiguous() for parcel in parcels]  # kept until they have been sent
        for process, parcel in enumerate(leaving):
            if len(parcel):
                requests.append(dist.isend(parcel, group=self.group, group_dst=process))
        for process, place in enumerate(ghosts.split(list(self.receive))):
            if len(place):
                requests.append(dist.irecv(place, group=self.group, group_src=process))

        def wait() -> Tensor:
            for request in requests:
                assert request is not None
                request.wait()
            leaving.clear()
            return ghosts

        return wait


def _stage(values: Tensor, group: dist.ProcessGroup | None) -> torch.device:
    """Where parcels lie while they travel: gloo takes them from the host, nccl from the GPU."""
    return values.device if dist.get_backend(group) == "nccl" else torch.device("cpu")
