"""A view of the store: for every cell the seeds that count, with their blocks of labels put together."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import product
from statistics import mean, stdev

from accord.experiments.reproduction._cells import Cell, Source
from accord.experiments.reproduction._plan import IMPORTED, current_records
from accord.experiments.reproduction._records import COUNTS, Context, Metrics, Record

Values = dict[int, float]  # by seed


@dataclass(frozen=True)
class Summary:
    """A number of ours: over how many seeds, its mean and standard deviation, and whether training was shortened."""

    values: Values
    shortened: bool

    @property
    def mean(self) -> float:
        """Over seeds."""
        return mean(self.values.values())

    @property
    def deviation(self) -> float | None:
        """Over seeds; None for one seed."""
        return stdev(self.values.values()) if len(self.values) > 1 else None


class Results:
    """What counts: of a seed's records the longest, of the present recipe, each label once.

    Args:
        records: of a store.
        contexts: of the same store.
    """

    def __init__(self, records: Iterable[Record], contexts: Mapping[str, Context]) -> None:
        self.records, self.contexts = list(records), dict(contexts)

    @cached_property
    def by_cell(self) -> dict[Cell, dict[int, list[Record]]]:
        """Records that count, by cell and seed."""
        found: dict[Cell, dict[int, list[Record]]] = {}
        for record in current_records(self.records, self.contexts):
            found.setdefault(record.cell, {}).setdefault(record.seed, []).append(record)
        return found

    @property
    def outdated(self) -> int:
        """Records of recipes that a preset no longer has."""
        return len(self.records) - sum(len(mine) for seeds in self.by_cell.values() for mine in seeds.values())

    def metrics(self, cell: Cell) -> dict[int, tuple[Metrics, bool]]:
        """Metrics of each seed whose labels are all there, and whether training was shortened."""
        found = {}
        for seed, records in self.by_cell.get(cell, {}).items():
            pooled = pool(records, cell.num_labels)
            if pooled is not None:
                found[seed] = pooled
        return found

    def details(self, cell: Cell) -> dict[int, object]:
        """What figures are drawn from, by seed; of the longest record."""
        return {
            seed: max(records, key=lambda r: (not r.shortened, r.epochs)).details
            for seed, records in sorted(self.by_cell.get(cell, {}).items())
        }

    def summary(self, source: Source) -> Summary | None:
        """A number of ours; None where there is none. Seeds that were shortened count only if all were."""
        found = self.metrics(source.cell)
        if source.way == "gnn" and source.cell.method == "spn":
            alone = replace(source.cell, method="gnn")  # some GNNs were trained by themselves
            found = {**self.metrics(alone), **{s: m for s, m in found.items() if "gnn" in m[0]}}
        have = {
            seed: (metrics[source.way][source.measure], short)
            for seed, (metrics, short) in sorted(found.items())
            if source.measure in metrics.get(source.way, {})
        }
        if not have:
            return None
        shortened = all(short for _, short in have.values())
        return Summary({seed: v for seed, (v, short) in have.items() if short == shortened}, shortened)


def pool(records: Iterable[Record], num_labels: int) -> tuple[Metrics, bool] | None:
    """The metrics of all labels together: larger blocks first, each label once; None if labels are missing."""
    ranked = sorted(records, key=lambda r: (r.shortened, -r.epochs, r.recipe == IMPORTED, -_width(r)))
    if num_labels == 1:
        return _join([ranked[0].metrics]), ranked[0].shortened
    # Where the best blocks overlap so that labels are left over, the widest blocks come first.
    orders = (ranked, sorted(ranked, key=lambda r: -_width(r)))
    for shortened, order in product((False, True), orders):
        covered: set[int] = set()
        chosen: list[Record] = []
        for record in (r for r in order if r.shortened == shortened and r.block is not None):
            assert record.block is not None
            labels = set(range(*record.block))
            if not labels & covered:
                covered |= labels
                chosen.append(record)
        if len(covered) == num_labels:
            return _join([record.metrics for record in chosen]), shortened
    return None


def _width(record: Record) -> int:
    return 0 if record.block is None else record.block[1] - record.block[0]


def _join(parts: list[Metrics]) -> Metrics:
    """Accuracy and micro-F1 from counts that add up; a record of all labels may hold them as they are."""
    if len(parts) == 1 and not any(name in values for values in parts[0].values() for name in COUNTS):
        return parts[0]
    joined: Metrics = {}
    for way in parts[0]:
        right, known, hits, marked, true = (sum(part[way][name] for part in parts) for name in COUNTS)
        joined[way] = {"accuracy": right / known, "f1": 2 * hits / (marked + true) if marked + true else 0.0}
    return joined
