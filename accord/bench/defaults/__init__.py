"""`accord bench defaults`: the default model on data that nobody tuned for, beside plain peers."""

from accord.bench.defaults._records import PEERS, Record
from accord.bench.defaults._run import run_defaults
from accord.bench.defaults._table import table
from accord.bench.defaults._tasks import TASKS, Task, load_task

__all__ = ["PEERS", "TASKS", "Record", "Task", "load_task", "run_defaults", "table"]
