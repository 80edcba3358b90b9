"""Fields of the authors' published code in plain torch: potentials, their messages, and training by the maximin game.

Every direction of an edge has a table of its own. Incoming messages count half. What the code calls sum-product adds
logs where sum-product adds probabilities; both are here.
"""

from collections.abc import Callable, Sequence

import torch
from authors_code.graphs import Part, Scores
from torch import Tensor, nn
from torch.nn import functional as F

Reduction = Callable[[Tensor, int], Tensor]
Logits = tuple[Tensor, Tensor]  # of validation and test graphs
WEIGHT = 0.5  # of incoming messages
POWER = 0.1  # of the normaliser
SHARPNESS = (100.0, 10.0, 2.0, 1.0, 0.5, 0.2, 0.1)
DECODING, TRAINING = 5, 2  # sweeps
MESSAGES: dict[str, Reduction] = {"sums of logs": torch.sum, "sum-product": torch.logsumexp}


def pseudomarginal_potentials(node: Tensor, edge: Tensor, sharpness: float) -> tuple[Tensor, Tensor]:
    """Potentials of an SPN: tables divided by their own sums to a small power."""
    tables = (sharpness * edge).flatten(1).softmax(-1).view_as(edge) + torch.finfo(edge.dtype).eps
    sums = tables.sum(2, keepdim=True).log() + tables.sum(1, keepdim=True).log()
    return node.log_softmax(-1), tables.log() - POWER * sums


def propagate(
    arcs: Tensor, node: Tensor, edge: Tensor, reduce: Reduction, sweeps: int, weight: float = WEIGHT
) -> tuple[Tensor, Tensor]:
    """Log-beliefs of nodes and arcs, not normalised; the second half of the arcs reverses the first."""
    source, target = arcs
    back = torch.arange(len(source)).roll(len(source) // 2)
    messages = edge.new_zeros(len(source), node.shape[1]).log_softmax(-1)
    for _ in range(sweeps):
        cavity = node[source] + weight * _received(node, messages, target)[source] - messages[back]
        messages = reduce(edge + cavity[:, :, None], 1).log_softmax(-1)
    beliefs = node + weight * _received(node, messages, target)
    ends = (beliefs[source] - messages[back])[:, :, None] + (beliefs[target] - messages)[:, None, :]
    return beliefs, edge + ends


def _received(node: Tensor, messages: Tensor, target: Tensor) -> Tensor:
    return torch.zeros_like(node).index_add(0, target, messages)


def decode(part: Part, node: Tensor, edge: Tensor) -> Tensor:
    """Labels by max-product."""
    return propagate(part.arcs, node, edge, torch.amax, DECODING)[0].argmax(-1)


def joint_scores(val: Part, test: Part, node: Logits, edge: Logits, measure: str) -> Scores:
    """Test accuracy of an SPN with the sharpness that is best on validation graphs; the first of equal ones."""
    best, kept = -1.0, SHARPNESS[0]
    for sharpness in SHARPNESS:
        score = val.scores(decode(val, *pseudomarginal_potentials(node[0], edge[0], sharpness)))[measure]
        if score > best:
            best, kept = score, sharpness
    return test.scores(decode(test, *pseudomarginal_potentials(node[1], edge[1], kept))) | {"sharpness": kept}


def arcs_right(part: Part, edge: Tensor, measure: str) -> float:
    """Share of the arcs whose pair of labels is the most probable one, or of the graphs with edges where all are."""
    source, target = part.y[part.arcs]
    right = (edge.flatten(1).argmax(-1) == source * edge.shape[-1] + target).float()
    if measure == "node":
        return float(right.mean())
    graph = part.batch.topology.graph[part.arcs[0]]
    whole = torch.ones(part.batch.topology.num_graphs).scatter_reduce(0, graph, right, "amin")
    return float(whole[graph.unique()].mean())


def game_loss(part: Part, node: Tensor, edge: Tensor, reduce: Reduction) -> Tensor:
    """The maximin game's loss: what beliefs expect of potentials less potentials of the labels, for nodes and arcs."""
    with torch.no_grad():
        beliefs, pairs = propagate(part.arcs, node, edge, reduce, TRAINING)
        beliefs, pairs = beliefs.softmax(-1), pairs.flatten(1).softmax(-1)
    source, target = part.y[part.arcs]
    flat = edge.flatten(1)
    expected = (beliefs * node).sum(-1).mean() + (pairs * flat).sum(-1).mean()
    return F.nll_loss(node, part.y) + F.nll_loss(flat, source * edge.shape[-1] + target) + expected


def play(
    parts: Sequence[Part],
    networks: tuple[nn.Module, nn.Module],
    reduce: Reduction,
    rate: float,
    epochs: int,
    every: int,
) -> Scores:
    """Test accuracy of a CRF trained by the maximin game, of the evaluation that labels most validation graphs."""
    training, val, test = parts
    optimizer = torch.optim.Adam([weight for own in networks for weight in own.parameters()], lr=rate, fused=True)
    best, found = -1.0, {}
    for epoch in range(1, epochs + 1):
        optimizer.zero_grad()
        game_loss(training, *(own(training.x, training.arcs) for own in networks), reduce).backward()
        optimizer.step()
        if epoch % every == 0:
            with torch.no_grad():
                score = val.scores(decode(val, *(own(val.x, val.arcs) for own in networks)))["graph"]
                if score > best:  # test data decide nothing
                    labels = decode(test, *(own(test.x, test.arcs) for own in networks))
                    best, found = score, test.scores(labels) | {"epoch": epoch}
    return found
