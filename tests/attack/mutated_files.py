"""An attack on the readers of graph files: valid files, damaged at random.

A reader must refuse a damaged file with an `AccordError` or an `OSError`, or return a valid graph. Run it as
`python -m attack.mutated_files --cases 10000 --seed 0` in the folder of the tests; each failure is printed with the
number that repeats it.
"""

import argparse
import random
import shutil
import subprocess
import sys
import tempfile
import traceback
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path

import networkx
import numpy as np
import scipy.sparse
import torch
from torch_geometric.data import Data

from accord.datasets import read_folder, read_graph, read_graphs, write_graph
from accord.errors import AccordError

FORMS = ("g.npz", "g.json", "g", "arrays", "csr", "g.graphml", "g.pt", "parquet")  # arrays, csr: .npz with odd arrays
MOST_SECONDS = 30  # for one case; the slowest takes milliseconds
WORDS = [
    *(b"", b"\0", b"\xff", b"\xef\xbb\xbf", b"\xc3\x28", b"\r", b"\n", b"\r\n", b'"', b'""', b",", b",,", b";", b"'"),
    *(b"-1", b"-0", b"1_0", b"nan", b"NaN", b"inf", b"-Infinity", b"1e39", b"1e400", b"0x1p3", b"9" * 30, b"9" * 5000),
    *(b"null", b"true", b"{}", b"[]", b"[" * 5000, b"[[", b"]]", b'"a"', b'{"x":', b"\\u0000", b"\xd9\xa1"),
    *(b"PK\x03\x04", b"PK\x01\x02", b"PK\x05\x06", b"\x93NUMPY\x01\x00", b"\x93NUMPY\x03\x00", b"|O", b"<U0", b"<f8"),
    *(b"18446744073709551615", b"9223372036854775808", b"label", b"label_", b"id", b"(99999999999,)", b"(-1,)"),
]


@dataclass(frozen=True)
class Failure:
    """A file that was not refused properly. `seed` and `number` repeat it."""

    seed: int
    number: int
    form: str
    what: str

    def __str__(self) -> str:
        return f"seed {self.seed}, case {self.number} ({self.form}): {self.what}"


def draw_graph(rng: random.Random) -> Data:
    """A small graph with some of the parts that files may hold."""
    generator = torch.Generator().manual_seed(rng.randrange(2**31))
    nodes, features, edges = rng.randint(1, 6), rng.randint(1, 4), rng.randint(0, 8)
    graph = Data(
        x=torch.randn(nodes, features, generator=generator),
        edge_index=torch.randint(nodes, (2, edges), generator=generator),
    )
    if rng.random() < 0.8:
        shape = (nodes, 2) if rng.random() < 0.3 else (nodes,)
        graph.y = torch.randint(-1, 3, shape, generator=generator)
    if rng.random() < 0.5:
        graph.edge_attr = torch.randn(edges, rng.randint(1, 2), generator=generator)
    if rng.random() < 0.3:
        graph.node_id = torch.randint(2**40, (nodes,), generator=generator)
    if rng.random() < 0.5:
        graph.feature_names = [f"f{column}" for column in range(features)]
    return graph


def flip(rng: random.Random, content: bytearray) -> None:
    for _ in range(rng.choice([1, 1, 2, 8])):
        content[rng.randrange(len(content))] ^= 1 << rng.randrange(8)


def cut(rng: random.Random, content: bytearray) -> None:
    del content[rng.randrange(len(content)) :]


def remove(rng: random.Random, content: bytearray) -> None:
    start = rng.randrange(len(content))
    del content[start : start + rng.choice([1, 2, 10, 100])]


def splice(rng: random.Random, content: bytearray) -> None:
    """Copy one piece of the file over another, or between two bytes."""
    start, target = rng.randrange(len(content)), rng.randrange(len(content))
    piece = content[start : start + rng.choice([1, 4, 16, 64])]
    content[target : target + rng.choice([0, len(piece)])] = piece


def insert(rng: random.Random, content: bytearray) -> None:
    place, word = rng.randrange(len(content) + 1), rng.choice(WORDS)
    content[place : place + rng.choice([0, 0, 1, len(word)])] = word


MUTATIONS: list[Callable[[random.Random, bytearray], None]] = [flip, flip, cut, remove, splice, insert, insert]


def mutate(rng: random.Random, path: Path) -> None:
    """Damage one file in one to three places."""
    content = bytearray(path.read_bytes())
    for _ in range(rng.choice([1, 1, 1, 2, 3])):
        if content:
            rng.choice(MUTATIONS)(rng, content)
    path.write_bytes(content)


