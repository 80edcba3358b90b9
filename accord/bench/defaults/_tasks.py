"""Tasks that nobody tuned for: graphs split into parts or ego networks, chains, shifted domains, and made sets."""

import csv
import gzip
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch_geometric.data import Data
from torch_geometric.utils import subgraph

from accord.bench.defaults._made import MADE
from accord.datasets import find_file, load_benchmark, make_digits
from accord.datasets._sparse import dense_rows
from accord.errors import DataNotFoundError, OptionError
from accord.graphs import ego_networks

SHARES = (0.4, 0.2, 0.4)  # of the nodes of one graph, for training, validation and test
CENTRES = (200, 100, 300)  # ego networks of each
SENTENCES = (1500, 400, 800)
LETTER_FOLDS = (2, 1, 2)


@dataclass(frozen=True, eq=False)
class Task:
    """Graphs of three splits, features raw."""

    name: str
    splits: tuple[Sequence[Data], list[Data], list[Data]]  # training, validation, test
    num_states: int
    level: str = "node"  # what the default model is asked to get right

    @property
    def train(self) -> Sequence[Data]:
        """Training graphs."""
        return self.splits[0]

    @property
    def val(self) -> list[Data]:
        """Validation graphs."""
        return self.splits[1]

    @property
    def test(self) -> list[Data]:
        """Test graphs."""
        return self.splits[2]


def load_task(name: str, seed: int) -> Task:
    """A task by name; the seed splits nodes, or chooses sentences and folds."""
    if name not in TASKS:
        raise OptionError(f"bench defaults: there is no task {name!r}. Choose one of: {', '.join(TASKS)}.")
    return TASKS[name](name, seed)


def _own_parts(file: str, name: str, seed: int) -> Task:
    """The induced subgraph of each part of one graph."""
    graph, parts = _split_nodes(file, seed)
    return Task(name, _three([_induced(graph, part)] for part in parts), _num_states(graph))


def _own_egos(file: str, name: str, seed: int) -> Task:
    """Ego networks of centres, each inside its own part of one graph."""
    graph, parts = _split_nodes(file, seed)
    splits = []
    for part, count in zip(parts, CENTRES, strict=True):
        inside = _induced(graph, part)
        linked = inside.edge_index[0].unique()  # a node without neighbours makes no graph
        chosen = linked[torch.randperm(len(linked), generator=_generator(seed))[:count]]
        splits.append(ego_networks(inside, chosen))
    return Task(name, _three(splits), _num_states(graph))


def _letters(name: str, seed: int) -> Task:
    """Handwritten words: chains of letters, each edge stored in reading order."""
    with np.load(_file("ocr_letters.npz"), allow_pickle=False) as arrays:
        x = torch.from_numpy(np.unpackbits(arrays["x"], axis=1)).float()
        y, ptr, fold = torch.from_numpy(arrays["y"]).long(), arrays["ptr"], arrays["fold"]
    words = [_chain(x[a:b], y[a:b]) for a, b in zip(ptr[:-1], ptr[1:], strict=True)]
    order = [(seed + step) % 10 for step in range(10)]
    splits, first = [], 0
    for count in LETTER_FOLDS:
        folds = order[first : first + count]
        splits.append([word for word, own in zip(words, fold, strict=True) if own in folds])
        first += count
    return Task(name, _three(splits), 26)


def _words(name: str, seed: int) -> Task:
    """Parts of speech of English sentences: chains of word vectors, each edge stored in reading order."""
    vectors = _word_vectors()
    tags = sorted({tag for sentence in _sentences("ud_ewt_train.tsv.gz") for _, tag in sentence})
    splits = []
    for split, count in zip(("train", "dev", "test"), SENTENCES, strict=True):
        sentences = _sentences(f"ud_ewt_{split}.tsv.gz")
        chosen = torch.randperm(len(sentences), generator=_generator(seed))[:count].tolist()
        splits.append([_sentence(sentences[number], vectors, tags) for number in chosen])
    return Task(name, _three(splits), len(tags))


def _citation_domains(name: str, seed: int) -> Task:
    """Topics of papers: train on one citation network, validate on another, test on the third; the seed is unused."""
    bench = load_benchmark(name, features="raw")
    return Task(name, (bench.train, bench.val, bench.test), bench.num_states)


def _digits(name: str, seed: int) -> Task:
    made = make_digits(200, 100, 200, seed)
    return Task(name, (made.train, made.val, made.test), made.num_states)


def _made(name: str, seed: int) -> Task:
    return Task(name, *MADE[name](seed))


def _citation(name: str, seed: int) -> Task:
    """A set of the paper, as if nobody had tuned for it; its graphs are fixed, and the seed is the model's alone."""
    bench = load_benchmark(name, features="raw")
    return Task(name, (bench.train, bench.val, bench.test), bench.num_states, bench.level)


