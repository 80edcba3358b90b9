"""The paper's claims: for each the comparisons that decide on it, and where the paper makes it."""

from collections.abc import Iterator
from functools import cache

from accord.experiments._paper import CITATION_SETS, PPI_SETS, PaperNumber, paper_numbers
from accord.experiments.reproduction._cells import (
    BACKBONE_ENCODERS,
    BACKBONES,
    CONVERGENCE,
    DBLP_STAND_IN,
    HEAD_COUNTS,
    HEADS,
    PARTS,
    RATES,
    RUN_TIME,
    TRAINING,
    Cell,
    Source,
    source_of,
)
from accord.experiments.reproduction.report._claims import Claim, Comparison

ENCODERS = ("gcn", "sage", "gat", "unet", "gcnii")
SETS = (*CITATION_SETS, DBLP_STAND_IN, *PPI_SETS)
TWICE = (1.5, 2.5)  # what counts as about twice as long


def measure_of(data: str) -> str:
    """What the paper reports on a data set: graphs, nodes, or accuracy over labels."""
    return "graph" if data in CITATION_SETS else "accuracy" if data in PPI_SETS else "node"


def _source(
    data: str, method: str, encoder: str, preset: str, way: str, measure: str | None = None, variant: str = ""
) -> Source:
    return Source(Cell(TRAINING, data, method, encoder, preset, variant), way, measure or measure_of(data))


@cache
def _main_rows(method: str) -> tuple[PaperNumber, ...]:
    """The paper's accuracies of a method in Tables 1 and 2."""
    return tuple(n for n in paper_numbers() if n.table in (1, 2) and n.method == method and n.measure != "f1")


def _name(number: PaperNumber) -> str:
    return f"{number.encoder} {DBLP_STAND_IN if number.data == 'dblp' else number.data}"


def _against(preset: str, method: str, encoder: str | None = None) -> Iterator[Comparison]:
    """The paper's SPNs against another method on the same set: with the same encoder, or with a given one."""
    others = {(number.data, number.encoder): number for number in _main_rows(method)}
    for number in _main_rows("spn"):
        other = others.get((number.data, encoder or number.encoder))
        if other is not None:
            spn, worse = source_of(number, preset), source_of(other, preset)
            if spn is not None and worse is not None:
                yield Comparison(_name(number) + (f" over {other.row}" if encoder else ""), spn, worse)


def _spn_above_gnn(preset: str) -> Iterator[Comparison]:
    for data in SETS:
        for encoder in ENCODERS:
            spn, gnn = (_source(data, "spn", encoder, preset, way) for way in ("spn", "gnn"))
            yield Comparison(f"{encoder} {data}", spn, gnn)


def _spn_above_gnn_nodes(preset: str) -> Iterator[Comparison]:
    for data in CITATION_SETS:
        for encoder in ENCODERS:
            spn, gnn = (_source(data, "spn", encoder, preset, way, "node") for way in ("spn", "gnn"))
            yield Comparison(f"{encoder} {data}", spn, gnn)


def _spn_above_gnn_unseen(preset: str) -> Iterator[Comparison]:
    for data in CITATION_SETS:
        for encoder in ENCODERS:
            spn, gnn = (_source(data, "spn", encoder, preset, way, "node_unseen") for way in ("spn", "gnn"))
            yield Comparison(f"{encoder} {data}", spn, gnn)


def _best(preset: str) -> Iterator[Comparison]:
    """The SPN that is the paper's best on a set against every GNN, CRF and GMNN there."""
    best: dict[str, PaperNumber] = {}
    for number in _main_rows("spn"):
        if number.data not in best or number.mean > best[number.data].mean:
            best[number.data] = number
    for method in ("gnn", "crf", "gmnn"):
        for other in _main_rows(method):
            spn, worse = source_of(best[other.data], preset), source_of(other, preset)
            if spn is not None and worse is not None:
                yield Comparison(f"{_name(best[other.data])} over {other.row}", spn, worse)


def _spn_above_crf(preset: str) -> Iterator[Comparison]:
    yield from _against(preset, "crf")
    yield from _against(preset, "crf", "linear")


def _spn_above_gmnn(preset: str) -> Iterator[Comparison]:
    for data in SETS:
        for encoder in ("gat", "gcnii"):
            spn = _source(data, "spn", encoder, preset, "spn")
            yield Comparison(f"{encoder} {data}", spn, _source(data, "gmnn", encoder, preset, "gmnn"))


def _refinement(preset: str) -> Iterator[Comparison]:
    for data in ("ppi-10", "ppi-20"):
        for encoder in ("gat", "sage"):
            after = _source(data, "spn", encoder, preset, "spn", "f1", "refined")
            yield Comparison(f"{encoder} {data}", after, _source(data, "spn", encoder, preset, "spn", "f1"))


