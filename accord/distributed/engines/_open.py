"""Engines by name."""

from accord.distributed.engines._interface import Engine
from accord.distributed.engines._local import LocalEngine
from accord.distributed.engines._processes import ProcessEngine
from accord.distributed.engines._ray import RayEngine
from accord.errors import OptionError

ENGINES = ("local", "ray")


def open_engine(
    name: str = "local",
    workers: int | None = None,
    address: str | None = None,
    gpus_per_worker: float | None = None,
) -> Engine:
    """The engine of a name, to be used as a context manager.

    Args:
        name: "local" (this machine) or "ray".
        workers: tasks at the same time. None: this process for "local", as many as the cluster has room for with "ray".
        address: of a running Ray cluster; None starts one on this machine.
        gpus_per_worker: share of a GPU that each worker has; None or 0 for none.
    """
    if name not in ENGINES:
        raise OptionError(f"engine: {name!r} is unknown. Choose {' or '.join(ENGINES)}.")
    if name == "ray":
        return RayEngine(workers, address, gpus_per_worker or 0.0)
    given = {"address": address, "gpus_per_worker": gpus_per_worker}
    named = [f"--{option.replace('_', '-')}" for option, value in given.items() if value is not None]
    if named:
        raise OptionError(f"engine: {', '.join(named)} is for --engine ray. Add that, or leave the option out.")
    return LocalEngine() if workers is None else ProcessEngine(workers)
