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
        if not any(len(rows) for rows in self.send) and not self.num_ghosts:
            return _nothing
        staged = _stage(values, self.group)
        requests: list[dist.Work | None] = []
        received: list[tuple[slice | None, Tensor]] = []
        first = self.num_own
        for process, rows in enumerate(self.send):
            if len(rows):
                parcel = values.index_select(0, rows.to(values.device)).to(staged).contiguous()
                requests.append(dist.isend(parcel, group=self.group, group_dst=process))
                received.append((None, parcel))  # kept until it has been sent
        for process, count in enumerate(self.receive):
            if count:
                place = slice(first, first + count)
                buffer = torch.empty(count, *values.shape[1:], dtype=values.dtype, device=staged)
                requests.append(dist.irecv(buffer, group=self.group, group_src=process))
                received.append((place, buffer))
                first += count

        def wait() -> None:
            for request in requests:
                assert request is not None
                request.wait()
            for place, buffer in received:
                if place is not None:
                    values[place] = buffer.to(values.device)

        return wait


def _stage(values: Tensor, group: dist.ProcessGroup | None) -> torch.device:
    """Where parcels lie while they travel: gloo takes them from the host, nccl from the GPU."""
    return values.device if dist.get_backend(group) == "nccl" else torch.device("cpu")


def _nothing() -> None:
    pass
