"""Node encoders and edge scorers: graph neural networks with a replica axis, and an adapter for any other."""

from accord.encoders._adapter import Adapter
from accord.encoders._encoder import Encoder, EncoderSpec
from accord.encoders._gat import GAT
from accord.encoders._gcn import GCN
from accord.encoders._gcnii import GCNII
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
from accord.encoders._unet import GraphUNet
from accord.encoders.replica._linear import ReplicaLinear
from accord.encoders.replica._noise import Noise
from accord.encoders.scorers._agreement import AgreementScorer
from accord.encoders.scorers._bilinear import BilinearScorer
from accord.encoders.scorers._linear import LinearScorer
from accord.encoders.scorers._scorer import Scorer, ScorerSpec

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
