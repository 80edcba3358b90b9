"""Accord: labels that agree. Joint labelling of the nodes of new graphs."""

from typing import TYPE_CHECKING, Any

from accord.datasets import load_benchmark
from accord.field import PairwiseField
from accord.inference import enumerate_beliefs, propagate

if TYPE_CHECKING:
    from accord.estimator import NodeClassifier

__all__ = ["NodeClassifier", "PairwiseField", "enumerate_beliefs", "load_benchmark", "propagate"]


def __getattr__(name: str) -> Any:
    """The estimator is loaded when first asked for: scikit-learn and Lightning take a second or two."""
    if name == "NodeClassifier":
        from accord.estimator import NodeClassifier

        globals()[name] = NodeClassifier
        return NodeClassifier
    raise AttributeError(f"module 'accord' has no attribute {name!r}")
