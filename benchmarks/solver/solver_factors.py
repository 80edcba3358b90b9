"""Made fields with factors of three variables and more, for `benchmarks/solver/solver.py`."""

from collections.abc import Iterator

import numpy as np
import torch

from accord.field.factors import FactorField, FactorGroup, ParityFactors, TableFactors


def _field(node: np.ndarray, *groups: FactorGroup) -> FactorField:
    return FactorField(torch.tensor(node), list(groups))


def _scopes(rng: np.random.Generator, num_nodes: int, count: int, order: int) -> torch.Tensor:
    return torch.tensor(np.stack([rng.permutation(num_nodes)[:order] for _ in range(count)]))


def random_tables(num_nodes: int, count: int, states: int, seed: int, evidence: float) -> FactorField:
    """Normal tables over random triples."""
    rng = np.random.default_rng(seed)
    node = evidence * rng.normal(size=(num_nodes, states))
    scope = _scopes(rng, num_nodes, count, 3)
    return _field(node, TableFactors(scope, torch.tensor(rng.normal(size=(count, states, states, states)))))


def plaquette_glass(size: int, seed: int) -> FactorField:
    """Products of three spins with normal couplings, on the triangles of a triangular torus."""
    rng = np.random.default_rng(seed)
    row, column = np.divmod(np.arange(size * size), size)
    place = lambda down, right: (row + down) % size * size + (column + right) % size  # noqa: E731
    scope = np.concatenate(
        [
            np.stack([place(0, 0), place(1, 0), place(0, 1)], axis=1),
            np.stack([place(1, 0), place(0, 1), place(1, 1)], axis=1),
        ]
    )
    spin = np.array([1.0, -1.0])
    product = spin[:, None, None] * spin[:, None] * spin
    tables = rng.normal(size=(len(scope), 1, 1, 1)) * product
    return _field(np.zeros((size * size, 2)), TableFactors(torch.tensor(scope), torch.tensor(tables)))


def clauses(num_nodes: int, ratio: float, seed: int, hard: bool) -> FactorField:
    """Random clauses of three literals: all satisfied by a planted labelling, or each with a weight of 1 to 4."""
    rng = np.random.default_rng(seed)
    planted = rng.integers(2, size=num_nodes)
    scopes, tables = [], []
    while len(scopes) < ratio * num_nodes:
        scope, broken = rng.permutation(num_nodes)[:3], rng.integers(2, size=3)
        if hard and (broken == planted[scope]).all():
            continue
        table = np.zeros((2, 2, 2))
        table[tuple(broken)] = -np.inf if hard else -float(rng.integers(1, 5))
        scopes.append(scope)
        tables.append(table)
    return _field(
        np.zeros((num_nodes, 2)), TableFactors(torch.tensor(np.stack(scopes)), torch.tensor(np.stack(tables)))
    )


def parity_code(num_nodes: int, count: int, order: int, flips: float, seed: int) -> FactorField:
    """Decoding of a random code: some bits of a word were flipped, and the most likely word is wanted."""
    rng = np.random.default_rng(seed)
    sign = np.where(rng.random(num_nodes) < flips, -1.0, 1.0) * np.log((1 - flips) / flips) / 2
    return _field(np.stack([sign, -sign], axis=1), ParityFactors(_scopes(rng, num_nodes, count, order)))


def triangles(num_nodes: int, count: int, states: int, seed: int) -> FactorField:
    """Random triples whose pairs, and all three, gain or lose when they agree."""
    rng = np.random.default_rng(seed)
    scope = _scopes(rng, num_nodes, count, 3)
    pairs = torch.cat([scope[:, [0, 1]], scope[:, [1, 2]], scope[:, [0, 2]]])
    agree = torch.tensor(rng.normal(size=(len(pairs), 1, 1)) * np.eye(states))
    tables = np.zeros((count, states, states, states))
    each = np.arange(states)
    tables[:, each, each, each] = 2 * rng.normal(size=(count, states))
    node = np.zeros((num_nodes, states))
    return _field(node, TableFactors(pairs, agree), TableFactors(scope, torch.tensor(tables)))


