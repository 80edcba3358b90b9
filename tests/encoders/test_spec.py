"""Specifications check their options, and convert to plain JSON values."""

import json
from dataclasses import fields

import pytest

from accord.encoders import GAT, GCN, GCNII, MLP, EncoderSpec, GraphSAGE, GraphUNet, LinearScorer, ScorerSpec
from accord.encoders._spec import CHECKS
from accord.errors import OptionError


@pytest.mark.parametrize(
    "make",
    [
        lambda: GCN(hidden=0),
        lambda: GCN(layers=1.5),
        lambda: GCN(dropout=1.0),
        lambda: GCN(normalisation="batch"),
        lambda: GCN(activation="swish"),
        lambda: GAT(heads=()),
        lambda: GCNII(alpha=2.0),
        lambda: GCNII(theta=-1.0),
        lambda: GraphUNet(pool_ratios=(0.5,) * 7),
        lambda: GCN().build(3, 2, []),
        lambda: GCN.from_config({"kind": "gat"}),
        lambda: GCN.from_config({"kind": "gcn", "width": 3}),
        lambda: EncoderSpec.from_config("gcn"),
    ],
)
def test_impossible_options_are_refused(make):
    with pytest.raises(OptionError):
        make()


def test_configurations_name_the_kind_and_every_option_in_order():
    assert list(GAT(heads=(2, 3)).to_config().items())[:3] == [("kind", "gat"), ("hidden", 256), ("heads", [2, 3])]
    assert LinearScorer(4).to_config() == {"kind": "linear", "hidden": 4, "dropout": 0.0, "symmetric": True}
    shared = ["dropout", "input_dropout", "normalisation", "skip", "activation", "last_dropout"]
    for spec in (GCN(), GraphSAGE(), MLP()):
        assert list(spec.to_config()) == ["kind", "hidden", "layers", *shared]
    for spec in (GAT(), GCN(), GCNII(), GraphUNet(), LinearScorer()):
        assert list(spec.to_config()) == ["kind", *(field.name for field in fields(spec))]
        json.dumps(spec.to_config())


def test_a_kind_belongs_to_its_own_base():
    """An encoder and a scorer are both called linear."""
    assert type(EncoderSpec.from_config({"kind": "linear"})) is not type(ScorerSpec.from_config({"kind": "linear"}))
    with pytest.raises(OptionError, match="kind 'bilinear' is unknown"):
        EncoderSpec.from_config({"kind": "bilinear"})


def test_every_option_with_a_range_is_checked():
    specs = (GAT, GCN, GCNII, GraphUNet, LinearScorer)
    names = {field.name for spec in specs for field in fields(spec)}
    assert names - set(CHECKS) == {
        "head",
        "normalise_skip",
        "pool_batch",
        "pool_ratios",
        "shared_weights",
        "skip",
        "symmetric",
    }
