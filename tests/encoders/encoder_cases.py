"""Small graphs, and specifications that cover every kind and option, for the conformance suites."""

import torch
from torch_geometric.data import Data
from torch_geometric.nn import GraphConv

from accord.encoders import (
    GAT,
    GCN,
    GCNII,
    MLP,
    Adapter,
    AgreementScorer,
    BiGRU,
    BilinearScorer,
    BiLSTM,
    Convolution,
    FullBilinearScorer,
    GraphSAGE,
    GraphUNet,
    Linear,
    LinearScorer,
    SequenceSpec,
    Transformer,
)
from accord.encoders.sequences import Words
from accord.graphs import GraphBatch, path_edges

FEATURES = 7
WIDE = 150  # wide and sparse enough for the sparse path
ATTRIBUTES = 2
SEEDS = [3, 11, 2**40 + 5]
WORDS = Words(4, 2, channels=3, characters=6, width=4, character_channels=5, word_dropout=0.3)


class NoisyConv(torch.nn.Module):
    """A PyG module as a user would write it, with torch's own dropout."""

    def __init__(self, in_channels, out_channels):
        super().__init__()
        self.conv = GraphConv(in_channels, out_channels)

    def forward(self, x, edge_index):
        return self.conv(torch.nn.functional.dropout(x, 0.3, self.training), edge_index)


ENCODER_CASES = {
    "gcn": GCN(),
    "gcn all options": GCN(8, 3, 0.5, 0.3, "layer", True, "elu"),
    "gcn one layer": GCN(layers=1, input_dropout=0.2),
    "sage": GraphSAGE(),
    "sage all options": GraphSAGE(8, 3, 0.5, 0.3, "layer", True, "tanh"),
    "gat": GAT(hidden=4, heads=(2, 3)),
    "gat last dropout": GAT(hidden=4, heads=(2, 2, 3), last_dropout=0.5),
    "gat all options": GAT(4, (2, 2, 3), 0.4, 0.3, 0.2, "layer", False, "leaky_relu"),
    "gcnii": GCNII(hidden=8, layers=4),
    "gcnii all options": GCNII(8, 3, 0.2, 1.5, 0.5, 0.3, "layer", True, False, "gelu"),
    "gcnii as the authors'": GCNII(8, 3, normalisation="layer", skip=True, normalise_skip=True, shared_weights=False),
    "mlp": MLP(hidden=8, layers=3, dropout=0.5),
    "linear": Linear(input_dropout=0.4),
    "unet": GraphUNet(hidden=8, depth=2),
    "unet all options": GraphUNet(8, 2, (0.8, 0.6), 0.3, 0.4, "elu"),
    "adapter": Adapter(NoisyConv),
    "bilstm": BiLSTM(hidden=6, dropout=0.0, input_dropout=0.0),
    "bilstm all options": BiLSTM(4, 2, 0.4, 0.3, True),
    "bigru": BiGRU(hidden=6),
    "convolution": Convolution(hidden=8, layers=3, ends=True),
    "convolution all options": Convolution(8, 2, 0.4, 0.3, True, None, 2, "tanh"),
    "transformer": Transformer(hidden=8, attention_heads=2),
    "bilstm of words": BiLSTM(4, words=WORDS),
    "convolution of words": Convolution(8, activation="tanh", words=WORDS),
}
SCORER_CASES = {
    f"{name} {hidden} {'symmetric' if symmetric else 'oriented'}": make(hidden, 0.3, symmetric)
    for name, make in (
        ("linear", LinearScorer),
        ("bilinear", BilinearScorer),
        ("full bilinear", FullBilinearScorer),
        ("agreement", AgreementScorer),
    )
    for hidden in (None, 6)
    for symmetric in (True, False)
}


def random_graph(nodes, seed, features=FEATURES, columns=None, dtype=torch.float32, spec=None):
    """A random graph with features (sparse if wide), labels, edge attributes, self-loops and repeated edges.

    For an encoder of sequences (`spec`) it is a path; for one of words, the first columns are ids.
    """
    generator = torch.Generator().manual_seed(seed)
    columns = 2 * nodes if columns is None else columns
    x = torch.randn(nodes, features, generator=generator)
    if features == WIDE:
        x = x * (torch.rand(nodes, features, generator=generator) < 0.05)
    edge_index = torch.randint(0, nodes, (2, columns), generator=generator)
    if isinstance(spec, SequenceSpec):
        edge_index = path_edges(nodes)
        columns = nodes - 1
    words = getattr(spec, "words", None)
    if words is not None:
        spelt = torch.randint(1, words.characters, (nodes, words.width), generator=generator)
        length = torch.randint(0, words.width + 1, (nodes, 1), generator=generator)
        x[:, 0] = torch.randint(0, words.words + words.fixed_words, (nodes,), generator=generator)
        x[:, 1 : words.columns] = spelt * (torch.arange(words.width) < length)
    return Data(
        x=x.to(dtype),
        edge_index=edge_index,
        y=torch.randint(0, 3, (nodes,), generator=generator),
        edge_attr=torch.randn(columns, ATTRIBUTES, generator=generator).to(dtype),
    )


def random_graphs(features=FEATURES, dtype=torch.float32, spec=None):
    """Graphs of several sizes: one node, no edges, and ordinary ones."""
    shapes = ((6, 12), (1, 0), (4, 0), (9, 25), (2, 1))
    return [random_graph(n, seed, features, columns, dtype, spec) for seed, (n, columns) in enumerate(shapes)]


def random_batch(features=FEATURES, dtype=torch.float32, spec=None):
    return GraphBatch.collate(random_graphs(features, dtype, spec))


def random_h(batch, dtype, *shape):
    """Random values [nodes, *shape] that require a gradient."""
    generator = torch.Generator().manual_seed(2)
    return torch.randn(batch.num_nodes, *shape, generator=generator, dtype=dtype).requires_grad_()


def dense_adjacency(batch, dtype):
    """The adjacency [targets, sources] of a batch."""
    dense = torch.zeros(batch.num_nodes, batch.num_nodes, dtype=dtype)
    dense[batch.topology.arcs.target, batch.topology.arcs.source] = 1
    return dense
