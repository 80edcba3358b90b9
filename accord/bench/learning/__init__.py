"""`accord bench learning`: the speed of replica training, compared with plain PyG modules."""

from accord.bench.learning._report import describe, write_sweep
from accord.bench.learning._run import LearningCase, measure_learning, sweep_learning

__all__ = ["LearningCase", "describe", "measure_learning", "sweep_learning", "write_sweep"]
