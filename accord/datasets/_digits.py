"""Handwritten digits on graphs whose labels follow a known Markov field: generated data that needs no file.

Each node shows a digit with noise and a covered square. Neighbours tend to show equal or successive digits, so the
labels of its neighbours help to recognise an unclear digit. The field that generated the labels is known, and so is
the best possible result for a given classifier of single digits.
"""

from dataclasses import dataclass
from itertools import combinations

import numpy as np
import torch
from torch import Tensor
from torch_geometric.data import Batch, Data

from accord.datasets.benchmarks import Benchmark
from accord.errors import OptionError
from accord.field import PairwiseField
from accord.graphs import graph_topology
from accord.inference import sample_exact

NUM_DIGITS = 10
SPLIT_FRACTIONS = (0.5, 0.15, 0.35)  # of each digit's images in train, val and test, which share no image
SAMPLING_BLOCK_GRAPHS = 256  # one call for many graphs is ten times as fast as many calls; this bounds its memory


@dataclass(frozen=True)
class DigitsTruth:
    """The field that generated the labels; the same potentials on every node and edge."""

    node: Tensor  # [states], log prior
    edge: Tensor  # [states, states], symmetric log-potential

    def field(self, data: Data, evidence: Tensor | None = None) -> PairwiseField:
        """The true field on a graph (or PyG batch), with evidence from the images.

        Args:
            data: the graph or batch.
            evidence: [nodes, states], log-likelihood of each node's image given its digit, up to a constant for
                each node; None for no evidence.
        """
        topology = graph_topology(data)
        node = self.node.expand(topology.num_nodes, -1)
        return PairwiseField(
            topology.edge_index,
            node if evidence is None else node + evidence,
            self.edge.expand(topology.num_edges, -1, -1),
            topology.graph,
            topology.num_graphs,
        )


@dataclass(frozen=True, kw_only=True, repr=False)
class DigitsBenchmark(Benchmark):
    """A benchmark with the field that generated its labels; `node_id` is the number of a node's image."""

    truth: DigitsTruth


@dataclass(frozen=True, kw_only=True)
class DigitsOptions:
    """How graphs, labels and images are generated."""

    min_nodes: int = 8
    max_nodes: int = 14
    extra_edges: int = 2  # in addition to a random tree: the treewidth is at most 1 + extra_edges
    equal: float = 3.0  # log-potential of neighbours that show the same digit
    successive: float = 4.0  # of neighbours one apart, 9 and 0 included, so that all digits are equally frequent
    noise: float = 0.2  # standard deviation; pixels run from 0 to 1
    occlusion: int = 3  # side of the covered square; images are 8 x 8

    def __post_init__(self) -> None:
        wrong = next((rule for rule, holds in self._rules().items() if not holds), None)
        if wrong is not None:
            raise OptionError(f"make_digits: {self} does not satisfy {wrong}. Change one of these settings.")

    def _rules(self) -> dict[str, bool]:
        missing = (self.min_nodes - 1) * (self.min_nodes - 2) // 2  # pairs that a tree leaves without an edge
        return {
            "1 <= min_nodes <= max_nodes": 1 <= self.min_nodes <= self.max_nodes,
            f"0 <= extra_edges <= {missing} (pairs without an edge)": 0 <= self.extra_edges <= missing,
            "noise >= 0": self.noise >= 0,
            "0 <= occlusion <= 8": 0 <= self.occlusion <= 8,
        }


def make_digits(
    num_train: int = 100,
    num_val: int = 50,
    num_test: int = 200,
    seed: int = 0,
    options: DigitsOptions | None = None,
) -> DigitsBenchmark:
    """Generate graphs, their labels from a known field, and an image for each label.

    Each split has its own random stream, so the number of test graphs does not change the training graphs.

    Args:
        num_train: number of training graphs.
        num_val: number of validation graphs.
        num_test: number of test graphs.
        seed: the same seed gives the same data.
        options: how graphs, labels and images are generated; None for the defaults.
    """
    for name, count in (("num_train", num_train), ("num_val", num_val), ("num_test", num_test)):
        if count < 1:
            raise OptionError(f"make_digits: {name} is {count}, but each split needs at least one graph.")
    options = options or DigitsOptions()
    truth = digits_truth(options.equal, options.successive)
    shuffle, *streams = np.random.default_rng(seed).spawn(4)
    images, pools = _digit_images(shuffle)
    train, val, test = (
        _draw_graphs(count, truth, images, pool, options, stream)
        for count, pool, stream in zip((num_train, num_val, num_test), pools, streams, strict=True)
    )
    return DigitsBenchmark(
        name="digits",
        train=train,
        val=val,
        test=test,
        num_states=NUM_DIGITS,
        num_tasks=1,
        level="graph",
        counted="edges",
        source=f"make_digits(seed={seed}): scikit-learn's digits on random graphs",
        label_names=[str(digit) for digit in range(NUM_DIGITS)],
        truth=truth,
    )


