"""Labellings drawn from chains: messages forwards, states backwards."""

import torch
from torch import Tensor

from accord.field import ChainField
from accord.inference._semiring import REDUCE
from accord.inference.chains import _reference
from accord.inference.chains._beliefs import check_feasible
from accord.inference.chains._problem import as_problem
from accord.inference.sampling._draw import draw


def sample_chains(
    field: ChainField, num_samples: int, generator: torch.Generator | None, where: str = "sample_exact"
) -> Tensor:
    """Independent labellings [num_samples, *replicas, chains, length]; -1 beyond the end of a chain."""
    field.check_changes(where)
    problem = as_problem(field)
    with torch.no_grad():
        _, edge = problem.wide
        behind = _reference.messages_behind(problem, REDUCE["sum"])
        check_feasible(field, _reference.log_partition(behind, REDUCE["sum"]), where)
        replicas, chains, length, states = behind.shape
        shape = (num_samples, replicas, chains, states)
        labels = [draw(behind[:, :, -1].expand(shape), generator)]
        for step in range(length - 2, -1, -1):
            column = labels[-1][..., None, None].expand(*shape, 1)
            pairs = edge[:, :, step].expand(num_samples, *edge[:, :, step].shape).gather(-1, column)[..., 0]
            if problem.present is None:
                labels.append(draw(behind[:, :, step] + pairs, generator))
                continue
            linked = problem.present[:, step + 1]
            logits = behind[:, :, step] + pairs.masked_fill(~linked[:, None], 0.0)
            labels.append(torch.where(linked, draw(logits, generator), labels[-1]))
        found = torch.stack(labels[::-1], -1)
        found = found if problem.present is None else found.masked_fill(~problem.present, -1)
    return found.reshape(num_samples, *field.replicas, chains, length)
