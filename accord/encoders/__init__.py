"""Node encoders and edge scorers: graph neural networks with a replica axis, and an adapter for PyG modules."""

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
    encoder_name,
    encoder_spec,
    scorer_from_config,
    scorer_spec,
)
from accord.encoders._sage import GraphSAGE
from accord.encoders._unet import GraphUNet
from accord.encoders.replica import Noise, ReplicaLinear
from accord.encoders.scorers import (
    AgreementScorer,
    BilinearScorer,
    FullBilinearScorer,
    LinearScorer,
    Scorer,
    ScorerSpec,
    TransitionScorer,
)
from accord.encoders.sequences import BiGRU, BiLSTM, Convolution, SequenceSpec, Transformer

__all__ = [
    "ENCODERS",
    "GAT",
    "GCN",
    "GCNII",
    "MLP",
    "SCORERS",
    "Adapter",
    "AgreementScorer",
    "BiGRU",
    "BiLSTM",
    "BilinearScorer",
    "Convolution",
    "Encoder",
    "EncoderSpec",
    "FullBilinearScorer",
    "GraphSAGE",
    "GraphUNet",
    "Identity",
    "Linear",
    "LinearScorer",
    "Noise",
    "ReplicaLinear",
    "Scorer",
    "ScorerSpec",
    "SequenceSpec",
    "Transformer",
    "TransitionScorer",
    "encoder_from_config",
    "encoder_name",
    "encoder_spec",
    "scorer_from_config",
    "scorer_spec",
]
