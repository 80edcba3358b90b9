"""Engines: where independent pieces of work are done, in this process or on a Ray cluster."""

from accord.distributed.engines._interface import Engine, Report, Shared
from accord.distributed.engines._local import LocalEngine
from accord.distributed.engines._open import ENGINES, open_engine
from accord.distributed.engines._ray import RayEngine

__all__ = ["ENGINES", "Engine", "LocalEngine", "RayEngine", "Report", "Shared", "open_engine"]
