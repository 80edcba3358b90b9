"""Evidence: variables whose state is known, from a file of the UAI competitions or given directly."""

import os
from collections.abc import Mapping
from pathlib import Path

import torch

from accord.errors import FieldError, InfeasibleError, InputTypeError
from accord.field._field import PairwiseField
from accord.field.factors import FactorField
from accord.field.files._numbers import as_path, read_numbers


def read_evidence(path: str | os.PathLike[str]) -> dict[int, int]:
    """Read an evidence file as {variable: state}.

    It holds the number of known variables and then pairs of variable and state. Files of 2010 have one number more
    before that: how many samples of evidence follow; a single one is read.
    """
    numbers = read_numbers(path)
    if not numbers.left:
        raise FieldError(f"{numbers.path}: is empty. Write 0 if nothing is known.")
    if numbers.left % 2 == 0:  # a count and pairs are an odd number of numbers
        samples = numbers.count("the number of samples")
        if samples != 1:
            raise numbers.error(
                0,
                f"{samples} samples are announced, but one is needed, or the file is cut off. Write each sample to a "
                "file of its own.",
            )
    pairs = numbers.counts(2 * numbers.count("the number of known variables"), "a variable and its state").tolist()
    numbers.finish()
    known: dict[int, int] = {}
    for variable, state in zip(pairs[::2], pairs[1::2], strict=True):
        if known.setdefault(variable, state) != state:
            raise FieldError(
                f"{numbers.path}: variable {variable} has state {known[variable]} and state {state}. Remove one."
            )
    return known


def clamped(
    field: PairwiseField | FactorField, evidence: str | os.PathLike[str] | Mapping[int, int] | None, model: Path
) -> PairwiseField | FactorField:
    """The field with known states clamped.

    Args:
        field: the field.
        evidence: a file, or {variable: state}; None leaves the field unchanged.
        model: the file of the field, for messages.
    """
    if evidence is None:
        return field
    where = str(model if isinstance(evidence, Mapping) else as_path(evidence))
    known = evidence if isinstance(evidence, Mapping) else read_evidence(evidence)
    labels = torch.full((field.num_nodes,), -1)
    counts = field.states.tolist() if isinstance(field, FactorField) else [field.num_states] * field.num_nodes
    for variable, state in known.items():
        for number in (variable, state):
            if isinstance(number, bool) or not isinstance(number, int):
                raise InputTypeError(
                    f"{where}: evidence holds a {type(number).__name__}, not an int. Give {{variable: state}}."
                )
        if not 0 <= variable < field.num_nodes:
            raise FieldError(
                f"{where}: evidence names variable {variable}, but {model} has {field.num_nodes}, numbered from 0."
            )
        if not 0 <= state < counts[variable]:
            raise FieldError(
                f"{where}: evidence gives variable {variable} state {state}, but it has states 0 to "
                f"{counts[variable] - 1}. Correct it."
            )
        labels[variable] = state
    try:
        return field.clamp(labels)
    except InfeasibleError as error:
        raise InfeasibleError(f"{where}: {error}", error.nodes, error.proved) from error
