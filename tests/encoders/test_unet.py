"""Graph U-Net: the output of PyG's network without its memory leak."""

import resource
from pathlib import Path

import pytest
import torch
from torch.testing import assert_close
from torch_geometric.data import Data
from torch_geometric.nn import GraphUNet as PyGGraphUNet

from accord.encoders import GraphUNet
from accord.graphs import GraphBatch

MEMORY = Path("/proc/self/statm")


def random_graph(nodes=400, edges=1200):
    generator = torch.Generator().manual_seed(0)
    edge_index = torch.randint(0, nodes, (2, edges), generator=generator)
    return GraphBatch.collate([Data(x=torch.randn(nodes, 4, generator=generator), edge_index=edge_index)])


@pytest.mark.filterwarnings("ignore:Sparse")
def test_the_output_equals_pygs():
    batch = random_graph(30, 60)
    encoder = GraphUNet(hidden=8, depth=2, edge_dropout=0.0).build(4, 3, [0])
    arcs = batch.topology.arcs
    theirs = PyGGraphUNet(4, 8, 3, 2)
    theirs.load_state_dict(
        next(module for module in encoder.modules() if isinstance(module, PyGGraphUNet)).state_dict()
    )
    wanted = theirs.eval()(batch.x, torch.stack([arcs.source, arcs.target]), batch.topology.graph)
    assert_close(encoder(batch)[:, 0], wanted)


@pytest.mark.filterwarnings("ignore:Sparse")
def test_pooling_over_the_batch_and_a_linear_map_behind_are_options():
    graphs = [Data(x=torch.randn(n, 4), edge_index=torch.randint(0, n, (2, 3 * n))) for n in (6, 9)]
    together, alone = GraphBatch.collate(graphs), GraphBatch.collate(graphs[:1])

    def depends_on_company(**options):
        encoder = GraphUNet(hidden=8, depth=2, edge_dropout=0.0, **options).build(4, 3, [0])
        return not torch.allclose(encoder(together)[:6], encoder(alone), atol=1e-5)

    assert depends_on_company(pool_batch=True) and not depends_on_company()
    assert GraphUNet(head=True).build(4, 3, [0]).replicas[0].last.weight.shape == (3, 64)


@pytest.mark.skipif(not MEMORY.exists(), reason="the system does not report the memory of a process")
def test_forward_passes_do_not_leak_memory():
    """PyG squares adjacencies as CSR matrices, which leaks tens of kilobytes per pass on CPUs."""
    batch, encoder = random_graph(), GraphUNet(hidden=4).build(4, 4, [0])

    def memory():
        return int(MEMORY.read_text().split()[1]) * resource.getpagesize()

    for _ in range(10):
        encoder(batch)
    before = memory()
    for _ in range(100):
        encoder(batch)
    assert memory() - before < 4e6