def _shared(preset: str) -> Iterator[Comparison]:
    for data in (*CITATION_SETS, "ppi-1", "ppi-2", "ppi-10"):
        shared = _source(data, "spn", "gat", preset, "spn", variant="shared")
        yield Comparison(data, shared, _source(data, "spn", "gat", preset, "gnn"))


def _constraint(preset: str) -> Iterator[Comparison]:
    for data in CITATION_SETS:
        for encoder in ("gat", "gcnii"):
            free = _source(data, "spn", encoder, preset, "spn")
            bound = _source(data, "spn", encoder, preset, "spn", variant="constrained")
            yield Comparison(f"{encoder} {data}", free, bound)


def _max_above_sum(preset: str) -> Iterator[Comparison]:
    for data in SETS:
        for encoder in ENCODERS:
            measure = "node" if data in CITATION_SETS else None
            best, other = (_source(data, "spn", encoder, preset, way, measure) for way in ("spn", "sum"))
            yield Comparison(f"{encoder} {data}", best, other)


def _proxy_start(preset: str) -> Iterator[Comparison]:
    for data in (DBLP_STAND_IN, "cora*"):
        for encoder in ("gat", "gcn"):
            for rate in RATES:
                cell = Cell(CONVERGENCE, data, "spn", encoder, preset, f"rate {rate}")
                start, reached = Source(cell, "spn", "start"), Source(cell, "crf", "best")
                yield Comparison(f"{encoder} {data} at {rate}", start, reached)


def _crf_slower(preset: str) -> Iterator[Comparison]:
    for data in (DBLP_STAND_IN, "cora*", "ppi-1", "ppi-20"):
        for encoder in ("gat", "gcn", "gcnii"):
            cell = Cell(RUN_TIME, data, "spn", encoder, preset)
            yield Comparison(f"{encoder} {data}", Source(cell, "crf", "seconds"), Source(cell, "spn", "seconds"))


def _twice_as_long(preset: str) -> Iterator[Comparison]:
    for comparison in _crf_slower(preset):
        cell = comparison.worse.cell
        yield Comparison(comparison.name, comparison.worse, Source(cell, "gnn", "seconds"))


def _mixed_backbones(preset: str) -> Iterator[Comparison]:
    for node in BACKBONE_ENCODERS:
        alike = Source(Cell(BACKBONES, "ppi-1", "spn", f"{node}+{node}", preset), "spn", "f1")
        for edge in BACKBONE_ENCODERS:
            if edge != node:
                mixed = Source(Cell(BACKBONES, "ppi-1", "spn", f"{node}+{edge}", preset), "spn", "f1")
                yield Comparison(f"{node} with edges of {edge}", mixed, alike)


def _more_heads(preset: str) -> Iterator[Comparison]:
    for part in PARTS:
        few, many = (
            Source(Cell(HEADS, "ppi-1", "spn", "gat", preset, f"{part} {count}"), "spn", "f1")
            for count in (HEAD_COUNTS[0], HEAD_COUNTS[-1])
        )
        yield Comparison(f"{HEAD_COUNTS[-1]} heads over {HEAD_COUNTS[0]}, {part} network", many, few)


CLAIMS = (
    Claim("SPNs improve on the GNNs that they are built from", "Tables 1 and 2", _spn_above_gnn),
    Claim("They improve node accuracy on the citation sets too", "Table 12", _spn_above_gnn_nodes),
    Claim("They do so on nodes that occur in no training graph (our question)", "fair play", _spn_above_gnn_unseen),
    Claim("SPNs achieve the best result: the paper's best SPN is above all others", "Tables 1 and 2", _best),
    Claim("SPNs are better than CRFs trained by the maximin game", "Tables 1, 2 and 5", _spn_above_crf),
    Claim("SPNs are better than GMNN", "Tables 1, 2 and 5", _spn_above_gmnn),
    Claim("Refinement helps where labels are many", "Table 4", _refinement),
    Claim("One shared GNN improves on the GNN too", "Table 6", _shared),
    Claim("Constrained optimisation does not help", "Table 7", _constraint),
    Claim("Max-product gives better labels than sum-product", "Table 13", _max_above_sum),
    Claim("The proxy's solution starts above what the game alone reaches", "Figure 2", _proxy_start),
    Claim("Node and edge networks of different kinds are often better", "Figure 4", _mixed_backbones),
    Claim("More heads help, in either network", "Figure 4", _more_heads),
    Claim("CRFs take longer to train than SPNs", "Table 3", _crf_slower, times=True),
    Claim("SPNs take about twice as long as GNNs (1.5 to 2.5 times)", "Table 3", _twice_as_long, True, TWICE),
)
