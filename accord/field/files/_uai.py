"""The .uai files of the UAI competitions: factors as tables of plain numbers.

MARKOV                the kind; BAYES is read the same way
3                     variables
2 2 3                 states of each
2                     factors
2 0 1                 how many variables a factor has, and which
2 1 2
4                     entries of the first table; the state of its last variable changes fastest
0.2 0.8  0.5 0.5
6
1 0 1  1 1 0
"""

import os
from collections.abc import Mapping

import numpy as np

from accord.errors import FieldError
from accord.field._field import PairwiseField
from accord.field.factors import FactorField
from accord.field.files._assembly import Tables, check_states, first_repeated, sizes_of, to_field
from accord.field.files._evidence import clamped
from accord.field.files._listing import listed, write_lines
from accord.field.files._numbers import Numbers, as_path, read_numbers

HEADERS = ("MARKOV", "BAYES")


def read_uai(
    path: str | os.PathLike[str], evidence: str | os.PathLike[str] | Mapping[int, int] | None = None
) -> PairwiseField | FactorField:
    """Read a model of the UAI competitions, from a .uai file or a compressed .uai.gz file.

    Values become logarithms in float64; 0 becomes -inf. Variables keep their numbers. Tables of one variable, or of the
    same two, are added together. Constants are added to the potentials of variable 0, so scores and log Z are those of
    the file. Text from # to the end of a line is ignored.

    Args:
        path: the file.
        evidence: known states: an evidence file, or {variable: state}; they are clamped.

    Returns:
        A PairwiseField if no factor has more than two variables; the result of `PairwiseField.ragged` if, besides,
        variables have different numbers of states; else a FactorField.

    Raises:
        DataNotFoundError: there is no such file.
        FieldError: the file is damaged or of another format.
        InfeasibleError: the evidence has probability 0 by a table of that variable alone.
        TooLargeError: the model does not fit into memory.
    """
    numbers = read_numbers(path, HEADERS)
    field = to_field(_read_tables(numbers), numbers.path)
    return clamped(field, evidence, numbers.path)


def _read_tables(numbers: Numbers) -> Tables:
    count = numbers.count("the number of variables")
    begin = numbers.at
    states = numbers.counts(count, "the number of states of each variable")
    if not states.all():
        raise numbers.error(
            begin + int((states == 0).argmax()), f"variable {(states == 0).argmax()} has no states. Give at least one."
        )
    check_states(states, numbers.path)
    scope_at, scope = _read_scopes(numbers, count)
    sizes = sizes_of(states, scope_at, scope)
    # Where each table's number of entries stands, if all are as large as they should be.
    announced = numbers.at + np.concatenate([[0.0], np.cumsum(1 + sizes)])
    held = int((announced[:-1] < len(numbers.values)).sum())  # tables that begin before the end of the file
    stated = numbers.values[announced[:held].astype(np.int64)]
    wrong = np.flatnonzero(stated != sizes[:held])
    if len(wrong):
        factor = int(wrong[0])
        raise numbers.error(
            int(announced[factor]),
            f"the table of factor {factor} should have {sizes[factor]:.12g} entries, by the states of its variables, "
            f"but {stated[factor]:.12g} are announced. Check the table before it, and the states.",
        )
    if announced[-1] > len(numbers.values):
        raise numbers.cut_off(f"the end of the table of factor {max(held - 1, 0)} of {len(sizes)}")
    begin, numbers.at = numbers.at, int(announced[-1])
    numbers.finish()
    negative = np.flatnonzero(numbers.values[begin:] < 0)
    if len(negative):
        place = begin + int(negative[0])
        raise numbers.error(
            place, f"holds {numbers.values[place]:.12g}, but tables hold no negative numbers. Correct the table."
        )
    return Tables(states, scope_at, scope, announced[:-1].astype(np.int64) + 1, numbers.values)


def _read_scopes(numbers: Numbers, num_variables: int) -> tuple[np.ndarray, np.ndarray]:
    """Where the variables of each factor begin [factors + 1], and the variables."""
    count = numbers.count("the number of factors")
    if count > numbers.left:
        raise numbers.cut_off(f"the variables of {count} factors")
    begin, place, end = numbers.at, numbers.at, len(numbers.values)
    places = np.empty(count, dtype=np.int64)  # of the number of variables of each factor
    value = numbers.values.item
    for factor in range(count):
        if place >= end:
            raise numbers.cut_off(f"the variables of factor {factor}")
        places[factor] = place
        order = value(place)
        if not (order >= 0 and order.is_integer()):
            numbers.whole(place, place + 1, f"how many variables factor {factor} has")
        place += 1 + int(order)
    if place > end:
        raise numbers.cut_off(f"the variables of factor {count - 1}")
    orders = numbers.whole(begin, place, "variables of factors")[places - begin]
    scope = np.delete(numbers.values[begin:place], places - begin).astype(np.int64)
    numbers.at = place
    scope_at = np.concatenate([[0], np.cumsum(orders)])
    outside = np.flatnonzero(scope >= num_variables)
    if len(outside):
        factor = int(np.searchsorted(scope_at, outside[0], side="right")) - 1
        raise numbers.error(
            int(outside[0]) + begin + factor + 1,
            f"factor {factor} names variable {scope[outside[0]]}, but there are {num_variables}, numbered from 0.",
        )
    repeated = first_repeated(scope_at, scope)
    if repeated is not None:
        raise numbers.error(
            int(places[repeated]), f"factor {repeated} names a variable twice. Give each variable once."
        )
    return scope_at, scope


def write_uai(field: PairwiseField | FactorField, path: str | os.PathLike[str]) -> None:
    """Write a field as a model of the UAI competitions, compressed if the path ends in .gz.

    `read_uai` gives a field with the same scores. A table beyond the range of floating-point numbers is divided by a
    constant, which is written as tables of variable 0.

    Rules become tables if these have at most 65,536 entries. A larger rule becomes a chain of small tables with further
    variables, numbered after the field's; the field's variables determine them, so its score stays the same.

    Args:
        field: without replicas. Graphs of a batch become one model.
        path: the file, which is replaced at once when all is written.

    Raises:
        FieldError: the field has replicas, or finite potentials of a table differ by more than 1400.
    """
    place = as_path(path)
    found = listed(field, f"write_uai: {place}")
    if not len(found.states):
        raise FieldError(f"write_uai: {place}: the field has no variables. Give at least one.")
    factors = [(scope, values) for scope, values in found.factors if len(scope) != 1 or (values != 1.0).any()]
    lines = [HEADERS[0], str(len(found.states)), " ".join(map(str, found.states)), str(len(factors))]
    lines += [" ".join(map(str, (len(scope), *scope))) for scope, _ in factors]
    for _, values in factors:
        lines += ["", str(values.size), " ".join(map(repr, values.tolist()))]
    write_lines(place, lines)
