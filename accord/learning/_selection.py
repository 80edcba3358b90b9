"""How strongly the edge network speaks: chosen on validation data, all candidates solved side by side.

Two networks trained apart are not calibrated to each other. Sharpness, the power of the normaliser and the weight of
the node evidence say how their predictions combine; none of them needs training again.
"""

from dataclasses import dataclass
from itertools import product

import torch
from torch import Tensor

from accord.errors import OptionError
from accord.evaluation import metric_for, node_accuracy
from accord.field import Combination, PairwiseField, Pseudomarginals
from accord.graphs import Topology
from accord.inference import PropagationOptions, propagate

CHUNK_BYTES = 2**29  # of edge tables solved at once; the sweeps hold a few times as much


@dataclass(frozen=True, kw_only=True)
class CombinationGrid:
    """Candidates: every combination of these values. Sharpness 0 is the node network alone."""

    sharpness: tuple[float, ...] = (1.0, 0.5, 2.0, 0.2, 5.0, 0.1, 10.0, 0.0)
    power: tuple[float, ...] = (1.0, 0.5, 0.1, 0.0)
    node_weight: tuple[float, ...] = (1.0, 0.5, 2.0)
    normaliser: str = "own"

    def candidates(self) -> list[tuple[float, float, float]]:
        """Triples (sharpness, power, node weight); earlier ones win ties."""
        listed = list(product(self.sharpness, self.power, self.node_weight))
        if not listed:
            raise OptionError("CombinationGrid: one of the lists is empty, so there is no candidate.")
        return listed


@dataclass(frozen=True, eq=False)
class Chosen:
    """The winning combination of each replica, and its validation score."""

    sharpness: Tensor  # [R]
    power: Tensor  # [R]
    node_weight: Tensor  # [R]
    normaliser: str
    score: Tensor  # [R]

    def field(self, node: Tensor, edge: Tensor, topology: Topology) -> PairwiseField:
        """Logits [R, nodes, states] and [R, edges, states, states] -> the field they stand for."""
        return combine(node, edge, topology, self.sharpness, self.power, self.node_weight, self.normaliser)


def combine(
    node: Tensor,
    edge: Tensor,
    topology: Topology,
    sharpness: Tensor,
    power: Tensor,
    node_weight: Tensor,
    normaliser: str,
) -> PairwiseField:
    """Field for each replica from logits and one triple of numbers a replica."""
    marginals = Pseudomarginals.from_logits(node, edge, sharpness)
    combination = Combination(normaliser=normaliser, power=power, node_weight=node_weight)
    return combination.field(marginals, topology.edge_index, topology.graph, topology.num_graphs)


def choose_combination(
    node: Tensor,
    edge: Tensor,
    targets: Tensor,
    topology: Topology,
    level: str,
    grid: CombinationGrid,
    options: PropagationOptions,
) -> Chosen:
    """The candidate with the best validation score for each replica; node accuracy breaks ties, then the order.

    Args:
        node: [R, nodes, states], logits on validation graphs.
        edge: [R, edges, states, states], logits.
        targets: [R, nodes], their labels.
        topology: the validation graphs.
        level: "node" or "graph".
        grid: the candidates.
        options: how each is solved.
    """
    metric = metric_for(level)
    candidates = torch.tensor(grid.candidates(), dtype=node.dtype, device=node.device)
    size = max(1, CHUNK_BYTES // max(1, edge.numel() * edge.element_size()))
    scores, ties = [], []
    for chunk in candidates.split(size):
        sharpness, power, weight = (column[:, None] for column in chunk.t())
        field = combine(node, edge, topology, sharpness, power, weight, grid.normaliser)
        labels = solve(field, options).reshape(len(chunk), *node.shape[:2])
        scores.append(metric(labels, targets, topology))
        ties.append(node_accuracy(labels, targets))
    score, tie = torch.cat(scores).double(), torch.cat(ties).double()
    # Scores move in steps of one graph or node, far above this weight.
    winner = (score + 1e-7 * tie).argmax(0)
    picked = candidates[winner]
    best = score.gather(0, winner[None])[0]
    return Chosen(picked[:, 0], picked[:, 1], picked[:, 2], grid.normaliser, best)


def solve(field: PairwiseField, options: PropagationOptions) -> Tensor:
    """Joint labels [*replicas, nodes]."""
    beliefs = propagate(
        field,
        semiring="max",
        damping=options.damping,
        edge_appearance=options.edge_appearance,
        max_sweeps=options.max_sweeps,
        tolerance=options.tolerance,
    )
    return beliefs.decode()