def pedigree(founders: int, children: int, loci: int, seed: int, alleles: int = 4, typed: float = 0.4) -> FactorField:
    """Linkage analysis: alleles are inherited along a random family tree, and some people's are known without order."""
    rng = np.random.default_rng(seed)
    people = founders + children
    allele = np.arange(people * loci * 2).reshape(people, loci, 2)
    switch = allele.size + np.arange(children * loci * 2).reshape(children, loci, 2)  # which allele of a parent
    node = np.full((allele.size + switch.size, alleles), 0.0)
    node[: founders * loci * 2] = np.log(rng.dirichlet(np.ones(alleles), size=founders * loci * 2))
    node[allele.size :, 2:] = -np.inf
    states = torch.tensor([alleles] * allele.size + [2] * switch.size)
    label = rng.integers(alleles, size=allele.size)
    copied, linked = [], []
    for child in range(children):
        parents = rng.permutation(founders + child)[:2]
        for locus in range(loci):
            for side, parent in enumerate(parents):
                own, source = allele[founders + child, locus, side], allele[parent, locus]
                copied.append([switch[child, locus, side], *source, own])
                label[own] = label[source[rng.integers(2)]]
                if locus:
                    linked.append([switch[child, locus - 1, side], switch[child, locus, side]])
    one, two = np.indices((alleles, alleles))
    copy = np.full((2, alleles, alleles, alleles), -np.inf)
    copy[0, one, two, one] = copy[1, one, two, two] = 0.0
    crossing = 0.1 + 0.2 * rng.random((len(linked), 1, 1))
    link = np.log(np.where(np.eye(2) > 0, 1 - crossing, crossing))
    known = allele[rng.random(people) < typed].reshape(-1, 2)
    seen = np.full((len(known), alleles, alleles), -np.inf)
    each = np.arange(len(known))
    seen[each, label[known[:, 0]], label[known[:, 1]]] = seen[each, label[known[:, 1]], label[known[:, 0]]] = 0.0
    groups = [
        TableFactors(torch.tensor(copied), torch.tensor(copy[None])),
        TableFactors(torch.tensor(linked), torch.tensor(link)),
        TableFactors(torch.tensor(known), torch.tensor(seen)),
    ]
    return FactorField(torch.tensor(node), groups, num_states=states)


def made_factor_models() -> Iterator[tuple[str, FactorField]]:
    """Name and field."""
    yield "factors: 50 nodes, 100 triples, 2 states", random_tables(50, 100, 2, 0, evidence=0.0)
    yield "factors: 100 nodes, 150 triples, 3 states", random_tables(100, 150, 3, 0, evidence=0.5)
    yield "factors: 2000 nodes, 3000 triples, 2 states", random_tables(2000, 3000, 2, 0, evidence=0.3)
    yield "factors: glass of 10x10, three spins", plaquette_glass(10, 0)
    yield "factors: glass of 24x24, three spins", plaquette_glass(24, 0)
    yield "factors: 500 nodes, 2050 clauses", clauses(500, 4.1, 0, hard=True)
    yield "factors: 300 nodes, 1500 weighted clauses", clauses(300, 5.0, 0, hard=False)
    yield "factors: code of 300 bits, 200 checks of 5", parity_code(300, 200, 5, 0.09, 1)
    yield "factors: code of 1000 bits, 500 checks of 6", parity_code(1000, 500, 6, 0.03, 0)
    yield "factors: 120 nodes, 150 triangles, 3 states", triangles(120, 150, 3, 0)
    yield "factors: 500 nodes, 600 triangles, 3 states", triangles(500, 600, 3, 0)
    yield "factors: pedigree of 20, 4 loci", pedigree(6, 14, 4, 0, typed=0.5)
    yield "factors: pedigree of 50, 8 loci", pedigree(10, 40, 8, 0)
