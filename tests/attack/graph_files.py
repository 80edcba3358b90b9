"""Mutated graph files against the readers: a graph that holds together, or a refusal in one line."""

import io
import resource
import shutil
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from random import Random

import numpy as np
from attack.commands import load_everything, run_command
from attack.damage import DAMAGES
from attack.harness.trial import Trial
from attack.runs import finished_run, fruit
from torch_geometric.data import Data

from accord.datasets import read_graphs
from accord.errors import AccordError

FILES = 100  # of each way in one case
MOST_BYTES = 4 * 2**30  # that a worker may take, in addition to what its imports take
MORE = "attack.mutated_files"  # the attack of the readers' own tests, which knows each format
WORDS = ["1e999", "-1", "nan", "99999999999999999999", "1_0", "0x10", "", '"', "\x00", "1e308"]
WORDS += ["null", "[]", "{}", "true", "9" * 5000]
DTYPES = ["<f4", "<f8", "<i4", "<i8", "<u8", "|u1", "<f2", "<c8", "|b1", "<U3", "|S2", "|O", "<M8[s]"]


class GraphFiles:
    """Mutate, read, check."""

    def __init__(self, folder: Path) -> None:
        load_everything()
        limit_memory()
        self.more = import_module(MORE) if find_spec(MORE) is not None else None
        self.run = finished_run(folder, "spn")
        data = fruit(folder)
        self.sources = [*sorted((data / "test").glob("*.npz"))[:2], *sorted((data / "val").glob("*.json"))[:2]]
        self.sources += sorted((data / "train").iterdir())[:2]

    def attempt(self, trial: Trial) -> None:
        """Files through the readers in two ways, and the last of them through `accord predict`."""
        for place in range(FILES):
            if self.more is None:
                break
            failure, _ = self.more.run_case(trial.seed, FILES * trial.number + place, trial.folder / "data")
            trial.tried["mutated files"] += 1
            if failure is not None:
                trial.fail(str(failure))
        for place in range(FILES):
            source = trial.rng.choice(self.sources)
            path = trial.folder / source.name
            how = mutate_graph(trial.rng, source, path)
            trial.tried["mutated files"] += 1
            problem = read(path)
            if problem:
                trial.fail(f"file {place}, {source.name} {how}: {problem}")
        answer = run_command(["predict", str(self.run), str(path)], trial.folder)
        trial.tried["predictions of mutated files"] += 1
        if answer.code != 0 and not answer.refused:
            trial.fail(f"predict, file {place}, {source.name} {how}: {answer.describe()}")


def limit_memory() -> None:
    """A file that makes a reader take more memory must not end other processes of this machine."""
    used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (used + MOST_BYTES, used + MOST_BYTES))


def mutate_graph(rng: Random, source: Path, path: Path) -> str:
    """Write a mutated copy of a graph; returns what was done."""
    if path.is_dir():
        shutil.rmtree(path)
    if source.is_dir():
        shutil.copytree(source, path)
        path = path / rng.choice(["nodes.csv", "edges.csv"])
    content = (source / path.name if source.is_dir() else source).read_bytes()
    mutate = rng.choice([mutate_bytes, mutate_arrays if path.suffix == ".npz" else mutate_words])
    how, content = mutate(rng, content)
    path.write_bytes(content)
    return f"{path.name} {how}"


def mutate_bytes(rng: Random, content: bytes) -> tuple[str, bytes]:
    done = []
    for _ in range(rng.randint(1, 3)):
        done.append(rng.choice(list(DAMAGES)))
        content = DAMAGES[done[-1]](rng, content)
    return ", ".join(done), content


def mutate_words(rng: Random, content: bytes) -> tuple[str, bytes]:
    """Replace, remove, swap or nest words of a text file."""
    separator = rng.choice([",", "\n", " "])
    words = content.decode().split(separator)
    place, other = rng.randrange(len(words)), rng.randrange(len(words))
    kind = rng.choice(["replaced", "removed", "swapped", "twice", "nested"])
    if kind == "replaced":
        words[place] = rng.choice(WORDS)
    elif kind == "removed":
        del words[place]
    elif kind == "swapped":
        words[place], words[other] = words[other], words[place]
    elif kind == "twice":
        words.insert(other, words[place])
    else:
        depth = rng.choice([1, 3, 2000, 100_000])
        words[place] = "[" * depth + words[place] + "]" * rng.choice([depth, 0])
    return f"word {place} {kind}", separator.join(words).encode(errors="surrogatepass")


def mutate_arrays(rng: Random, content: bytes) -> tuple[str, bytes]:
    """Another shape, dtype or content for one array of an archive, or another name."""
    with np.load(io.BytesIO(content)) as archive:
        arrays = {name: archive[name] for name in archive.files}
    name = rng.choice(list(arrays))
    kind = rng.choice(["dtype", "axis more", "axis less", "shorter", "value", "absent", "renamed", "empty", "scalar"])
    array = arrays.pop(name)
    if kind == "dtype":
        kind = rng.choice(DTYPES)
        try:
            array = array.astype(kind)
        except (ValueError, TypeError):
            array = np.zeros(array.shape, kind)
    elif kind == "axis more":
        array = array[None]
    elif kind == "axis less":
        array = array.reshape(-1)
    elif kind == "shorter":
        array = array[..., :-1]
    elif kind == "empty":
        array = array[..., :0]
    elif kind == "scalar":
        array = array.reshape(-1)[:1].reshape(())
    elif kind == "value" and array.size and array.dtype.kind in "iuf":
        array = array.copy()
        array.reshape(-1)[rng.randrange(array.size)] = rng.choice([-1, 2**31 - 1, -(2**31), 10**6])
    if kind != "absent":
        arrays[rng.choice(["X", "y", "edge_attr", "x_indptr", "label_names"]) if kind == "renamed" else name] = array
    buffer = io.BytesIO()
    np.savez(buffer, **arrays)
    return f"{name}: {kind}", buffer.getvalue()


def read(path: Path) -> str | None:
    """What is wrong with the answer of the reader; None if it is a refusal or a graph that holds together."""
    try:
        graphs = read_graphs(path)
    except AccordError as error:
        return None if "\n" not in str(error).strip() else f"the message has several lines: {error}"
    except OSError as error:
        return None if error.strerror else f"{type(error).__name__}: {error}"
    except BaseException as error:
        return f"{type(error).__name__}: {str(error)[:300]}"
    return next((problem for problem in map(graph_problem, graphs) if problem), None)


def graph_problem(graph: Data) -> str | None:
    nodes = graph.x.shape[0]
    if graph.x.dim() != 2 or not bool(graph.x.isfinite().all()):
        return f"features of shape {list(graph.x.shape)}, or not finite"
    index = graph.edge_index
    if (
        index.dim() != 2
        or index.shape[0] != 2
        or (index.numel() and not 0 <= int(index.min()) <= int(index.max()) < nodes)
    ):
        return "edges outside the graph"
    if graph.y is not None and (graph.y.shape[0] != nodes or (graph.y.numel() and int(graph.y.min()) < -1)):
        return "labels that do not fit the nodes"
    return None