KINDS = ["<f2", "<f4", ">f8", "<f8", "<g", "i1", "u1", "<i4", "<u8", ">i8", "?", "<c8", "<M8[s]", "<U3", "S2", "V3"]
NUMBERS = [0, -0.0, -1, -2, 1, 3, 0.5, 1e6, 2**31, 2**53, 2**62, 2**63, 2**64 - 1, 1e39, 1e308, np.inf, -np.inf, np.nan]


def change_array(rng: random.Random, array: np.ndarray) -> np.ndarray:
    """Another type, another shape, or another number in one place."""
    choice = rng.randrange(4)
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            if choice == 0:
                return array.astype(rng.choice(KINDS))
            if choice == 1:
                return rng.choice([array[:1], array[:0], array.ravel(), array[None], array.T, array[..., :0]])
            if choice == 2:
                return np.concatenate([array, array])
            array = array.astype(rng.choice([array.dtype.str, "<f8", "<u8", "<i8"]))
            array.flat[rng.randrange(array.size)] = rng.choice(NUMBERS)
            return array
        except (ValueError, TypeError, OverflowError, IndexError, RuntimeError):  # no such conversion
            return np.array(rng.choice(NUMBERS))


def write_arrays(rng: random.Random, graph: Data, path: Path, sparse: bool) -> None:
    """An intact .npz file of which one or two arrays are odd."""
    arrays = {name: values.numpy() for name, values in graph.to_dict().items() if isinstance(values, torch.Tensor)}
    if sparse:
        matrix = scipy.sparse.csr_array(arrays.pop("x"))
        arrays |= {"x_indptr": matrix.indptr, "x_indices": matrix.indices, "x_shape": np.array(matrix.shape)}
        arrays |= {"x_data": matrix.data} if rng.random() < 0.7 else {}
    for _ in range(rng.choice([1, 1, 2])):
        name = rng.choice(sorted(arrays))
        arrays[name] = change_array(rng, arrays[name])
    path.parent.mkdir(parents=True, exist_ok=True)
    np.savez(path, **arrays)


def write_other(graph: Data, form: str, path: Path) -> Path:
    """A graph in a form that Accord reads but does not write; gives the file to damage."""
    path.parent.mkdir(parents=True, exist_ok=True)
    if form == "g.pt":
        torch.save(graph, path)
        return path
    rows = {"id": [f"n{node}" for node in range(len(graph.x))], "colour": ["red", "blue", ""] * len(graph.x)}
    nodes = {name: cells[: len(graph.x)] for name, cells in rows.items()} | {"a": graph.x[:, 0].tolist()}
    ends = [[f"n{node}" for node in side] for side in graph.edge_index.tolist()]
    if form == "g.graphml":
        network = networkx.MultiDiGraph()
        network.add_nodes_from((row[0], {"colour": row[1], "a": row[2]}) for row in zip(*nodes.values(), strict=True))
        network.add_edges_from(zip(*ends, strict=True))
        networkx.write_graphml(network, path)
        return path
    pyarrow, parquet = import_module("pyarrow"), import_module("pyarrow.parquet")
    path.mkdir()
    parquet.write_table(pyarrow.table(nodes), path / "nodes.parquet")
    parquet.write_table(pyarrow.table({"source": ends[0], "target": ends[1]}), path / "edges.parquet")
    return path / "nodes.parquet"


def check_graph(graph: Data) -> None:
    """Raise an AssertionError unless a graph that was read is valid."""
    nodes = len(graph.x)
    assert graph.x.dtype == torch.float32 and graph.x.dim() == 2 and bool(graph.x.isfinite().all()), "x"
    index = graph.edge_index
    assert index.dtype == torch.long and index.dim() == 2 and len(index) == 2, "edge_index"
    assert not index.numel() or (int(index.min()) >= 0 and int(index.max()) < nodes), "edge_index"
    if graph.y is not None:
        assert graph.y.dtype == torch.long and len(graph.y) == nodes and bool((graph.y >= -1).all()), "y"
    if graph.edge_attr is not None:
        assert graph.edge_attr.dim() == 2 and len(graph.edge_attr) == index.shape[1], "edge_attr"
        assert bool(graph.edge_attr.isfinite().all()), "edge_attr"
    if "node_id" in graph:
        assert graph.node_id.dtype == torch.long and graph.node_id.shape == (nodes,), "node_id"
    if "feature_names" in graph:
        assert len(set(graph.feature_names)) == graph.x.shape[1], "feature_names"


