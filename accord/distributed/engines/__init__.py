"""Engines: where independent pieces of work are done: in this process, in several of this machine, on a Ray cluster."""

from accord.distributed.engines._interface import Engine, Report, Shared
from accord.distributed.engines._local import LocalEngine
from accord.distributed.engines._open import ENGINES, open_engine
from accord.distributed.engines._processes import ProcessEngine
from accord.distributed.engines._ray import RayEngine

__all__ = ["ENGINES", "Engine", "LocalEngine", "ProcessEngine", "RayEngine", "Report", "Shared", "open_engine"]
