"""Accord: labels that agree. Joint labelling of the nodes of new graphs."""

from typing import TYPE_CHECKING

from accord._lazy import lazy_names
from accord._version import __version__

if TYPE_CHECKING:
    from accord.datasets import load_benchmark
    from accord.estimator import NodeClassifier
    from accord.field import ChainField, PairwiseField
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
    from accord.field.files import read_fg, read_uai, write_fg, write_uai
    from accord.inference import enumerate_beliefs, maximise, propagate

__all__ = [
    "AndFactors",
    "AtMostOneFactors",
    "AutomatonFactors",
    "ChainField",
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
    "read_fg",
    "read_uai",
    "write_fg",
    "write_uai",
]

# Loaded when first asked for: torch, PyG and scikit-learn take seconds that `accord --help` need not wait for.
__getattr__, __dir__ = lazy_names(
    __name__,
    {
        "datasets": ["load_benchmark"],
        "estimator": ["NodeClassifier"],
        "field": ["ChainField", "PairwiseField"],
        "field.factors": [
            "AndFactors",
            "AtMostOneFactors",
            "AutomatonFactors",
            "FactorField",
            "OrFactors",
            "ParityFactors",
            "PottsFactors",
            "TableFactors",
        ],
        "field.files": ["read_fg", "read_uai", "write_fg", "write_uai"],
        "inference": ["enumerate_beliefs", "maximise", "propagate"],
    },
)
