"""The reproduction of the paper: every table and figure as cells, one store of records, a runner and a report."""

from accord.experiments.reproduction._cells import Cell, targets
from accord.experiments.reproduction._plan import Asked, missing_tasks
from accord.experiments.reproduction._records import Context, Record
from accord.experiments.reproduction._runner import Progress, parse_budget, run_missing
from accord.experiments.reproduction._store import Store
from accord.experiments.reproduction._studies import compute
from accord.experiments.reproduction._training import Place, Task

__all__ = [
    "Asked",
    "Cell",
    "Context",
    "Place",
    "Progress",
    "Record",
    "Store",
    "Task",
    "compute",
    "missing_tasks",
    "parse_budget",
    "run_missing",
    "targets",
]
