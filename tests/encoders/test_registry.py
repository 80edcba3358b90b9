"""Encoders and scorers by name."""

import pytest
import torch

from accord.encoders import (
    ENCODERS,
    GCN,
    GCNII,
    SCORERS,
    Adapter,
    BilinearScorer,
    GraphSAGE,
    LinearScorer,
    encoder_name,
    encoder_spec,
    scorer_spec,
)
from accord.errors import InputTypeError, OptionError


def test_the_tables_list_every_kind_once():
    graphs = {"gcn", "sage", "gat", "unet", "gcnii", "mlp", "linear"}
    assert set(ENCODERS) == graphs | {"bilstm", "bigru", "convolution", "transformer"}
    assert set(SCORERS) == {"linear", "bilinear", "full-bilinear", "agreement", "transition"}
    assert all(spec.kind == name for table in (ENCODERS, SCORERS) for name, spec in table.items())


@pytest.mark.parametrize(
    ("name", "canonical"),
    [
        ("gcn", "gcn"),
        ("GCN", "gcn"),
        (" GCNII ", "gcnii"),
        ("sage", "sage"),
        ("graphsage", "sage"),
        ("GraphSAGE", "sage"),
        ("MLP", "mlp"),
        ("UNet", "unet"),
    ],
)
def test_names_ignore_case_and_have_one_canonical_form(name, canonical):
    assert encoder_name(name) == canonical
    assert encoder_spec(name) == ENCODERS[canonical]


def test_a_specification_is_returned_unchanged():
    assert encoder_spec("GCNII") == GCNII() and encoder_spec("graphsage") == GraphSAGE()
    encoder, scorer = GCN(8), LinearScorer(4)
    assert encoder_spec(encoder) is encoder and scorer_spec(scorer) is scorer
    assert scorer_spec("Bilinear") == BilinearScorer()


def test_modules_and_functions_are_adapted():
    module = torch.nn.Identity()
    assert encoder_spec(module) == Adapter(module)

    def factory(in_channels, out_channels):
        return torch.nn.Linear(in_channels, out_channels)

    assert encoder_spec(factory) == Adapter(factory)


@pytest.mark.parametrize("resolve", [encoder_name, encoder_spec])
def test_unknown_names_and_wrong_types_are_refused(resolve):
    with pytest.raises(OptionError, match=r"'resnet' is unknown.*gcnii.*graphsage"):
        resolve("resnet")
    with pytest.raises(InputTypeError, match="int"):
        resolve(3)
    with pytest.raises(InputTypeError, match=r"GCN\(\)"):
        resolve(GCN)


def test_unknown_scorers_are_refused():
    with pytest.raises(OptionError, match=r"'cubic' is unknown.*agreement"):
        scorer_spec("cubic")
    with pytest.raises(InputTypeError, match="scorer is a NoneType"):
        scorer_spec(None)
    with pytest.raises(InputTypeError, match=r"LinearScorer\(\)"):
        scorer_spec(LinearScorer)
