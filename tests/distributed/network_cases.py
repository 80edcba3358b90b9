"""Networks on parts of a graph, next to the same networks on the whole graph."""

import pytest
import torch
from distributed.whole_graphs import whole_graph

from accord.distributed import cut_graph, part_batch, partition
from accord.encoders import ENCODERS, SCORERS, Adapter
from accord.encoders._gat import GAT
from accord.encoders._gcn import GCN
from accord.encoders._gcnii import GCNII
from accord.encoders._plain import MLP, Identity, Linear
from accord.encoders._sage import GraphSAGE
from accord.errors import GraphError, OptionError
from accord.graphs import GraphBatch, graph_topology

SEEDS = [3, 8]  # one for each replica
CLOSE = {torch.float32: 1e-5, torch.float64: 1e-10}
ON_PARTS = {
    "gcn": GCN(layers=3, normalisation="layer"),
    "gcn with skips": GCN(skip=True),
    "sage": GraphSAGE(layers=3),
    "gat": GAT(),
    "gat with skips": GAT(skip=True),
    "gcnii": GCNII(layers=4),
    "gcnii with two weights": GCNII(layers=3, shared_weights=False, skip=True, normalisation="layer"),
    "mlp": MLP(),
    "linear": Linear(),
    "identity": Identity(),
}
WIDE = {"gcn", "sage", "gat", "gcnii"}  # also with many features, of which most are zero
GRAPHS = [  # kind, dtype, features, partitioner
    ("random", torch.float32, 6, "metis"),
    ("power", torch.float64, 6, "hash"),
    ("random", torch.float64, 150, "blocks"),
]


def case(kind, dtype, features, method, ranks, attributes=2):
    """A graph and the owners of its nodes; with many features, one part's are dense although the whole is sparse."""
    data = whole_graph(kind, features=features, attributes=attributes, dtype=dtype)
    owner = partition(graph_topology(data).edge_index, 60, ranks, method)
    if features > 100:
        data.x[owner > 0] *= torch.rand(data.x[owner > 0].shape) < 0.01
        data.x[owner == 0] *= torch.rand(data.x[owner == 0].shape) < 0.12
    return data, owner


def built(spec, *sizes, dtype):
    torch.manual_seed(0)
    network = spec.build(*sizes).to(dtype)
    for parameter in network.parameters():  # biases start as zeros, which would hide their absence
        if parameter.numel() and not bool(parameter.any()):
            parameter.normal_(std=0.3)
    return network


def check_networks(rank, ranks):
    """Own nodes and all edges have the values that they have in the whole graph; how far apart they are at most."""
    farthest = {}
    for kind, dtype, features, method in GRAPHS:
        torch.manual_seed(1)
        data, owner = case(kind, dtype, features, method, ranks)
        whole, graph = GraphBatch.collate([data]), cut_graph(data, owner, rank, ranks)
        part = graph.part
        batch = part_batch(GraphBatch.collate([graph.to_data()]), part)
        for name, spec in ON_PARTS.items():
            if features > 100 and name not in WIDE:
                continue
            encoder = built(spec, features, 4, SEEDS, dtype=dtype)
            wanted, found = encoder(whole), encoder(batch)
            apart = (found - wanted[part.nodes]).abs().max() if len(part.nodes) else torch.tensor(0.0)
            assert apart <= CLOSE[dtype] * max(1, wanted.abs().max()), (name, kind, apart)
            farthest[name, dtype] = max(farthest.get((name, dtype), 0.0), float(apart))
        for name, spec in SCORERS.items():
            scorer = built(spec, 4, 3, SEEDS, 2, dtype=dtype)
            encoder = built(GCN(), features, 4, SEEDS, dtype=dtype)
            wanted = scorer(encoder(whole), whole)[:, part.edges]
            torch.testing.assert_close(
                scorer(encoder(batch), batch), wanted, rtol=CLOSE[dtype], atol=CLOSE[dtype], msg=f"{name}, {kind}"
            )
    return farthest


def check_refusals(rank, ranks):
    """What would be wrong on parts is refused, in every process."""
    data, owner = case("random", torch.float32, 6, "hash", ranks)
    graph = cut_graph(data, owner, rank, ranks)
    batch = part_batch(GraphBatch.collate([graph.to_data()]), graph.part)
    for spec in (ENCODERS["unet"], Adapter(lambda inputs, outputs: torch.nn.Linear(inputs, outputs))):
        with pytest.raises(OptionError, match="cannot run on parts"):
            spec.build(6, 4, SEEDS)(batch)
    encoder = GCN().build(6, 4, SEEDS)
    with torch.enable_grad(), pytest.raises(GraphError, match="gradients do not pass between processes"):
        encoder(batch)
    assert encoder(batch).isfinite().all()
    return True


def check_without_exchange(rank, ranks):
    """How far networks are off if ghosts keep what their sums over some of their neighbours are."""
    data, owner = case("random", torch.float32, 6, "metis", ranks)
    graph = cut_graph(data, owner, rank, ranks)
    whole, part = GraphBatch.collate([data]), graph.part
    full = graph.to_data()
    full.x[part.num_own :] = data.x[part.nodes[part.num_own :]]
    batch = GraphBatch.collate([full])
    off = {}
    for name in ("gcn", "sage", "gat", "gcnii"):
        encoder = built(ON_PARTS[name], 6, 4, SEEDS, dtype=torch.float32)
        own = encoder(batch)[: part.num_own] - encoder(whole)[part.nodes[: part.num_own]]
        off[name] = float(own.abs().max())
    return off
