"""`accord bench inference`: the speed of belief propagation, compared with other programs and the memory bound."""

from accord.bench.inference._growth import measure_growth
from accord.bench.inference._run import compare_peers
from accord.bench.inference._timing import BenchOptions

__all__ = ["BenchOptions", "compare_peers", "measure_growth"]
