"""Probabilities as certain as they are right: two numbers, fitted by the likelihood of validation labels.

Beliefs of sum-product propagation count the same evidence more than once on graphs with loops, and then are certain of
what is wrong. A temperature (Guo et al. 2017) makes all of them less certain, but cannot tell such nodes from others.
The node evidence can, so a share of it is mixed in:

    log p = ((1 - share) log belief + share log evidence) / temperature, up to a constant

Validation labels have also chosen the networks, so the networks look better on them than they are. A temperature that
makes probabilities more certain than the node network's therefore needs more evidence than one that makes them less so.
"""

import math

import torch
from torch import Tensor

COLDEST, HOTTEST = 0.02, 50.0  # bounds of a temperature
STEPS = 24  # of the search for a temperature; each narrows the range by the golden ratio, to 1e-5 of it in the end
GOLDEN = (math.sqrt(5) - 1) / 2
SHARES = (0.0, 0.2, 0.4, 0.6, 0.8, 1.0)  # of the node evidence
MOST_NODES = 10_000  # labelled ones that are used; more do not change two numbers
CAUTION = 25.0  # labels that a preference against more certainty is worth: few labels sharpen little, hundreds decide
SIGMAS = 2.0  # standard errors by which beliefs must be likelier than the evidence, as for the choice of a field
LEAST_LOG = -1e4  # stands for -inf, so that a share of 0 leaves it out


def fit_calibration(
    log_beliefs: Tensor,
    evidence: Tensor,
    truth: Tensor,
    node_weight: Tensor | None = None,
    if_denser: Tensor | None = None,
) -> tuple[Tensor, Tensor]:
    """Share of the evidence and temperature of each replica, both [R], under which true labels are most likely.

    A weak preference for temperature 1, worth one label, decides where there are few labels. The smallest share wins
    ties. True labels of probability 0 do not count: neither number can change them.

    Args:
        log_beliefs: [R, nodes, states], sum-product marginals.
        evidence: [R, nodes, states], log-probabilities of each node by itself.
        truth: [R, nodes], -1 where a label is missing; broadcasts.
        node_weight: [R], by which the node network's log-probabilities were multiplied in the evidence. If given, this
            is the temperature that is preferred, a lower one has to be shown by more labels (`CAUTION`), and the
            largest share wins whose likelihood is within noise of the best (`SIGMAS`).
        if_denser: [R, nodes, states], marginals as they would be if nodes had more neighbours. If given, beliefs count
            only as far as true labels would still be as likely by them as by the evidence alone.
    """
    truth = truth.expand(log_beliefs.shape[:-1])
    labelled = (truth >= 0).any(0).nonzero().flatten()
    labelled = labelled[:: max(1, math.ceil(len(labelled) / MOST_NODES))]
    own, other = (values[:, labelled].double() for values in (log_beliefs, evidence))
    truth = truth[:, labelled]
    usual = None if node_weight is None else node_weight.to(own).log()
    mixtures = [_mixed(own, other, own.new_tensor([share])) for share in SHARES]
    fits = [_fit_temperature(mixture, truth, usual) for mixture in mixtures]
    temperatures, losses = (torch.stack(values) for values in zip(*fits, strict=True))
    if if_denser is not None:
        denser = if_denser[:, labelled].double()
        then_mixed = [_mixed(denser, other, own.new_tensor([share])) for share in SHARES]
        then = torch.stack([_loss(*one, truth, usual) for one in zip(then_mixed, temperatures.log(), strict=True)])
        losses = losses.masked_fill(then > then[-1], torch.inf)  # the last share is 1: the evidence alone
    best = losses.argmin(0)
    if node_weight is not None:
        each = torch.stack([_surprise(*one, truth) for one in zip(mixtures, temperatures.log(), strict=True)])
        more = each - each.gather(0, best[None, :, None].expand(1, *truth.shape))  # [shares, R, nodes]
        error = (more - more.mean(-1, keepdim=True)).square().sum(-1).sqrt()
        near = (more.sum(-1) <= SIGMAS * error) & losses.isfinite()
        best = (near * torch.arange(1, 1 + len(SHARES), device=near.device)[:, None]).argmax(0)  # the largest share
    chosen = temperatures.gather(0, best[None])[0].to(log_beliefs.dtype)
    return torch.tensor(SHARES, dtype=log_beliefs.dtype, device=best.device)[best], chosen


def calibrate(log_beliefs: Tensor, evidence: Tensor, share: Tensor, temperature: Tensor) -> Tensor:
    """Calibrated probabilities [R, nodes, states].

    A share of 0 and a temperature of 1 change nothing. A belief of 0 stays 0.

    Args:
        log_beliefs: [R, nodes, states].
        evidence: [R, nodes, states].
        share: [R].
        temperature: [R].
    """
    if not bool(share.any()) and bool((temperature == 1).all()):
        return log_beliefs.exp()
    return (_mixed(log_beliefs, evidence, share) / temperature.to(log_beliefs)[:, None, None]).softmax(-1)


def _mixed(log_beliefs: Tensor, evidence: Tensor, share: Tensor) -> Tensor:
    share = share.to(log_beliefs)[:, None, None]
    mixed = torch.lerp(log_beliefs.clamp_min(LEAST_LOG), evidence.clamp_min(LEAST_LOG), share)
    return mixed.masked_fill(log_beliefs == -torch.inf, -torch.inf)


def _loss(logs: Tensor, position: Tensor, truth: Tensor, usual: Tensor | None) -> Tensor:
    """Negative log-likelihood [R] of true labels at a log-temperature [R], and what departing from the usual costs.

    Args:
        logs: [R, nodes, states].
        position: [R].
        truth: [R, nodes].
        usual: [R], the log-temperature that is preferred with caution; None for 0 without.
    """
    away = position if usual is None else position - usual
    worth = 1.0 if usual is None else torch.where(away < 0, CAUTION, 1.0)
    return worth * away.square() / 2 + _surprise(logs, position, truth).sum(-1)


def _surprise(logs: Tensor, position: Tensor, truth: Tensor) -> Tensor:
    """Negative log-likelihood [R, nodes] of each label; 0 where there is none, or one held to be impossible."""
    places = truth.clamp_min(0)[..., None]
    counted = (truth >= 0) & logs.gather(-1, places)[..., 0].isfinite()
    found = (logs / position.exp()[:, None, None]).log_softmax(-1).gather(-1, places)[..., 0]
    return -found.masked_fill(~counted, 0.0)


def _fit_temperature(logs: Tensor, truth: Tensor, usual: Tensor | None) -> tuple[Tensor, Tensor]:
    """Temperature and loss of each replica [R], by golden section search: the loss has a single minimum."""

    def loss(position: Tensor) -> Tensor:
        return _loss(logs, position, truth, usual)

    low, high = (logs.new_full((len(logs),), math.log(bound)) for bound in (COLDEST, HOTTEST))
    left, right = high - GOLDEN * (high - low), low + GOLDEN * (high - low)
    at_left, at_right = loss(left), loss(right)
    for _ in range(STEPS):
        down = at_left <= at_right
        low, high = torch.where(down, low, left), torch.where(down, right, high)
        fresh = torch.where(down, high - GOLDEN * (high - low), low + GOLDEN * (high - low))
        at_fresh = loss(fresh)
        left, right = torch.where(down, fresh, right), torch.where(down, left, fresh)
        at_left, at_right = torch.where(down, at_fresh, at_right), torch.where(down, at_left, at_fresh)
    middle = (low + high) / 2
    return middle.exp(), loss(middle)
