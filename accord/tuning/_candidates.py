"""The networks that the default model tries: few, and different enough that one of them fits most graphs.

Chosen by validation scores of fifteen candidates and two weight decays on thirteen tasks (results/candidates). Those
with 256 channels have 128 here, which were as good on Cora* and words. Sparse features, such as bags of words, want
much dropout; dense ones want little, and links past the averages over neighbours.
Where labels are few, a GCN without such links is tried instead: it has a quarter of the weights.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from torch import Tensor
from torch_geometric.data import Data

from accord.encoders import GCN, GCNII, MLP, EncoderSpec, GraphSAGE
from accord.learning import PartOptions

SPARSE = 0.8  # share of zeros from which features count as sparse
MODERATE = 10.0  # largest value of sparse features that networks take as they are

FEW_LABELS = 200  # labelled training nodes below which the smaller GCN is tried

OPTIONS = PartOptions(learning_rate=5e-3, weight_decay=5e-4)
STRICT = replace(OPTIONS, weight_decay=5e-3)


@dataclass(frozen=True)
class Candidate:
    """A network and how it is trained."""

    encoder: EncoderSpec
    options: PartOptions = OPTIONS


NODES_OF_SPARSE = (
    Candidate(GCNII(hidden=64, layers=8, alpha=0.2, theta=0.5, dropout=0.6, input_dropout=0.3)),
    Candidate(GraphSAGE(hidden=128, layers=2, dropout=0.7, input_dropout=0.6)),
    Candidate(GCN(hidden=64, layers=2, dropout=0.5, input_dropout=0.3), STRICT),
    Candidate(MLP(hidden=128, layers=2, dropout=0.6, input_dropout=0.5)),
)
EDGES_OF_SPARSE = (
    Candidate(MLP(hidden=128, layers=2, dropout=0.7, input_dropout=0.5), STRICT),
    Candidate(GraphSAGE(hidden=128, layers=2, dropout=0.7, input_dropout=0.6), STRICT),
)
NODES_OF_DENSE = (
    Candidate(GCNII(hidden=64, layers=4, alpha=0.5, theta=1.5, dropout=0.5, input_dropout=0.3)),
    Candidate(GCN(hidden=128, layers=2, dropout=0.3, input_dropout=0.0, skip=True)),
    Candidate(GraphSAGE(hidden=64, layers=2, dropout=0.5, input_dropout=0.3)),
    Candidate(MLP(hidden=64, layers=2, dropout=0.5, input_dropout=0.0)),
)
NODES_OF_FEW = (
    NODES_OF_DENSE[0],
    Candidate(GCN(hidden=64, layers=2, dropout=0.5, input_dropout=0.0)),
    *NODES_OF_DENSE[2:],
)
EDGES_OF_DENSE = (
    Candidate(MLP(hidden=64, layers=2, dropout=0.5, input_dropout=0.0), STRICT),
    Candidate(GCN(hidden=128, layers=2, dropout=0.6, input_dropout=0.0, skip=True)),
)


def node_candidates(graphs: Sequence[Data]) -> tuple[Candidate, ...]:
    """Node networks for graphs with these features and so many labels."""
    if has_sparse_features(graphs):
        return NODES_OF_SPARSE
    return NODES_OF_FEW if _labelled(graphs) < FEW_LABELS else NODES_OF_DENSE


def edge_candidates(graphs: Sequence[Data]) -> tuple[Candidate, ...]:
    """Edge networks for graphs with these features."""
    return EDGES_OF_SPARSE if has_sparse_features(graphs) else EDGES_OF_DENSE


def has_sparse_features(graphs: Sequence[Data]) -> bool:
    """Whether most features are zero and none is large, as in bags of words; without any, yes."""
    zeros = values = 0
    largest = 0.0
    for graph in graphs:
        if graph.x is not None and graph.x.numel():
            zeros, values = zeros + int((graph.x == 0).sum()), values + graph.x.numel()
            largest = max(largest, float(graph.x.abs().max()))
    return not values or (zeros / values > SPARSE and largest <= MODERATE)


def _labelled(graphs: Sequence[Data]) -> int:
    """How many nodes have a label, of any task."""
    known = (graph.y >= 0 for graph in graphs if isinstance(graph.y, Tensor))
    return sum(int((one if one.dim() == 1 else one.any(1)).sum()) for one in known)
