"""The reproduction of the paper: every table and figure as cells, one store of records, a runner and a report."""

from accord.experiments.reproduction._cells import Cell
from accord.experiments.reproduction._imports import import_results
from accord.experiments.reproduction._plan import Asked, all_targets, missing_tasks
from accord.experiments.reproduction._records import Context, Record
from accord.experiments.reproduction._results import Results
from accord.experiments.reproduction._runner import STORE, Progress, parse_budget, run_missing
from accord.experiments.reproduction._store import Store
from accord.experiments.reproduction._studies import compute
from accord.experiments.reproduction._training import Place, Task
from accord.experiments.reproduction.report import write_report

__all__ = [
    "STORE",
    "Asked",
    "Cell",
    "Context",
    "Place",
    "Progress",
    "Record",
    "Results",
    "Store",
    "Task",
    "all_targets",
    "compute",
    "import_results",
    "missing_tasks",
    "parse_budget",
    "run_missing",
    "write_report",
]
