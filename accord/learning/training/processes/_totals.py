"""Counts summed over the processes that share a batch: what the losses of a share are divided by.

A loss is a mean over labelled nodes, edges, triangles or graphs of a batch. Where a batch is divided among processes,
each divides its own sum by the count of the whole batch. The losses and gradients of all processes then add up to those
of one process with the whole batch, however unevenly labels are spread.
"""

from torch import Tensor

from accord.learning.training.processes._group import Processes


class Totals:
    """Totals of a process that has the whole batch: its own counts.

    All processes ask for the same totals in the same order, since they compute the same losses.
    """

    def of(self, count: Tensor) -> Tensor:
        """The sum of a count over all processes, without a gradient; of the same shape."""
        return count

    def number(self, count: int) -> int:
        """The sum of a whole number over all processes."""
        return count


ALONE = Totals()


class SharedTotals(Totals):
    """Totals of processes that share a batch.

    Args:
        processes: all that share it.
        counts: whether the graphs of this process count. A process without a share computes on a graph of another one
            and adds nothing.
    """

    def __init__(self, processes: Processes, counts: bool = True) -> None:
        self.processes, self.counts = processes, counts

    def of(self, count: Tensor) -> Tensor:
        """The sum of a count over all processes."""
        return self.processes.sum(count if self.counts else count.new_zeros(count.shape))

    def number(self, count: int) -> int:
        """The sum of a whole number over all processes."""
        return self.processes.sum_number(count if self.counts else 0)
