"""Result files of the UAI competitions: best labelling (.MAP), marginals (.MAR) and partition function (.PR)."""

import math
import os
from collections.abc import Sequence

import torch
from torch import Tensor

from accord.errors import FieldError, InputTypeError
from accord.field.files._listing import write_lines
from accord.field.files._numbers import as_path, read_numbers
from accord.graphs._checks import check_integer, check_tensor


def read_map(path: str | os.PathLike[str]) -> Tensor:
    """Read the labels [variables] of a .MAP file. Files of 2010 have one number more: how many labellings follow."""
    numbers = read_numbers(path, ("MAP", "MPE"))
    if numbers.left > 2 and numbers.values[0] == 1 and numbers.values[1] == numbers.left - 2:
        numbers.at = 1
    labels = numbers.counts(numbers.count("the number of variables"), "the states of all variables")
    numbers.finish()
    return torch.from_numpy(labels)


def write_map(labels: Tensor, path: str | os.PathLike[str]) -> None:
    """Write labels [variables] as a .MAP file."""
    found = check_integer(labels, "labels", "write_map")
    if found.dim() != 1:
        raise FieldError(f"write_map: labels have shape {list(found.shape)}, but [variables] is needed.")
    write_lines(as_path(path), ["MAP", " ".join(map(str, [len(found), *found.tolist()]))])


def read_mar(path: str | os.PathLike[str]) -> list[Tensor]:
    """Read the probabilities of the states of each variable from a .MAR file."""
    numbers = read_numbers(path, ("MAR",))
    count = numbers.count("the number of variables")
    marginals = []
    for variable in range(count):
        size = numbers.count(f"the number of states of variable {variable}")
        if size > numbers.left:
            raise numbers.cut_off(f"the probabilities of variable {variable}")
        marginals.append(torch.from_numpy(numbers.values[numbers.at : numbers.at + size].copy()))
        numbers.at += size
    numbers.finish()
    return marginals


def write_mar(marginals: Sequence[Tensor], path: str | os.PathLike[str]) -> None:
    """Write the probabilities of the states of each variable as a .MAR file."""
    words = [str(len(marginals))]
    for variable, own in enumerate(marginals):
        values = check_tensor(own, f"marginals[{variable}]", "write_mar")
        words += [str(values.numel()), *(f"{value:.9g}" for value in values.double().flatten().tolist())]
    write_lines(as_path(path), ["MAR", " ".join(words)])


def read_pr(path: str | os.PathLike[str]) -> float:
    """Read the logarithm to base 10 of the partition function from a .PR file."""
    numbers = read_numbers(path, ("PR",))
    if not numbers.left:
        raise numbers.cut_off("the partition function")
    value = float(numbers.values[0])
    numbers.at = 1
    numbers.finish()
    return value


def write_pr(log10: float, path: str | os.PathLike[str]) -> None:
    """Write the logarithm to base 10 of the partition function as a .PR file."""
    if isinstance(log10, bool) or not isinstance(log10, (int, float)):
        raise InputTypeError(f"write_pr: log10 is a {type(log10).__name__}, not a number.")
    if not math.isfinite(log10):
        raise FieldError(f"write_pr: log10 is {log10}, which is no finite number. A model without labellings has none.")
    write_lines(as_path(path), ["PR", f"{log10:.12g}"])