def digits_truth(equal: float, successive: float) -> DigitsTruth:
    """A field that favours equal and successive digits; by symmetry all digits are equally likely at every node."""
    same = torch.eye(NUM_DIGITS)
    follows = same.roll(1, dims=1)
    return DigitsTruth(torch.zeros(NUM_DIGITS), equal * same + successive * (follows + follows.t()))


def random_edges(num_nodes: int, extra_edges: int, random: np.random.Generator) -> np.ndarray:
    """A random connected graph: a random tree, then further edges between pairs of nodes.

    Returns:
        [2, num_nodes - 1 + extra_edges], each undirected edge once, lower node first.
    """
    tree = {(int(random.integers(node)), node) for node in range(1, num_nodes)}
    free = [pair for pair in combinations(range(num_nodes), 2) if pair not in tree]
    extra = [free[at] for at in random.permutation(len(free))[:extra_edges]]
    return np.array([*sorted(tree), *extra], dtype=np.int64).reshape(-1, 2).T


def _draw_graphs(
    count: int,
    truth: DigitsTruth,
    images: np.ndarray,
    pool: list[np.ndarray],
    options: DigitsOptions,
    random: np.random.Generator,
) -> list[Data]:
    """Generate the graphs of one split; `pool` lists the images of each digit that it may use."""
    generator = torch.Generator().manual_seed(int(random.integers(2**62)))
    shapes = []
    for _ in range(count):
        num_nodes = int(random.integers(options.min_nodes, options.max_nodes + 1))
        once = torch.from_numpy(random_edges(num_nodes, options.extra_edges, random))
        shapes.append(Data(edge_index=torch.cat([once, once.flip(0)], 1), num_nodes=num_nodes))
    graphs = []
    for start in range(0, count, SAMPLING_BLOCK_GRAPHS):
        chunk = shapes[start : start + SAMPLING_BLOCK_GRAPHS]
        # Plain torch: the same seed must give the same set with and without a compiler.
        field = truth.field(Batch.from_data_list(chunk))
        labels = sample_exact(field, 1, generator=generator, backend="reference")[0]
        chosen = _choose_images(labels.numpy(), pool, random)
        x = torch.from_numpy(_degrade(images[chosen], options, random))
        sizes = [int(shape.num_nodes) for shape in chunk]
        parts = (torch.split(values, sizes) for values in (x, labels, torch.from_numpy(chosen)))
        graphs += [
            # Clones, because parts of a split share memory: saving one graph would save all of them.
            Data(x=pixels.clone(), y=y.clone(), edge_index=shape.edge_index, node_id=node_id.clone())
            for shape, pixels, y, node_id in zip(chunk, *parts, strict=True)
        ]
    return graphs


def _choose_images(labels: np.ndarray, pool: list[np.ndarray], random: np.random.Generator) -> np.ndarray:
    """For each label an image of that digit, uniformly at random."""
    sizes = np.array([members.size for members in pool])
    starts = np.cumsum(sizes) - sizes
    chosen: np.ndarray = np.concatenate(pool)[starts[labels] + random.integers(sizes[labels])]
    return chosen


def _digit_images(random: np.random.Generator) -> tuple[np.ndarray, list[list[np.ndarray]]]:
    """Images [images, 8, 8] from 0 to 1, and for each split the images of each digit that belong to it."""
    from sklearn.datasets import load_digits  # takes a second to import, and only this function needs it

    images, digits = load_digits(return_X_y=True)
    pools: list[list[np.ndarray]] = [[], [], []]
    for digit in range(NUM_DIGITS):
        members = random.permutation(np.flatnonzero(digits == digit))
        cuts = np.round(np.cumsum(SPLIT_FRACTIONS)[:-1] * members.size).astype(int)
        for pool, part in zip(pools, np.split(members, cuts), strict=True):
            pool.append(part)
    return images.reshape(-1, 8, 8) / images.max(), pools


def _degrade(images: np.ndarray, options: DigitsOptions, random: np.random.Generator) -> np.ndarray:
    """Add noise to images [nodes, 8, 8], cover a square at a random position, and flatten each image."""
    count, side = images.shape[0], images.shape[1]
    top, left = random.integers(0, side - options.occlusion + 1, (2, count, 1, 1))
    row, column = np.arange(side)[:, None], np.arange(side)[None, :]
    covered = (row >= top) & (row < top + options.occlusion) & (column >= left) & (column < left + options.occlusion)
    noisy = np.clip(images + random.normal(0, options.noise, images.shape), 0, 1)
    degraded: np.ndarray = np.where(covered, 0, noisy).reshape(count, -1).astype(np.float32)
    return degraded
