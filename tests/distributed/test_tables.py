"""The parts that processes read of a folder make up the graph that was written."""

import pyarrow
import pytest
import torch
from distributed.in_parts import run_in_parts
from distributed.table_cases import CASES, check_folders, named_graph
from distributed.whole_graphs import whole_graph
from pyarrow import parquet
from support.matrix import matrix
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


@pytest.mark.parametrize("ranks", [2, matrix(4)])
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


NODES = {"id": [7, 9, 2**53 - 1, 2**24 + 1], "x": [0.5, 1.0, 1.5, 2.0]}
EDGES = {"source": [2**24 + 1, 7], "target": [9, 2**53 - 1]}


def write_tables(folder, nodes=NODES, edges=EDGES, **changed):
    """A graph whose second half of nodes, and second edge, are in files of their own; some columns are changed there.

    Args:
        folder: of the graph.
        nodes: columns.
        edges: columns.
        changed: by the name of a column, its values in the second file, as arrow has them.
    """
    for name, columns, first in (("nodes", nodes, 2), ("edges", edges, 1)):
        (folder / name).mkdir(parents=True)
        for number, rows in enumerate((slice(first), slice(first, None))):
            own = {column: pyarrow.array(values[rows]) for column, values in columns.items()}
            own |= {column: changed[column] for column in own if number and column in changed}
            parquet.write_table(pyarrow.table(own), folder / name / f"part-{number}.parquet")


def doubles(*values):
    return pyarrow.array(values, pyarrow.float64())


def test_whole_numbers_that_are_stored_as_floats_are_read_exactly(tmp_path):
    write_tables(tmp_path / "exact", NODES | {"label": [1, 0, 2, 1], "part": [0, 0, 0, 0]})
    exact = read_parts(tmp_path / "exact")
    changed = {"id": doubles(2**53 - 1, 2**24 + 1), "source": doubles(7), "target": doubles(2**53 - 1)}
    changed |= {"label": doubles(2, 1), "part": doubles(0, 0)}
    write_tables(tmp_path / "floats", NODES | {"label": [1, 0, 2, 1], "part": [0, 0, 0, 0]}, **changed)
    found = read_parts(tmp_path / "floats")
    for name in ("ids", "x", "y", "edge_index"):
        assert torch.equal(getattr(found, name), getattr(exact, name)), name
    assert found.ids.tolist() == NODES["id"]
    assert found.ids[found.edge_index].tolist() == [EDGES["source"], EDGES["target"]]


@pytest.mark.parametrize(
    ("column", "values", "said"),
    [
        ("id", doubles(2, 3.5), "row 1 holds 3.5"),
        ("id", doubles(2, None), "row 1 holds no value"),
        ("id", doubles(torch.nan, 3), "row 0 holds no value"),
        ("id", doubles(2, 2.0**53), r"row 1 holds 9007199254740992.0.*int64: floats hold large numbers only roughly"),
        ("id", doubles(torch.inf, 3), "row 0 holds inf"),
        ("id", pyarrow.array([2, 2**63], pyarrow.uint64()), "row 1 holds 9223372036854775808"),
        ("id", pyarrow.array([2, None], pyarrow.int64()), "row 1 holds no value"),
        ("id", pyarrow.array([2, 2**24], pyarrow.float32()), "row 1 holds 16777216.0"),
        ("id", pyarrow.array(["a", "b"]), "has type string, but whole numbers are needed"),
        ("source", doubles(0.25), "row 0 holds 0.25"),
        ("target", doubles(None), "row 0 holds no value"),
        ("part", doubles(0, 0.5), "row 1 holds 0.5"),
        ("part", pyarrow.array(["a", "b"]), "has type string"),
        ("label", doubles(0, 0.5), "row 1 holds 0.5"),
        ("label", pyarrow.array(["a", "b"]), "has type string"),
    ],
)
def test_what_is_not_a_whole_number_is_refused_by_file_and_row(tmp_path, column, values, said):
    write_tables(tmp_path, NODES | {"label": [1, 0, 2, 1], "part": [0, 0, 1, 1]}, **{column: values})
    table = "edges" if column in EDGES else "nodes"
    with pytest.raises(GraphError, match=f"{table}/part-1.parquet: column '{column}'.*{said}"):
        read_parts(tmp_path)


def test_the_row_of_an_error_is_that_of_its_file(tmp_path):
    write_tables(tmp_path)
    ids = doubles(*range(10, 15), 15.5)
    table = pyarrow.table({"id": ids, "x": doubles(*range(6))})
    parquet.write_table(table, tmp_path / "nodes" / "part-1.parquet", row_group_size=2)
    with pytest.raises(GraphError, match=r"part-1.parquet: column 'id': row 5 holds 15.5"):
        read_parts(tmp_path)


def test_a_node_without_a_label_may_have_none_in_any_form(tmp_path):
    write_tables(tmp_path / "null", NODES | {"label": [1, 0, 2, 1]}, label=doubles(None, 2))
    write_tables(tmp_path / "nan", NODES | {"label": [1, 0, 2, 1]}, label=doubles(torch.nan, 2))
    write_tables(tmp_path / "text", NODES | {"label": ["a", "b", "a", "c"]})
    assert read_parts(tmp_path / "null").y.tolist() == [1, 0, -1, 2]
    assert read_parts(tmp_path / "nan").y.tolist() == [1, 0, -1, 2]
    assert read_parts(tmp_path / "text").y is None


def test_a_column_owner_is_a_feature_like_others(tmp_path):
    write_tables(tmp_path, NODES | {"owner": [5.5, 0.0, 3.0, 1.0]})
    found = read_parts(tmp_path)
    assert found.feature_names == ("x", "owner") and found.x[:, 1].tolist() == [5.5, 0.0, 3.0, 1.0]


def test_columns_of_edges_may_have_the_names_of_columns_of_nodes(tmp_path):
    write_tables(tmp_path, edges=EDGES | {"part": [0.5, 1.5], "label": [2.5, 3.5]})
    assert read_parts(tmp_path).edge_attr.tolist() == [[0.5, 2.5], [1.5, 3.5]]


@pytest.mark.parametrize("name", ["id", "label", "part", "node_id", "label_colour", "train_mask"])
def test_features_with_the_names_of_other_columns_are_not_written(tmp_path, name):
    data = Data(x=torch.zeros(2, 2), edge_index=torch.tensor([[0], [1]]), feature_names=["size", name])
    with pytest.raises(GraphError, match=f"the feature name '{name}' is the name of another column. Rename"):
        write_parts(data, tmp_path)
    data.feature_names = ["size", "size"]
    with pytest.raises(GraphError, match="two features have the name 'size'"):
        write_parts(data, tmp_path)
    assert not list(tmp_path.iterdir())


def test_edge_features_with_the_names_of_ends_are_not_written(tmp_path):
    data = Data(x=torch.zeros(2, 1), edge_index=torch.tensor([[0], [1]]), edge_attr=torch.ones(1, 1))
    data.edge_names = ["target"]
    with pytest.raises(GraphError, match="the feature name 'target' is the name of another column"):
        write_parts(data, tmp_path)


def test_a_part_of_an_empty_process_holds_nothing():
    data = whole_graph("random")
    part = cut_part(graph_topology(data).edge_index, torch.zeros(60, dtype=torch.long), 1, 2)
    assert part.num_own == part.halo.num_ghosts == part.edge_index.shape[1] == 0
