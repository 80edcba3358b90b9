"""Fields for `benchmarks/solver/solver.py`: glasses, Potts fields, colourings, and models of the UAI competitions."""

import gzip
import os
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import torch
from solver_factors import made_factor_models
from solver_unseen import unseen_models

from accord import PairwiseField
from accord.field.factors import FactorField, TableFactors

Field = PairwiseField | FactorField


def grid(*shape: int, torus: bool = False) -> np.ndarray:
    """Edges [2, edges] of a grid of any dimension."""
    places = np.arange(np.prod(shape)).reshape(shape)
    edges = []
    for axis, size in enumerate(shape):
        near = np.take(places, range(size if torus else size - 1), axis)
        far = np.take(np.roll(places, -1, axis), range(size if torus else size - 1), axis)
        edges.append(np.stack([near.ravel(), far.ravel()]))
    return np.concatenate(edges, axis=1)


def ising(edges: np.ndarray, coupling: np.ndarray, num_nodes: int) -> PairwiseField:
    agree = np.array([[1.0, -1.0], [-1.0, 1.0]])
    node = torch.zeros(num_nodes, 2, dtype=torch.float64)
    return PairwiseField(torch.tensor(edges), node, torch.tensor(coupling[:, None, None] * agree))


def glass(edges: np.ndarray, seed: int, signs: bool) -> PairwiseField:
    rng = np.random.default_rng(seed)
    size = edges.shape[1]
    return ising(edges, rng.choice([-1.0, 1.0], size=size) if signs else rng.normal(size=size), edges.max() + 1)


def complete_glass(size: int, seed: int) -> PairwiseField:
    """Sherrington and Kirkpatrick's glass."""
    edges = np.stack(np.triu_indices(size, 1))
    return ising(edges, np.random.default_rng(seed).normal(size=edges.shape[1]) / np.sqrt(size), size)


def potts(size: int, states: int, seed: int, evidence: float) -> PairwiseField:
    rng = np.random.default_rng(seed)
    edges = grid(size, size)
    coupling = rng.normal(size=edges.shape[1])
    node = evidence * rng.normal(size=(size * size, states))
    return PairwiseField(
        torch.tensor(edges), torch.tensor(node), torch.tensor(coupling[:, None, None] * np.eye(states))
    )


def colouring(num_nodes: int, degree: float, seed: int, colours: int = 3) -> PairwiseField:
    """A random graph that has a colouring."""
    rng = np.random.default_rng(seed)
    planted = rng.integers(colours, size=num_nodes)
    edges: set[tuple[int, int]] = set()
    while len(edges) < degree * num_nodes / 2:
        a, b = rng.integers(num_nodes, size=2).tolist()
        if planted[a] != planted[b]:
            edges.add((min(a, b), max(a, b)))
    differ = np.where(np.eye(colours) > 0, -np.inf, 0.0)
    node = torch.zeros(num_nodes, colours, dtype=torch.float64)
    return PairwiseField(torch.tensor(sorted(edges)).t(), node, torch.tensor(differ).repeat(len(edges), 1, 1))


def read_uai(path: Path) -> Field:
    """A model of the UAI format; a PairwiseField if no factor has more than two variables."""
    words = iter(gzip.open(path, "rt").read().split())
    next(words)
    counts = [int(next(words)) for _ in range(int(next(words)))]
    scopes = [[int(next(words)) for _ in range(int(next(words)))] for _ in range(int(next(words)))]
    node = np.where(np.arange(max(counts)) < np.array(counts)[:, None], 0.0, -np.inf)
    tables: dict[tuple[int, ...], np.ndarray] = {}  # by the variables in order
    for scope in scopes:
        with np.errstate(divide="ignore"):
            values = np.log([float(next(words)) for _ in range(int(next(words)))])
        if len(scope) == 1:
            node[scope[0], : len(values)] += values
            continue
        values = values.reshape([counts[v] for v in scope]).transpose(np.argsort(scope))
        key = tuple(sorted(scope))
        tables[key] = tables.get(key, 0.0) + values
    if max(map(len, tables)) > 2:
        return _factors(node, counts, tables)
    pairs, states = sorted(tables), max(counts)
    edge = np.zeros((len(pairs), states, states))
    for place, pair in enumerate(pairs):
        table = tables[pair]
        edge[place, : table.shape[0], : table.shape[1]] = table
    return PairwiseField(torch.tensor(pairs).t(), torch.tensor(node), torch.tensor(edge))


def _factors(node: np.ndarray, counts: list[int], tables: dict[tuple[int, ...], np.ndarray]) -> FactorField:
    shapes: dict[tuple[int, ...], list[tuple[int, ...]]] = {}
    for scope, table in tables.items():
        shapes.setdefault(table.shape, []).append(scope)
    groups = [
        TableFactors(torch.tensor(scopes), torch.tensor(np.stack([tables[scope] for scope in scopes])))
        for scopes in shapes.values()
    ]
    return FactorField(torch.tensor(node), groups, num_states=torch.tensor(counts))


def models() -> Iterator[tuple[str, Field, float | None]]:
    """Name, field, and the score of the competition's labelling where there is one."""
    for seed in range(2):
        yield f"glass 32x32, signs, {seed}", glass(grid(32, 32), seed, signs=True), None
        yield f"glass 32x32, normal, {seed}", glass(grid(32, 32), seed, signs=False), None
    yield "glass 12x12 torus, normal", glass(grid(12, 12, torus=True), 0, signs=False), None
    yield "glass 10x10x10, signs", glass(grid(10, 10, 10), 0, signs=True), None
    yield "glass 10x10x10, normal", glass(grid(10, 10, 10), 0, signs=False), None
    yield "SK 60", complete_glass(60, 0), None
    yield "SK 200", complete_glass(200, 0), None
    yield "Potts 30x30, 5 states, evidence", potts(30, 5, 0, evidence=1.0), None
    yield "Potts 30x30, 5 states", potts(30, 5, 0, evidence=0.0), None
    yield "Potts 20x20, 20 states, evidence", potts(20, 20, 0, evidence=0.5), None
    for made, factors in made_factor_models():
        yield made, factors, None
    folder = Path(os.environ.get("ACCORD_DATA", "data")) / "uai"
    for path in sorted(folder.glob("*.uai.gz")):
        field = read_uai(path)
        name = path.name.removesuffix(".uai.gz")
        given = folder / f"{name}.MAP"
        known = None
        if given.exists():
            labels = [int(word) for word in given.read_text().split()[1:]]
            known = float(field.score(torch.tensor(labels[-field.num_nodes :])))
        yield f"UAI {name}", field, known
    for new, unseen in unseen_models():
        yield new, unseen, None
