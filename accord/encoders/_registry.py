"""Encoders and scorers by name: the one place where a name becomes an object."""

from collections.abc import Callable, Mapping
from typing import Any

from torch import nn

from accord.encoders._adapter import Adapter
from accord.encoders._encoder import EncoderSpec
from accord.encoders._gat import GAT
from accord.encoders._gcn import GCN
from accord.encoders._gcnii import GCNII
from accord.encoders._plain import MLP, Linear
from accord.encoders._sage import GraphSAGE
from accord.encoders._spec import look_up
from accord.encoders._unet import GraphUNet
from accord.encoders.scorers._agreement import AgreementScorer
from accord.encoders.scorers._bilinear import BilinearScorer
from accord.encoders.scorers._linear import LinearScorer
from accord.encoders.scorers._scorer import ScorerSpec

ENCODERS: dict[str, EncoderSpec] = {
    "gat": GAT(),
    "gcn": GCN(),
    "gcnii": GCNII(),
    "graphsage": GraphSAGE(),
    "linear": Linear(),
    "mlp": MLP(),
    "sage": GraphSAGE(),
    "unet": GraphUNet(),
}

SCORERS: dict[str, ScorerSpec] = {
    "agreement": AgreementScorer(),
    "bilinear": BilinearScorer(),
    "linear": LinearScorer(),
}


def encoder_spec(encoder: str | EncoderSpec | nn.Module | Callable[[int, int], nn.Module]) -> EncoderSpec:
    """An encoder's specification from its name; a PyG module, or a function that makes one, is adapted."""
    if isinstance(encoder, nn.Module) or (callable(encoder) and not isinstance(encoder, type)):
        return Adapter(encoder)
    return look_up(ENCODERS, encoder, EncoderSpec, "encoder")  # type: ignore[type-abstract]


def scorer_spec(scorer: str | ScorerSpec) -> ScorerSpec:
    """A scorer's specification from its name."""
    return look_up(SCORERS, scorer, ScorerSpec, "scorer")  # type: ignore[type-abstract]


def encoder_from_config(config: Mapping[str, Any]) -> EncoderSpec:
    """What an encoder's `to_config` wrote."""
    return EncoderSpec.from_config(config)


def scorer_from_config(config: Mapping[str, Any]) -> ScorerSpec:
    """What a scorer's `to_config` wrote."""
    return ScorerSpec.from_config(config)
