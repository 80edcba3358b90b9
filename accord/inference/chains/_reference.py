"""Forward and backward recursions in plain torch: differentiable, on any device, in float64.

behind_t(j) = node_t(j) + reduce over i of [ behind_t-1(i) + edge_t-1(i, j) ]
ahead_t(i) = reduce over j of [ edge_t(i, j) + node_t+1(j) + ahead_t+1(j) ]

Beyond the end of a chain, `behind` stays as it was and `ahead` is 0.
"""

import torch
from torch import Tensor

from accord.inference._semiring import REDUCE, Reduction
from accord.inference.chains._problem import ChainProblem


def messages_behind(problem: ChainProblem, reduce: Reduction) -> Tensor:
    """What each position's state scores together with all positions before it [R, chains, length, states]."""
    node, edge = problem.wide
    found = [node[:, :, 0]]
    for step in range(1, node.shape[2]):
        sent = reduce(found[-1][..., :, None] + edge[:, :, step - 1], -2) + node[:, :, step]
        found.append(sent if problem.present is None else torch.where(_there(problem, step), sent, found[-1]))
    return torch.stack(found, 2)


def messages_ahead(problem: ChainProblem, reduce: Reduction) -> Tensor:
    """What all positions after a position score, given its state [R, chains, length, states]."""
    node, edge = problem.wide
    found = [torch.zeros_like(node[:, :, 0])]
    for step in range(node.shape[2] - 1, 0, -1):
        sent = reduce(edge[:, :, step - 1] + (node[:, :, step] + found[-1])[..., None, :], -1)
        found.append(sent if problem.present is None else torch.where(_there(problem, step), sent, 0.0))
    return torch.stack(found[::-1], 2)


def log_partition(behind: Tensor, reduce: Reduction) -> Tensor:
    """Log Z, or the best score, of each chain [R, chains]."""
    return reduce(behind[:, :, -1], -1)


def beliefs(problem: ChainProblem, semiring: str) -> Tensor:
    """Beliefs at nodes [R, chains, length, states]; -inf beyond the end of a chain."""
    reduce = REDUCE[semiring]
    total = messages_behind(problem, reduce) + messages_ahead(problem, reduce)
    total = total - reduce(total, -1, keepdim=True)
    return total if problem.present is None else total.masked_fill(~problem.present[..., None], -torch.inf)


def edge_beliefs(problem: ChainProblem, semiring: str) -> Tensor:
    """Beliefs of neighbouring positions [R, chains, length - 1, states, states]."""
    reduce = REDUCE[semiring]
    node, _ = problem.wide
    behind, ahead = messages_behind(problem, reduce), node + messages_ahead(problem, reduce)
    return join(problem, behind, ahead, semiring)


def join(problem: ChainProblem, behind: Tensor, ahead: Tensor, semiring: str) -> Tensor:
    """Beliefs of neighbouring positions from both messages, where `ahead` includes the position's own potential."""
    edge = problem.edge if behind.dtype == problem.edge.dtype else problem.wide[1]
    total = behind[:, :, :-1, :, None] + edge + ahead[:, :, 1:, None, :]
    if problem.present is not None:
        total = total.masked_fill(~problem.present[:, 1:, None, None], 0.0)
    total = total - REDUCE[semiring](total, (-2, -1), keepdim=True)
    return total if problem.present is None else total.masked_fill(~problem.present[:, 1:, None, None], -torch.inf)


def best_labels(problem: ChainProblem) -> Tensor:
    """An optimum [R, chains, length], from the last position to the first; -1 beyond the end of a chain."""
    _, edge = problem.wide
    behind = messages_behind(problem, REDUCE["max"])
    labels = [behind[:, :, -1].argmax(-1)]
    for step in range(behind.shape[2] - 2, -1, -1):
        column = labels[-1][..., None, None].expand(*behind.shape[:2], behind.shape[3], 1)
        chosen = (behind[:, :, step] + edge[:, :, step].gather(-1, column)[..., 0]).argmax(-1)
        if problem.present is not None:
            chosen = torch.where(problem.present[:, step + 1], chosen, labels[-1])
        labels.append(chosen)
    found = torch.stack(labels[::-1], 2)
    return found if problem.present is None else found.masked_fill(~problem.present, -1)


def _there(problem: ChainProblem, step: int) -> Tensor:
    assert problem.present is not None
    return problem.present[:, step, None]
