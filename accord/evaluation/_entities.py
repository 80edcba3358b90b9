"""Entities in BIO labels, and how many of them a labelling finds; the counting of seqeval and conlleval.

An entity counts as found where its type, its first and its last position agree. I-x begins an entity where none of
type x is open, as in conlleval.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

OUTSIDE = "O"
Entity = tuple[str, int, int]  # type, first and last position


@dataclass(frozen=True)
class EntityScores:
    """Shares of entities; 0 where there is nothing to divide by."""

    precision: float  # of the entities that were found, those that are right
    recall: float  # of the true entities, those that were found
    f1: float
    true: int  # how many entities there are
    found: int
    right: int


def entities(labels: Sequence[str]) -> list[Entity]:
    """The entities of one sequence, in order.

    Args:
        labels: O, B-type, I-type; any other label is outside of entities.
    """
    return list(_entities(labels))


def _entities(labels: Sequence[str]) -> Iterator[Entity]:
    open_type: str | None = None
    first = 0
    for place, label in enumerate([*labels, OUTSIDE]):
        mark, _, kind = label.partition("-")
        begins = mark == "B" or (mark == "I" and kind != open_type)
        if open_type is not None and (begins or mark not in ("B", "I")):
            yield open_type, first, place - 1
            open_type = None
        if begins:
            open_type, first = kind, place


def entity_scores(labels: Sequence[Sequence[str]], truth: Sequence[Sequence[str]]) -> EntityScores:
    """Precision, recall and F1 of the entities of all sequences together (micro average).

    Args:
        labels: of each sequence, names of labels.
        truth: the true ones.
    """
    true = found = right = 0
    for own, known in zip(labels, truth, strict=True):
        theirs, ours = set(_entities(known)), set(_entities(own))
        true, found, right = true + len(theirs), found + len(ours), right + len(theirs & ours)
    precision, recall = (right / count if count else 0.0 for count in (found, true))
    total = precision + recall
    return EntityScores(precision, recall, 2 * precision * recall / total if total else 0.0, true, found, right)
