"""Encoders and scorers by name: the one place where a name becomes an object."""

from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from torch import nn

from accord.encoders._adapter import Adapter
from accord.encoders._encoder import EncoderSpec
from accord.encoders._gat import GAT
from accord.encoders._gcn import GCN
from accord.encoders._gcnii import GCNII
from accord.encoders._plain import MLP, Linear
from accord.encoders._sage import GraphSAGE
from accord.encoders._spec import Spec
from accord.encoders._unet import GraphUNet
from accord.encoders.scorers import (
    AgreementScorer,
    BilinearScorer,
    FullBilinearScorer,
    LinearScorer,
    ScorerSpec,
    TransitionScorer,
)
from accord.encoders.sequences import BiGRU, BiLSTM, Convolution, Transformer
from accord.errors import InputTypeError, OptionError

AnySpec = TypeVar("AnySpec", bound=Spec)

ENCODERS: dict[str, EncoderSpec] = {
    spec.kind: spec
    for spec in (
        *(GAT(), GCN(), GCNII(), Linear(), MLP(), GraphSAGE(), GraphUNet()),
        *(BiGRU(), BiLSTM(), Convolution(), Transformer()),
    )
}
ENCODER_ALIASES = {"graphsage": "sage"}

SCORERS: dict[str, ScorerSpec] = {
    spec.kind: spec
    for spec in (AgreementScorer(), BilinearScorer(), FullBilinearScorer(), LinearScorer(), TransitionScorer())
}


def encoder_name(name: str) -> str:
    """The canonical name of an encoder: case is ignored, and "graphsage" is "sage"."""
    return _resolve("encoder", name, ENCODERS, ENCODER_ALIASES)[0]


def encoder_spec(encoder: str | EncoderSpec | nn.Module | Callable[[int, int], nn.Module]) -> EncoderSpec:
    """The specification of an encoder.

    Args:
        encoder: a name, in any case; a specification, which is returned unchanged; or a PyG module or a function that
            makes one, which is adapted.
    """
    if isinstance(encoder, EncoderSpec):
        return encoder
    if isinstance(encoder, nn.Module) or (callable(encoder) and not isinstance(encoder, type)):
        return Adapter(encoder)
    return _resolve("encoder", encoder, ENCODERS, ENCODER_ALIASES)[1]


def scorer_spec(scorer: str | ScorerSpec) -> ScorerSpec:
    """The specification of a scorer: a name, in any case, or a specification, which is returned unchanged."""
    return scorer if isinstance(scorer, ScorerSpec) else _resolve("scorer", scorer, SCORERS, {})[1]


def encoder_from_config(config: Mapping[str, Any]) -> EncoderSpec:
    """The encoder specification whose `to_config` returned `config`."""
    return EncoderSpec.from_config(config)


def scorer_from_config(config: Mapping[str, Any]) -> ScorerSpec:
    """The scorer specification whose `to_config` returned `config`."""
    return ScorerSpec.from_config(config)


def _resolve(what: str, name: object, table: Mapping[str, AnySpec], aliases: Mapping[str, str]) -> tuple[str, AnySpec]:
    """The canonical name and the specification that a name stands for."""
    known = sorted([*table, *aliases])
    if isinstance(name, type) and issubclass(name, Spec):
        raise InputTypeError(f"{what} is the class {name.__name__}. Pass an object: {name.__name__}().")
    if not isinstance(name, str):
        raise InputTypeError(f"{what} is a {type(name).__name__}. Pass one of {known} or an object.")
    key = name.strip().lower()
    key = aliases.get(key, key)
    if key not in table:
        raise OptionError(f"{what} {name!r} is unknown. Choose one of {known}.")
    return key, table[key]
