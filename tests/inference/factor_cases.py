"""Small random fields with factors over one to four variables, and their optima by enumeration."""

from itertools import product

import numpy as np
import torch

from accord.field.factors import (
    AndFactors,
    AtMostOneFactors,
    FactorField,
    OrFactors,
    ParityFactors,
    PottsFactors,
    TableFactors,
)

RULES = {
    "or": (OrFactors, lambda x: x[0] == any(x[1:])),
    "and": (AndFactors, lambda x: x[0] == all(x[1:])),
    "at most one": (AtMostOneFactors, lambda x: sum(x) <= 1),
    "even": (ParityFactors, lambda x: sum(x) % 2 == 0),
}
AGREEMENT = 1.25  # weight of a Potts factor


class _Graph:
    """Variables and factors of one graph, as numpy arrays with a leading replica axis."""

    def __init__(self, rng, replicas, forbidden, rules):
        size = rng.integers(1, 7)
        self.counts = rng.choice([1, 2, 2, 2, 3, 4], size=size)
        self.node = [rng.normal(size=(replicas, count)) * rng.choice([0, 1, 3]) for count in self.counts]
        self.tables, self.rules, self.cliques = [], [], []
        planted = [rng.integers(count) for count in self.counts]
        bar = forbidden and rng.random() < 0.6
        plant = rng.random() < 0.7  # else the graph may have no allowed labelling
        for _ in range(rng.integers(0, 8)):
            scope = rng.permutation(size)[: rng.integers(1, 5)]
            shape = (replicas, *self.counts[scope])
            table = np.round(rng.normal(size=shape) * rng.choice([0.5, 2]), rng.choice([0, 6])) + rng.choice(
                [0.0, -9.0]
            )
            if bar:
                table[rng.random(shape) < rng.choice([0.2, 0.5])] = -np.inf
                if plant:
                    table[(slice(None), *(planted[v] for v in scope))] = 0.0
            self.tables.append((scope, table))
        binary = np.nonzero(self.counts == 2)[0]
        if rules and len(binary) > 1:
            for _ in range(rng.integers(0, 3)):
                scope = rng.permutation(binary)[: rng.integers(2, len(binary) + 1)]
                self.rules.append((list(RULES)[rng.integers(len(RULES))], scope))
            self.cliques = [rng.permutation(binary)] if rng.random() < 0.3 else []

    def best(self, replica):
        """The highest score of all labellings."""
        highest = -np.inf
        for x in product(*map(range, self.counts)):
            score = sum(each[replica, state] for each, state in zip(self.node, x, strict=True))
            score += sum(table[(replica, *(x[v] for v in scope))] for scope, table in self.tables)
            score += sum(AGREEMENT for scope in self.cliques if len({x[v] for v in scope}) == 1)
            if score > highest and all(RULES[name][1]([x[v] for v in scope]) for name, scope in self.rules):
                highest = score
        return highest


def factor_fields(num_graphs, seed, forbidden=True, rules=True, replicas=1, feasible=False):
    """A batch of small fields and their optima [replicas, graphs]; -inf where there is no allowed labelling.

    Factors that hold the same table share it, and some have the same variables.
    """
    rng = np.random.default_rng(seed)
    graphs, best = [], []
    while len(graphs) < num_graphs:
        graph = _Graph(rng, replicas, forbidden, rules)
        optimum = [graph.best(replica) for replica in range(replicas)]
        if not feasible or np.isfinite(optimum).all():
            graphs.append(graph), best.append(optimum)
    return _joined(graphs, replicas), np.array(best).T


def _joined(graphs, replicas):
    counts = np.concatenate([graph.counts for graph in graphs])
    starts = np.concatenate([[0], np.cumsum([len(graph.counts) for graph in graphs])])
    node = np.full((replicas, len(counts), counts.max()), -np.inf)
    tables, rules, cliques = {}, {}, {}
    for start, graph in zip(starts, graphs, strict=False):
        for place, values in enumerate(graph.node):
            node[:, start + place, : values.shape[1]] = values
        for scope, table in graph.tables:
            tables.setdefault(table.shape, []).append((scope + start, table))
        for name, scope in graph.rules:
            rules.setdefault((name, len(scope)), []).append(scope + start)
        for scope in graph.cliques:
            cliques.setdefault(len(scope), []).append(scope + start)
    groups = [_tables(list(members), replicas) for members in tables.values()]
    groups += [RULES[name][0](torch.tensor(np.stack(scopes))) for (name, _), scopes in rules.items()]
    groups += [PottsFactors(torch.tensor(np.stack(scopes)), AGREEMENT, 2) for scopes in cliques.values()]
    if replicas == 1:
        node = node[0]
    graph = torch.arange(len(graphs)).repeat_interleave(torch.tensor(np.diff(starts)))
    return FactorField(torch.tensor(node), groups, graph, torch.tensor(counts), len(graphs))


def _tables(members, replicas):
    scope = torch.tensor(np.stack([scope for scope, _ in members]))
    every = np.stack([table for _, table in members], axis=1)  # [replicas, factors, ...]
    flat = np.moveaxis(every, 1, 0).reshape(len(members), -1)
    _, first, table = np.unique(flat, axis=0, return_index=True, return_inverse=True)
    tables = torch.tensor(every[:, first])
    return TableFactors(scope, tables if replicas > 1 else tables[0], torch.tensor(table.reshape(-1)))
