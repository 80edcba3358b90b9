"""Several processes that train one model: who they are, what each of them gets of a batch, and what they add up."""

from accord.learning.training.processes._dealing import deal, share_of_batch
from accord.learning.training.processes._group import (
    Processes,
    join_processes,
    make_fabric,
    processes_of,
)
from accord.learning.training.processes._sums import add_up
from accord.learning.training.processes._totals import ALONE, SharedTotals, Totals

__all__ = [
    "ALONE",
    "Processes",
    "SharedTotals",
    "Totals",
    "add_up",
    "deal",
    "join_processes",
    "make_fabric",
    "processes_of",
    "share_of_batch",
]
