"""Node encoders and edge scorers: graph neural networks with a replica axis, and an adapter for any other."""

from accord.encoders._adapter import Adapter
from accord.encoders._agreement_scorer import AgreementScorer
from accord.encoders._bilinear_scorer import BilinearScorer
from accord.encoders._encoder import Encoder, EncoderSpec
from accord.encoders._gat import GAT
from accord.encoders._gcn import GCN
from accord.encoders._gcnii import GCNII
from accord.encoders._linear import ReplicaLinear
from accord.encoders._linear_scorer import LinearScorer
from accord.encoders._noise import Noise
from accord.encoders._plain import MLP, Identity, Linear
from accord.encoders._registry import (
    ENCODERS,
    SCORERS,
    encoder_from_config,
    encoder_spec,
    scorer_from_config,
    scorer_spec,
)
from accord.encoders._sage import GraphSAGE
from accord.encoders._scorer import Scorer, ScorerSpec
from accord.encoders._unet import GraphUNet

__all__ = [
    "ENCODERS",
    "GAT",
    "GCN",
    "GCNII",
    "MLP",
    "SCORERS",
    "Adapter",
    "AgreementScorer",
    "BilinearScorer",
    "Encoder",
    "EncoderSpec",
    "GraphSAGE",
    "GraphUNet",
    "Identity",
    "Linear",
    "LinearScorer",
    "Noise",
    "ReplicaLinear",
    "Scorer",
    "ScorerSpec",
    "encoder_from_config",
    "encoder_spec",
    "scorer_from_config",
    "scorer_spec",
]
