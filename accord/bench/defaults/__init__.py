"""`accord bench defaults`: the default model on data that nobody tuned for, beside plain peers."""

from accord.bench.defaults._run import PEERS, Record, run_defaults, table
from accord.bench.defaults._tasks import TASKS, Task, load_task

__all__ = ["PEERS", "TASKS", "Record", "Task", "load_task", "run_defaults", "table"]
