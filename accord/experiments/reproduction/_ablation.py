"""The ablation: how trained networks become a field and how it is solved, every choice crossed with every other.

Normalisers: the node network's marginals (Eq. 5), the tables' own sums to several powers, and tables that Sinkhorn
scaling first makes consistent with the node network's marginals. Crossed with sharpness and semiring; and each
normaliser, at the sharpness that is best on validation data, solved exactly. Networks are trained once.
"""

from collections.abc import Callable
from itertools import product
from typing import Any

import torch
from torch import Tensor

from accord.datasets import Benchmark
from accord.errors import TooLargeError
from accord.evaluation import graph_accuracy, node_accuracy
from accord.field import Combination, PairwiseField, Pseudomarginals, own_sums
from accord.field import node_marginals as at_ends
from accord.graphs import GraphBatch, Topology
from accord.inference import Semiring, eliminate_beliefs, propagate
from accord.learning import Replicas
from accord.methods import FieldModel, ProxyModel

NORMALISERS = ("node", "own^1", "own^0.5", "own^0.1", "own^0", "sinkhorn")
SHARPNESS = (0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0)
SEMIRINGS: tuple[Semiring, ...] = ("max", "sum")
SWEEPS, DAMPING = 50, 0.5  # enough for the small graphs of the citation sets to converge
SINKHORN_STEPS = 50
# By measure ("val graph", "val node", "test graph", "test node") one value for each sharpness. Under "exact": the
# sharpness that is best on validation graphs, and these four measures of exact inference with it.
Row = dict[str, list[float]]
Table = dict[str, Row]  # by normaliser and semiring, as "own^0.1 max"


def ablate(
    model: FieldModel, bench: Benchmark, replicas: Replicas, test: GraphBatch, check: Callable[[], None]
) -> list[Table]:
    """For each replica, what every combination gives on validation and test graphs; `check` is called now and then."""
    assert isinstance(model, ProxyModel)
    val = GraphBatch.collate(bench.val).to(model.device, torch.float32)
    parts = [("val", val, *model.logits(val)), ("test", test, *model.logits(test))]
    tables: list[Table] = [{} for _ in range(replicas.count)]
    for normaliser, semiring in product(NORMALISERS, SEMIRINGS):
        loopy: dict[str, list[Tensor]] = {}
        for sharpness, (part, batch, node, edge) in product(SHARPNESS, parts):
            check()
            field = make_field(node, edge, batch.topology, normaliser, sharpness)
            for name, values in score(field, batch, replicas, semiring, part).items():
                loopy.setdefault(name, []).append(values)
        for replica, table in enumerate(tables):
            row: Row = {name: [rounded(values[replica]) for values in found] for name, found in loopy.items()}
            table[f"{normaliser} {semiring}"] = row
            best = best_place(row)
            try:
                row["exact"] = [SHARPNESS[best]]
                for part, batch, node, edge in parts:
                    check()
                    one = make_field(node[[replica]], edge[[replica]], batch.topology, normaliser, SHARPNESS[best])
                    found = score(one, batch, replicas.subset([replica]), semiring, part, exact=True)
                    row["exact"] += [rounded(values[0]) for values in found.values()]
            except TooLargeError:
                del row["exact"]
    return tables


def make_field(node: Tensor, edge: Tensor, topology: Topology, normaliser: str, sharpness: float) -> PairwiseField:
    """The field of one combination of the networks' scores."""
    marginals = Pseudomarginals.from_logits(node, edge, sharpness)
    if normaliser == "sinkhorn":
        marginals = consistent(marginals, topology.edge_index)
    name, _, power = normaliser.partition("^")
    by = own_sums if name == "own" else at_ends
    combination = Combination(normaliser=by, power=float(power or 1.0))
    return combination.field(marginals, topology.edge_index, topology.graph, topology.num_graphs)


def consistent(marginals: Pseudomarginals, edge_index: Tensor, steps: int = SINKHORN_STEPS) -> Pseudomarginals:
    """Tables scaled by rows and columns until their sums are the node network's marginals (Sinkhorn)."""
    at_source, at_target = at_ends(marginals, edge_index)
    tables = marginals.edge
    for _ in range(steps):
        tables = tables + (at_source - tables.logsumexp(-1))[..., :, None]
        tables = tables + (at_target - tables.logsumexp(-2))[..., None, :]
    return Pseudomarginals(marginals.node, tables)


def score(
    field: PairwiseField, batch: GraphBatch, replicas: Replicas, semiring: Semiring, part: str, exact: bool = False
) -> dict[str, Tensor]:
    """Accuracy [R] of graphs by joint labels, and of nodes by the same labels ("max") or by marginals ("sum")."""
    assert batch.y is not None
    truth = replicas.targets(batch.y)
    if exact:
        beliefs: Any = eliminate_beliefs(field, semiring=semiring)
    else:
        damping = 0.0 if field.peeling.is_forest else DAMPING
        beliefs = propagate(field, semiring=semiring, damping=damping, max_sweeps=SWEEPS)
    labels = beliefs.decode() if semiring == "max" else beliefs.node.argmax(-1)
    return {
        f"{part} graph": graph_accuracy(labels, truth, batch.topology),
        f"{part} node": node_accuracy(labels, truth),
    }


def best_place(row: Row) -> int:
    """The place in SHARPNESS with the best accuracy of validation graphs; nodes break ties, then the order."""
    return max(range(len(SHARPNESS)), key=lambda place: (row["val graph"][place], row["val node"][place]))


def rounded(value: Tensor) -> float:
    """Enough digits for one node of the test graphs."""
    return round(float(value), 5)