def run_case(seed: int, number: int, folder: Path) -> tuple[Failure | None, bool]:
    """Damage one file and read it: the failure if there is one, and whether the file was refused."""
    rng = random.Random(f"{seed}/{number}")
    form = rng.choice(FORMS)
    split = folder / "train"
    shutil.rmtree(folder, ignore_errors=True)
    names = ["cat", "dog", "1"] if rng.random() < 0.4 else None
    graph, path = draw_graph(rng), split / ("g.npz" if form in ("arrays", "csr") else form)
    reader = rng.choice(["read_graph", "read_graphs", "read_folder", "with names"])
    before = None
    if form in ("arrays", "csr"):
        write_arrays(rng, graph, path, sparse=form == "csr")
    elif form in ("g.graphml", "g.pt", "parquet"):
        mutate(rng, write_other(graph, form, path))
    else:
        write_graph(graph, path, names)
        before = read_graph(path, with_labels=False) if form == "g.npz" else None
        mutate(rng, path / rng.choice(["nodes.csv", "edges.csv"]) if form == "g" else path)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            for graph in _read(reader, folder, path):
                check_graph(graph)
                if before is not None:  # .npz files have checksums, so damage must not change what is read
                    for name, values in before.to_dict().items():
                        same = (
                            torch.equal(values, graph[name])
                            if isinstance(values, torch.Tensor)
                            else values == graph[name]
                        )
                        assert same, f"{name} has changed"
    except (AccordError, OSError):
        return None, True
    except Exception as error:
        place = traceback.extract_tb(error.__traceback__)[-1]
        what = f"{reader}: {type(error).__name__}: {str(error)[:200]} at {Path(place.filename).name}:{place.lineno}"
        return Failure(seed, number, form, what), False
    return None, False


def _read(reader: str, folder: Path, path: Path) -> list[Data]:
    if reader == "read_folder":
        return read_folder(folder).train
    if reader == "read_graphs":
        return read_graphs(path.parent)
    return [read_graph(path, ["cat", "dog", "1"] if reader == "with names" else None)]


def run_mutations(cases: int, seed: int, first: int = 0) -> tuple[list[Failure], int]:
    """Run cases in this process: the failures, and how many files were refused."""
    failures, refused = [], 0
    with tempfile.TemporaryDirectory() as scratch:
        for number in range(first, first + cases):
            failure, was_refused = run_case(seed, number, Path(scratch) / "data")
            failures += [] if failure is None else [failure]
            refused += was_refused
    return failures, refused


def run_guarded(cases: int, seed: int, chunk: int = 1000) -> tuple[list[str], int]:
    """Run cases in other processes, so that a crash or a hang is a failure too: lines of failures, files refused."""
    parts = [_run_part(first, min(chunk, cases - first), seed) for first in range(0, cases, chunk)]
    return [line for lines, _ in parts for line in lines], sum(refused for _, refused in parts)


def _run_part(first: int, count: int, seed: int) -> tuple[list[str], int]:
    """Some cases in one process; if it crashes, halves of them, down to the case that crashes."""
    code, out = _run_process(["--cases", str(count), "--seed", str(seed), "--first", str(first)], MOST_SECONDS * 20)
    *lines, last = out.splitlines() or [""]
    if code in (0, 1) and last.endswith("failures"):
        return lines, int(last.split()[2])
    if count == 1:
        return [f"seed {seed}, case {first}: the process ended with {code}"], 0
    half = count // 2
    parts = [_run_part(first, half, seed), _run_part(first + half, count - half, seed)]
    return parts[0][0] + parts[1][0], parts[0][1] + parts[1][1]


def _run_process(arguments: list[str], seconds: int) -> tuple[int | str, str]:
    command = [sys.executable, "-m", "attack.mutated_files", *arguments]
    try:
        done = subprocess.run(command, cwd=Path(__file__).parents[1], capture_output=True, text=True, timeout=seconds)
    except subprocess.TimeoutExpired:
        return "a hang", ""
    return done.returncode, done.stdout


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cases", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--first", type=int, default=0)
    chosen = parser.parse_args()
    failures, refused = run_mutations(chosen.cases, chosen.seed, chosen.first)
    for failure in failures:
        print(failure)
    print(f"{chosen.cases} files, {refused} refused, {len(failures)} failures")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
