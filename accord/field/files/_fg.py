"""The .fg files of libDAI: factors as lists of the entries that are not 0.

2                     factors, each after an empty line

2                     variables of the factor
0 1                   which
2 2                   states of each
3                     entries that are not 0
0 0.5                 index and value; the state of the FIRST variable changes fastest
1 0.1
3 0.4
"""

import math
import os
from collections.abc import Mapping

import numpy as np
import torch

from accord.errors import FieldError
from accord.field._field import PairwiseField
from accord.field.factors import FactorField
from accord.field.files._assembly import Tables, check_states, to_field
from accord.field.files._evidence import clamped
from accord.field.files._listing import listed, write_lines
from accord.field.files._numbers import Numbers, as_path, read_numbers
from accord.graphs._checks import check_room


def read_fg(
    path: str | os.PathLike[str], evidence: str | os.PathLike[str] | Mapping[int, int] | None = None
) -> PairwiseField | FactorField:
    """Read a factor graph of libDAI, from an .fg file or a compressed .fg.gz file.

    Variables keep their numbers; a number that no factor names gets a variable with a single state. Otherwise as
    `read_uai`.

    Args:
        path: the file.
        evidence: known states: an evidence file, or {variable: state}; they are clamped.
    """
    numbers = read_numbers(path)
    return clamped(to_field(_read_tables(numbers), numbers.path), evidence, numbers.path)


def _read_tables(numbers: Numbers) -> Tables:
    count = numbers.count("the number of factors")
    states: dict[int, int] = {}
    scopes: list[list[int]] = []
    entries: list[tuple[np.ndarray, np.ndarray]] = []  # indices and values of each factor
    total = 0
    for factor in range(count):
        begin = numbers.at
        order = numbers.count(f"how many variables factor {factor} has")
        scope = numbers.counts(order, f"the variables of factor {factor}").tolist()
        sizes = numbers.counts(order, f"the states of the variables of factor {factor}").tolist()
        _note_states(numbers, begin, factor, scope, sizes, states)
        size = math.prod(sizes)
        total += size
        check_room(str(numbers.path), f"tables of {total:.6g} entries", 8 * total, torch.device("cpu"))
        held = numbers.count(f"the number of entries of factor {factor} that are not 0")
        begin = numbers.at
        if 2 * held > numbers.left:
            raise numbers.cut_off(f"the entries of factor {factor}")
        numbers.at += 2 * held
        entries.append(_entries(numbers, begin, factor, size))
        scopes.append(scope)
    numbers.finish()
    counts = np.ones(1 + max(states, default=-1), dtype=np.int64)
    counts[list(states)] = list(states.values())
    check_states(counts, numbers.path)
    return _joined(counts, scopes, entries)


def _note_states(
    numbers: Numbers, begin: int, factor: int, scope: list[int], sizes: list[int], states: dict[int, int]
) -> None:
    """Check a factor's variables, and remember how many states they have."""
    if len(set(scope)) < len(scope):
        raise numbers.error(begin, f"factor {factor} names a variable twice. Give each variable once.")
    for variable, size in zip(scope, sizes, strict=True):
        if size < 1:
            raise numbers.error(begin, f"variable {variable} of factor {factor} has no states. Give at least one.")
        if states.setdefault(variable, size) != size:
            raise numbers.error(
                begin,
                f"variable {variable} has {size} states in factor {factor}, but {states[variable]} in an earlier one. "
                "Correct one of them.",
            )
        if variable >= len(numbers.values):  # a file that names all variables before it would be longer
            raise numbers.error(begin, f"factor {factor} names variable {variable}. Number variables from 0.")


def _entries(numbers: Numbers, begin: int, factor: int, size: int) -> tuple[np.ndarray, np.ndarray]:
    """Indices and values of a factor's entries."""
    places = np.arange(begin, numbers.at, 2)
    index, values = numbers.values[places], numbers.values[places + 1]
    for bad, problem in (
        ((index < 0) | (index >= size) | (index != np.floor(index)), f"an index of its {size} entries is needed"),
        (values < 0, "tables hold no negative numbers"),
    ):
        if bad.any():
            place = int(bad.argmax())
            raise numbers.error(
                begin + 2 * place,
                f"factor {factor} has the entry {index[place]:.12g} {values[place]:.12g}, but {problem}.",
            )
    return index.astype(np.int64), values


def _joined(states: np.ndarray, scopes: list[list[int]], entries: list[tuple[np.ndarray, np.ndarray]]) -> Tables:
    """All tables by rows, which is libDAI's order for the variables from last to first."""
    sizes = np.array([math.prod(states[scope].tolist()) for scope in scopes], dtype=np.int64)
    starts = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
    values = np.zeros(starts[-1])
    for begin, (index, own) in zip(starts, entries, strict=False):
        values[begin + index] = own
    orders = [len(scope) for scope in scopes]
    scope = np.array([variable for own in scopes for variable in reversed(own)], dtype=np.int64)
    return Tables(states, np.concatenate([[0], np.cumsum(orders)]).astype(np.int64), scope, starts[:-1], values)


def write_fg(field: PairwiseField | FactorField, path: str | os.PathLike[str]) -> None:
    """Write a field as a factor graph of libDAI, compressed if the path ends in .gz.

    Rules, constants and errors as for `write_uai`; `read_fg` gives a field with the same scores.

    Args:
        field: without replicas. Graphs of a batch become one model.
        path: the file, which is replaced at once when all is written.
    """
    place = as_path(path)
    found = listed(field, f"write_fg: {place}")
    if not len(found.states):
        raise FieldError(f"write_fg: {place}: the field has no variables. Give at least one.")
    lines = [str(len(found.factors))]
    for scope, values in found.factors:
        sizes = [found.states[variable] for variable in scope]
        ordered = values.reshape(sizes).ravel(order="F")
        held = np.flatnonzero(ordered)
        lines += ["", str(len(scope)), " ".join(map(str, scope)), " ".join(map(str, sizes)), str(len(held))]
        lines += [f"{index} {value!r}" for index, value in zip(held.tolist(), ordered[held].tolist(), strict=True)]
    write_lines(place, lines)
