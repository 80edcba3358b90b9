"""Accord: labels that agree. Joint labelling of the nodes of new graphs."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from accord._version import __version__

if TYPE_CHECKING:
    from accord.datasets import load_benchmark
    from accord.estimator import NodeClassifier
    from accord.field import PairwiseField
    from accord.field.factors import (
        AndFactors,
        AtMostOneFactors,
        AutomatonFactors,
        FactorField,
        OrFactors,
        ParityFactors,
        PottsFactors,
        TableFactors,
    )
    from accord.inference import enumerate_beliefs, maximise, propagate

__all__ = [
    "AndFactors",
    "AtMostOneFactors",
    "AutomatonFactors",
    "FactorField",
    "NodeClassifier",
    "OrFactors",
    "PairwiseField",
    "ParityFactors",
    "PottsFactors",
    "TableFactors",
    "__version__",
    "enumerate_beliefs",
    "load_benchmark",
    "maximise",
    "propagate",
]

# Loaded when first asked for: torch, PyG and scikit-learn take seconds that `accord --help` need not wait for.
_HOMES = {
    "AndFactors": "accord.field.factors",
    "AtMostOneFactors": "accord.field.factors",
    "AutomatonFactors": "accord.field.factors",
    "FactorField": "accord.field.factors",
    "NodeClassifier": "accord.estimator",
    "OrFactors": "accord.field.factors",
    "PairwiseField": "accord.field",
    "ParityFactors": "accord.field.factors",
    "PottsFactors": "accord.field.factors",
    "TableFactors": "accord.field.factors",
    "enumerate_beliefs": "accord.inference",
    "load_benchmark": "accord.datasets",
    "maximise": "accord.inference",
    "propagate": "accord.inference",
}


def __getattr__(name: str) -> Any:
    """Bring a public name in from its home."""
    if name not in _HOMES:
        raise AttributeError(f"module 'accord' has no attribute {name!r}")
    globals()[name] = value = getattr(import_module(_HOMES[name]), name)
    return value


def __dir__() -> list[str]:
    """Public names, loaded or not."""
    return sorted({*globals(), *__all__})
