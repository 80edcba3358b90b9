"""Fields of kinds that nothing in `accord.maximise` was set on, for `benchmarks/solver/solver.py`."""

from collections.abc import Iterator
from itertools import combinations

import numpy as np
import torch

from accord import PairwiseField
from accord.field.factors import FactorField, ParityFactors

Pairs = list[tuple[int, int]]


def _field(pairs: Pairs | np.ndarray, node: np.ndarray, tables: np.ndarray) -> PairwiseField:
    index = np.array(pairs, dtype=np.int64).T
    edge = torch.tensor(tables).expand(index.shape[1], *tables.shape[-2:]).contiguous()
    return PairwiseField(torch.tensor(index), torch.tensor(node), edge)


def _grid(*shape: int) -> np.ndarray:
    """Pairs of neighbours [pairs, 2]."""
    place = np.arange(np.prod(shape)).reshape(shape)
    each = range(len(shape))
    return np.concatenate([np.stack([np.delete(place, cut, axis).ravel() for cut in (-1, 0)], 1) for axis in each])


def _random_pairs(rng: np.random.Generator, num_nodes: int, count: int) -> Pairs:
    every = list(combinations(range(num_nodes), 2))
    return [every[place] for place in rng.permutation(len(every))[:count]]


def stereo(height: int, width: int, disparities: int, seed: int) -> PairwiseField:
    """Two rows of noisy images: boxes before a slanted wall; truncated differences of disparity cost something."""
    rng = np.random.default_rng(seed)
    true = np.tile(np.linspace(1, disparities / 3, width), (height, 1)).round().astype(int)
    for _ in range(5):
        top, left = rng.integers(height - 4), rng.integers(width - 6)
        high, wide = rng.integers(4, height // 2), rng.integers(6, width // 2)
        true[top : top + high, left : left + wide] = rng.integers(disparities // 3, disparities)
    scene = rng.normal(size=(height, width + disparities))
    right = np.take_along_axis(scene, np.arange(width) + true, 1) + 0.5 * rng.normal(size=true.shape)
    shifted = np.stack([scene[:, state : state + width] for state in range(disparities)], -1)
    evidence = -np.minimum(np.abs(shifted - right[..., None]), 1.5)
    levels = np.arange(disparities)
    smooth = -0.4 * np.minimum(np.abs(levels[:, None] - levels), 2.0)
    return _field(_grid(height, width), evidence.reshape(-1, disparities), smooth)


def random_field_ising(side: int, strength: float, seed: int) -> PairwiseField:
    """A ferromagnet in three dimensions, with a normal field at each spin."""
    rng = np.random.default_rng(seed)
    field = strength * rng.normal(size=side**3)
    return _field(_grid(side, side, side), np.stack([field, -field], 1), np.array([[1.0, -1.0], [-1.0, 1.0]]))


def max_cut(num_nodes: int, count: int, seed: int, weighted: bool) -> PairwiseField:
    rng = np.random.default_rng(seed)
    weight = rng.integers(1, 11, size=count).astype(float) if weighted else np.ones(count)
    pairs = _random_pairs(rng, num_nodes, count)
    return _field(pairs, np.zeros((num_nodes, 2)), weight[:, None, None] * (1 - np.eye(2)))


def queens(size: int, seed: int) -> PairwiseField:
    """A queen in each row, none attacks another, and each square has a normal score."""
    rng = np.random.default_rng(seed)
    pairs = list(combinations(range(size), 2))
    column = np.arange(size)
    apart = np.abs(column[:, None] - column)
    tables = np.stack([np.where((apart == 0) | (apart == two - one), -np.inf, 0.0) for one, two in pairs])
    return _field(pairs, rng.normal(size=(size, size)), tables)


def sudoku(order: int, given: int, seed: int) -> PairwiseField:
    """A square of order^2 digits, of which some are given; it has a solution."""
    rng = np.random.default_rng(seed)
    size = order**2
    row, column = np.divmod(np.arange(size**2), size)
    shuffled = lambda: (order * rng.permutation(order)[:, None] + rng.permutation(order)).ravel()  # noqa: E731
    down, right = shuffled(), shuffled()
    digit = rng.permutation(size)[(order * (down[row] % order) + down[row] // order + right[column]) % size]
    block = row // order * order + column // order
    pairs = [
        (a, b)
        for a, b in combinations(range(size**2), 2)
        if row[a] == row[b] or column[a] == column[b] or block[a] == block[b]
    ]
    assert all(digit[a] != digit[b] for a, b in pairs)
    node = np.zeros((size**2, size))
    for cell in rng.permutation(size**2)[:given]:
        node[cell, np.arange(size) != digit[cell]] = -np.inf
    return _field(pairs, node, np.where(np.eye(size) > 0, -np.inf, 0.0))


def dense(num_nodes: int, states: int, seed: int) -> PairwiseField:
    """Normal tables between all pairs of nodes."""
    rng = np.random.default_rng(seed)
    pairs = list(combinations(range(num_nodes), 2))
    return _field(pairs, rng.normal(size=(num_nodes, states)), rng.normal(size=(len(pairs), states, states)))


def regular_code(num_bits: int, column: int, row: int, deviation: float, seed: int) -> FactorField:
    """Gallager's code: each bit in `column` checks, each check of `row` bits; a word is read with normal noise."""
    rng = np.random.default_rng(seed)
    scopes = [rng.permutation(num_bits).reshape(-1, row) for _ in range(column)]
    ratio = (1 + deviation * rng.normal(size=num_bits)) / deviation**2
    node = torch.tensor(np.stack([ratio, -ratio], 1))
    return FactorField(node, [ParityFactors(torch.tensor(np.concatenate(scopes)))])


def frequencies(num_nodes: int, count: int, channels: int, seed: int) -> PairwiseField:
    """Frequency assignment: near channels of near transmitters disturb each other, by weights from 1 to 1000."""
    rng = np.random.default_rng(seed)
    place = rng.random((num_nodes, 2))
    every = np.array(list(combinations(range(num_nodes), 2)))
    distance = np.linalg.norm(place[every[:, 0]] - place[every[:, 1]], axis=1)
    pairs = every[distance.argsort()[:count]]
    channel = np.arange(channels)
    apart = np.abs(channel[:, None] - channel)
    gap, weight = rng.integers(1, 5, size=count), 10.0 ** rng.integers(4, size=count)
    return _field(pairs, np.zeros((num_nodes, channels)), -weight[:, None, None] * (apart < gap[:, None, None]))


def assignment(size: int, seed: int) -> PairwiseField:
    """Quadratic assignment: each facility has a place of its own; flow times distance costs something."""
    rng = np.random.default_rng(seed)
    pairs = list(combinations(range(size), 2))
    place = rng.random((size, 2))
    distance = np.linalg.norm(place[:, None] - place, axis=2)
    flow = rng.integers(6, size=len(pairs)).astype(float)
    tables = np.where(np.eye(size) > 0, -np.inf, -flow[:, None, None] * distance)
    return _field(pairs, np.zeros((size, size)), tables)


def many_states(num_nodes: int, count: int, most: int, seed: int) -> FactorField:
    """Random pairs of nodes with 2 to `most` states, as in protein design."""
    rng = np.random.default_rng(seed)
    states = rng.integers(2, most + 1, size=num_nodes).tolist()
    pairs = _random_pairs(rng, num_nodes, count)
    return PairwiseField.ragged(
        torch.tensor(np.array(pairs).T),
        [torch.tensor(rng.normal(size=each)) for each in states],
        [torch.tensor(2 * rng.normal(size=(states[a], states[b]))) for a, b in pairs],
    )


def unseen_models() -> Iterator[tuple[str, PairwiseField | FactorField]]:
    """Name and field."""
    yield "new: stereo 40x50, 12 disparities", stereo(40, 50, 12, 7)
    yield "new: random-field Ising 14x14x14", random_field_ising(14, 2.0, 7)
    yield "new: cut of 200 nodes, 800 edges", max_cut(200, 800, 7, weighted=False)
    yield "new: cut of 80 nodes, 1600 weighted edges", max_cut(80, 1600, 7, weighted=True)
    yield "new: 20 queens with scores", queens(20, 7)
    yield "new: sudoku of 9x9, 24 given", sudoku(3, 24, 7)
    yield "new: sudoku of 16x16, 90 given", sudoku(4, 90, 7)
    yield "new: all pairs of 40 nodes, 4 states", dense(40, 4, 7)
    yield "new: regular code of 240 bits, checks of 6", regular_code(240, 3, 6, 0.75, 7)
    yield "new: 80 transmitters, 20 channels", frequencies(80, 600, 20, 7)
    yield "new: assignment of 14 facilities", assignment(14, 7)
    yield "new: 60 nodes of 2 to 40 states, 200 edges", many_states(60, 200, 40, 7)