def _three(splits: Iterable[list[Data]]) -> tuple[list[Data], list[Data], list[Data]]:
    train, val, test = splits
    return train, val, test


def _split_nodes(file: str, seed: int) -> tuple[Data, list[Tensor]]:
    graph = _read_own(file)
    order = torch.randperm(graph.num_nodes, generator=_generator(seed))
    first, second = (round(share * len(order)) for share in (SHARES[0], SHARES[0] + SHARES[1]))
    return graph, [order[:first], order[first:second], order[second:]]


@cache
def _read_own(file: str) -> Data:
    """One whole graph."""
    if file == "facebook_pages":
        return _read_facebook()
    with np.load(_file(file), allow_pickle=False) as arrays:
        edges = torch.from_numpy(arrays["edge_index"]).long()
        return Data(x=_dense(arrays, ""), y=torch.from_numpy(arrays["y"]).long(), edge_index=edges)


def _read_facebook() -> Data:
    folder = _file("facebook_pages/target.csv").parent
    with (folder / "target.csv").open(newline="", encoding="utf-8") as file:
        rows = sorted(csv.DictReader(file), key=lambda row: int(row["id"]))
    kinds = sorted({row["page_type"] for row in rows})
    y = torch.tensor([kinds.index(row["page_type"]) for row in rows])
    features = json.loads((folder / "features.json").read_text())
    x = torch.zeros(len(rows), 1 + max(max(columns, default=0) for columns in features.values()))
    for node, columns in features.items():
        x[int(node), columns] = 1
    edges = torch.from_numpy(np.loadtxt(folder / "edges.csv", delimiter=",", skiprows=1, dtype=np.int64)).t()
    edges = edges[:, edges[0] != edges[1]]
    return Data(x=x, y=y, edge_index=torch.cat([edges, edges.flip(0)], 1).unique(dim=1))


def _induced(graph: Data, nodes: Tensor) -> Data:
    nodes = nodes.sort().values  # versions of PyG number an unsorted subset differently
    edges, _ = subgraph(nodes, graph.edge_index, relabel_nodes=True, num_nodes=graph.num_nodes)
    return Data(x=graph.x[nodes], y=graph.y[nodes], edge_index=edges)


def _chain(x: Tensor, y: Tensor) -> Data:
    order = torch.arange(len(x) - 1)
    return Data(x=x, y=y, edge_index=torch.stack([order, order + 1]))


@cache
def _sentences(file: str) -> list[list[tuple[str, str]]]:
    with gzip.open(_file(file), "rt", encoding="utf-8") as lines:
        blocks = lines.read().split("\n\n")
    split = [[line.split("\t")[:2] for line in block.split("\n") if line] for block in blocks]
    return [[(word, tag) for word, tag in block] for block in split if block]


@cache
def _word_vectors() -> dict[str, Tensor]:
    with np.load(_file("glove100_subset.npz"), allow_pickle=False) as arrays:
        words = arrays["words"].tobytes().decode().split("\n")
        return dict(zip(words, torch.from_numpy(arrays["vectors"].astype(np.float32)), strict=True))


def _sentence(sentence: Sequence[tuple[str, str]], vectors: dict[str, Tensor], tags: list[str]) -> Data:
    unknown = torch.zeros(100)
    rows = []
    for word, _ in sentence:
        shape = [word.lower() not in vectors, word[:1].isupper(), word.isupper(), any(map(str.isdigit, word))]
        rows.append(torch.cat([vectors.get(word.lower(), unknown), torch.tensor(shape).float()]))
    return _chain(torch.stack(rows), torch.tensor([tags.index(tag) for _, tag in sentence]))


def _dense(arrays: Mapping[str, Any], prefix: str) -> Tensor:
    own = {key.removeprefix(prefix): arrays[key] for key in arrays if key.startswith(f"{prefix}x_")}
    return torch.from_numpy(dense_rows(own, "bench defaults")).float()


def _file(name: str) -> Path:
    path = find_file(name)
    if path is None:
        raise DataNotFoundError(f"{name}: not found. Set ACCORD_DATA to the folder that has it.")
    return path


def _num_states(graph: Data) -> int:
    return int(graph.y.max()) + 1


def _generator(seed: int) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


OWN = {
    "photo": "own_amazon_photo.npz",
    "coauthor": "own_coauthor_cs.npz",
    "chameleon": "own_chameleon.npz",
    "facebook": "facebook_pages",
}
TASKS: dict[str, Callable[[str, int], Task]] = {
    **{f"{name}-parts": partial(_own_parts, file) for name, file in OWN.items()},
    **{f"{name}-egos": partial(_own_egos, file) for name, file in OWN.items()},
    "letters": _letters,
    "words": _words,
    "citation-domains": _citation_domains,
    "digits": _digits,
    **dict.fromkeys(MADE, _made),
    **{name: _citation for name in ("cora*", "citeseer*", "pubmed*")},
}
