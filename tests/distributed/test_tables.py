"""The parts that processes read of a folder make up the graph that was written."""

import pytest
import torch
from distributed.in_parts import run_in_parts
from distributed.table_cases import CASES, check_folders, named_graph
from distributed.whole_graphs import whole_graph
from torch_geometric.data import Data

from accord.distributed import cut_graph, cut_part, read_parts, write_parts
from accord.errors import DataNotFoundError, GraphError, OptionError
from accord.graphs import graph_topology


@pytest.fixture(scope="module")
def root(tmp_path_factory):
    root = tmp_path_factory.mktemp("parts")
    for case in CASES:
        data, files, parts = named_graph(case)
        write_parts(data, root / case, files, parts)
    plain = {"x": torch.zeros(4, 2), "edge_index": torch.tensor([[0, 1], [1, 2]])}
    write_parts(Data(**plain, node_id=torch.tensor([5, 6, 7, 5])), root / "twice", 4)
    write_parts(Data(**plain), root / "missing", 2)
    write_parts(Data(x=torch.full((4, 2), torch.nan), edge_index=plain["edge_index"]), root / "nan", 2)
    (root / "nan" / "nodes" / "part-00001.parquet").replace(root / "missing" / "nodes" / "part-00001.parquet")
    write_parts(Data(**plain), root / "damaged", 2)
    (root / "damaged" / "edges" / "part-00001.parquet").write_bytes(b"PAR1 nonsense PAR1")
    write_parts(Data(**plain), root / "no such node", 1)
    write_parts(Data(x=torch.zeros(100, 1), edge_index=torch.tensor([[0], [99]])), root / "long", 1)
    (root / "long" / "edges" / "part-00000.parquet").replace(root / "no such node" / "edges" / "part-00000.parquet")
    return root


@pytest.mark.parametrize("ranks", [2, 4])
def test_parts_of_a_folder_are_those_of_the_graph_that_was_written(ranks, root):
    found = run_in_parts(check_folders, ranks, root)
    data, _, _ = named_graph([*CASES][-1])
    edges = graph_topology(data).num_edges
    assert sum(counted for counted, _, _ in found) == edges, "every edge is counted once"
    assert sum(own for _, own, _ in found) == 60
    assert {edge for *_, numbers in found for edge in numbers} == set(range(edges))


def test_one_process_reads_the_whole_graph(root):
    data, _, _ = named_graph("one file")
    found = read_parts(root / "one file")
    structure = graph_topology(data)
    assert torch.equal(found.part.edge_index, structure.edge_index)
    assert torch.equal(found.x, data.x) and torch.equal(found.edge_index, data.edge_index)
    assert torch.equal(found.part.edges, torch.arange(structure.num_edges)) and found.part.halo.num_ghosts == 0
    assert found.edge_names == ("weight", "length")


def test_only_wanted_columns_are_read(root):
    found = read_parts(root / "one file", columns=["f4", "f1", "length"])
    data, _, _ = named_graph("one file")
    assert found.feature_names == ("f1", "f4") and torch.equal(found.x, data.x[:, [1, 4]])
    assert found.edge_names == ("length",) and torch.equal(found.edge_attr, data.edge_attr[:, 1:])


def test_what_cannot_be_read_is_refused(root, tmp_path):
    with pytest.raises(DataNotFoundError, match="no Parquet files.*write_parts"):
        read_parts(tmp_path)
    with pytest.raises(OptionError, match="is not empty"):
        write_parts(named_graph("hash")[0], root / "hash")
    with pytest.raises(GraphError, match="owner has shape"):
        cut_graph(named_graph("hash")[0], torch.zeros(3, dtype=torch.long), 0, 1)


def test_a_part_of_an_empty_process_holds_nothing():
    data = whole_graph("random")
    part = cut_part(graph_topology(data).edge_index, torch.zeros(60, dtype=torch.long), 1, 2)
    assert part.num_own == part.halo.num_ghosts == part.edge_index.shape[1] == 0
