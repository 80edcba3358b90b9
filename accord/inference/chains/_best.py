"""The k best labellings of each chain, exactly."""

import torch
from torch import Tensor

from accord.errors import InputTypeError, OptionError
from accord.field import ChainField
from accord.graphs._checks import check_room
from accord.inference.chains._problem import ChainProblem, as_problem


def k_best(field: ChainField, k: int) -> tuple[Tensor, Tensor]:
    """The k labellings of each chain with the highest scores, best first.

    Every state of every position keeps the k best labellings that lead to it, so the result is exact (the parallel
    list Viterbi algorithm of Seshadri and Sundberg 1994). Time and memory grow with chains x length x states^2 x k.
    Differences of scores are computed in float64.

    Args:
        field: the chains.
        k: how many labellings of each chain.

    Returns:
        labels [*replicas, chains, k, length], -1 beyond the end of a chain, and scores [*replicas, chains, k] with
        gradients to the field. Where a chain has fewer labellings without forbidden states or pairs, the remaining
        labels are -1 and their scores -inf.
    """
    where = "k_best"
    if not isinstance(field, ChainField):
        raise InputTypeError(f"{where}: got a {type(field).__name__}, not a ChainField. Build one first.")
    if isinstance(k, bool) or not isinstance(k, int):
        raise InputTypeError(f"{where}: k is a {type(k).__name__}, not an int.")
    if k < 1:
        raise OptionError(f"{where}: k is {k}, but must be 1 or more.")
    field.check_changes(where)
    problem = as_problem(field)
    rows = problem.node.shape[0] * field.num_chains * field.num_states
    needed = 8 * rows * k * (field.length + 2 * field.num_states)
    check_room(where, f"the {k} best labellings of {field.num_chains} chains", needed, field.node.device)
    with torch.no_grad():
        labels = _labels(problem, k)
    labels = labels.reshape(*field.replicas, field.num_chains, k, field.length)
    found = (labels >= 0).any(-1)
    # Scored one rank at a time, with the conventions of the field, and with its gradient.
    ranked = torch.movedim(labels.clamp_min(0), -2, 0)
    scores = torch.movedim(field.score(ranked), 0, -1)
    return labels, scores.masked_fill(~found, -torch.inf)


def _labels(problem: ChainProblem, k: int) -> Tensor:
    """Labels [R, chains, k, length]; -1 where there is none."""
    node, edge = problem.wide
    replicas, chains, length, states = node.shape
    best = node.new_full((replicas, chains, states, k), -torch.inf)
    best[..., 0] = node[:, :, 0]
    origins: list[Tensor] = []  # [R, chains, states, k]: state x k + rank at the position before
    for step in range(1, length):
        # Every pair (state before, rank) is a candidate for every state: [R, chains, states, states x k].
        candidates = best[:, :, None] + edge[:, :, step - 1].mT[..., None]
        score, origin = _top(candidates.flatten(-2), k)
        score = score + node[:, :, step, :, None]
        if problem.present is not None:
            there = problem.present[:, step, None, None]
            score = torch.where(there, score, best)
            origin = torch.where(there, origin, torch.arange(states * k, device=node.device).reshape(states, k))
        best = score
        origins.append(origin)
    score, place = _top(best.flatten(-2), k)
    labels = [place // k]
    for origin in reversed(origins):
        place = origin.flatten(-2).gather(-1, place)
        labels.append(place // k)
    found = torch.stack(labels[::-1], -1).masked_fill((score == -torch.inf)[..., None], -1)
    return found if problem.present is None else found.masked_fill(~problem.present[:, None], -1)


def _top(values: Tensor, k: int) -> tuple[Tensor, Tensor]:
    """The k highest along the last axis, filled up with -inf, and where they are."""
    score, place = values.topk(min(k, values.shape[-1]), -1)
    missing = k - score.shape[-1]
    if missing:
        score = torch.nn.functional.pad(score, (0, missing), value=-torch.inf)
        place = torch.nn.functional.pad(place, (0, missing))
    return score, place
