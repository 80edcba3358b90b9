"""What the report says beside the paper's tables: the ablation, the fair comparison, and where records come from."""

from collections import Counter
from statistics import mean

from accord.experiments._paper import CITATION_SETS
from accord.experiments.reproduction._ablation import NORMALISERS, SHARPNESS, Row, best_place
from accord.experiments.reproduction._cells import (
    ABLATED_ENCODERS,
    ABLATION,
    DBLP_STAND_IN,
    OVERLAP,
    SEARCH,
    TRAINING,
    WIDTHS,
    Cell,
    Source,
)
from accord.experiments.reproduction._recipes import cell_recipe
from accord.experiments.reproduction._results import Results
from accord.experiments.reproduction._search import DRAWS, JUDGED, best_draws, drawn_recipe
from accord.experiments.reproduction.report._claims import compare, holm
from accord.methods import SPNRecipe, preset_recipe

TEST = {"test graph": 2, "test node": 3}  # places behind the sharpness in a row's "exact"
NAMES = {"node": "node marginals (Eq. 5)", "sinkhorn": "made consistent", "own^0": "none"}
ABLATED_SETS = (*CITATION_SETS, DBLP_STAND_IN)
ABLATED_PRESETS = ("authors", "paper", "accord")


def ablation_rows(results: Results) -> tuple[list[str], list[list[str]]]:
    """Test accuracy by normaliser: at the appendix's sharpness, picked on validation, and exact."""
    head = ["preset", "data", "encoder", "seeds", "GNN", "Eq. 5, appendix's sharpness"]
    for name in NORMALISERS:
        title = NAMES.get(name, f"own sums, power {name.partition('^')[2]}")
        head += [f"{title}, picked", "exact"]
    rows = []
    for preset in ABLATED_PRESETS:
        for cell in ablated(preset):
            tables = ablation_tables(results, cell)
            measure = ablated_measure(cell)
            gnn = results.summary(Source(_training(cell), "gnn", measure.removeprefix("test ")))
            if not tables or gnn is None:
                continue
            row = [preset, cell.data, f"{cell.encoder} {cell.variant}".strip(), str(len(tables)), percent(gnn.mean)]
            row.append(_at_appendix(cell, [table["node max"] for table in tables]))
            for name in NORMALISERS:
                mine = [table[f"{name} max"] for table in tables]
                row.append(percent(mean(one[measure][best_place(one)] for one in mine)))
                exact = [one["exact"][1 + TEST[measure]] for one in mine if "exact" in one]
                row.append(percent(mean(exact)) if len(exact) == len(mine) else "-")
            rows.append(row)
    return head, rows


def ablated(preset: str) -> list[Cell]:
    """Cells of the ablation under a preset."""
    return [
        Cell(ABLATION, data, "spn", encoder, preset, variant)
        for data in ABLATED_SETS
        for encoder in ABLATED_ENCODERS
        for variant in WIDTHS
    ]


def ablated_measure(cell: Cell) -> str:
    """What counts: graphs, or nodes where there is one test graph."""
    return "test graph" if cell.data in CITATION_SETS else "test node"


def ablation_tables(results: Results, cell: Cell) -> list[dict[str, Row]]:
    """The tables of a cell's seeds, of whole trainings."""
    seeds = results.by_cell.get(cell, {})
    whole = [record for records in seeds.values() for record in records if not record.shortened]
    return [record.details for record in whole if isinstance(record.details, dict)]


def _training(cell: Cell) -> Cell:
    return Cell(TRAINING, cell.data, "spn", cell.encoder, cell.preset, cell.variant)


def _at_appendix(cell: Cell, rows: list[Row]) -> str:
    recipe = preset_recipe("paper", cell.encoder, benchmark=cell.data)
    place = SHARPNESS.index(recipe.grid.sharpness[0])
    return percent(mean(row[ablated_measure(cell)][place] for row in rows))


def overlap_rows(results: Results) -> tuple[list[str], list[list[str]]]:
    """How test graphs overlap with others."""
    head = ["data", "test nodes in training graphs", "in validation graphs", "in either"]
    head += ["test graphs free of training nodes", "free of both"]
    rows = []
    for data in CITATION_SETS:
        found = results.metrics(Cell(OVERLAP, data, "-"))
        if found:
            values = next(iter(found.values()))[0]["data"]
            shares = [f"{100 * values[f'share in {name}']:.1f} %" for name in ("train", "val", "either")]
            counts = [f"{values[f'graphs free of {name}']:.0f}" for name in ("train", "either")]
            rows.append([data, *shares, *counts])
    return head, rows


FAIR_MEASURES = {
    "graph": "all graphs",
    "node_unseen": "unseen nodes",
    "graph_free": "graphs free of training nodes",
    "graph_apart": "graphs free of both",
}


def fair_rows(results: Results) -> tuple[list[str], list[list[str]]]:
    """SPN less GNN in points on all graphs and on what training did not show; * is p < 0.05 after Holm's correction."""
    found = []
    for preset in (*ABLATED_PRESETS, "appendix"):
        for data in CITATION_SETS:
            for encoder in ABLATED_ENCODERS:
                cell = Cell(TRAINING, data, "spn", encoder, preset)
                pairs = {}
                for measure in FAIR_MEASURES:
                    spn, gnn = (results.summary(Source(cell, way, measure)) for way in ("spn", "gnn"))
                    if spn is not None and gnn is not None and not spn.shortened:
                        pairs[measure] = (*compare(spn, gnn), len(spn.values))
                if pairs:
                    found.append(([preset, data, _backbones(cell)], pairs))
    rows = []
    corrected = {
        measure: iter(holm([pairs[measure][1] for _, pairs in found if measure in pairs])) for measure in FAIR_MEASURES
    }
    for start, pairs in found:
        row = [*start, str(max(n for *_, n in pairs.values()))]
        for measure in FAIR_MEASURES:
            if measure in pairs:
                row.append(f"{100 * pairs[measure][0]:+.1f}{'*' if next(corrected[measure]) < 0.05 else ''}")
            else:
                row.append("")
        rows.append(row)
    return ["preset", "data", "node / edge network", "seeds", *FAIR_MEASURES.values()], rows


def search_rows(results: Results) -> tuple[list[str], list[list[str]]]:
    """The fair search: draws that are there, and the best draw's graph accuracy of seeds that did not choose it."""
    head = ["data", "encoder", "method", "draws", "features of the best", "validation, seed 1", "test", "test seeds"]
    groups: Counter[tuple[str, str, str]] = Counter()
    for cell, seeds in results.by_cell.items():
        if cell.experiment == SEARCH and any(not r.shortened for r in seeds.get(JUDGED, ())):
            groups[cell.data, cell.encoder, cell.method] += 1
    best = best_draws(record for seeds in results.by_cell.values() for mine in seeds.values() for record in mine)
    rows = []
    for (data, encoder, method), count in sorted(groups.items()):
        row = [data, encoder, method, f"{count} of {DRAWS}"]
        winner = best.get((data, method, encoder))
        if winner is not None:
            chosen, test = (results.summary(Source(winner, way, "graph")) for way in ("val", "test"))
            assert chosen is not None
            row += [drawn_recipe(winner)[1], percent(chosen.values[JUDGED])]
            row += ["", "0"] if test is None else [percent(test.mean), str(len(test.values))]
        rows.append(row + [""] * (len(head) - len(row)))
    return head, rows


def _backbones(cell: Cell) -> str:
    """Both encoders where they differ: preset `accord` may combine two kinds."""
    if cell.preset == "appendix":
        return cell.encoder
    recipe = cell_recipe(cell)
    assert isinstance(recipe, SPNRecipe)
    kinds = (recipe.encoder.kind, recipe.edge_encoder.kind)
    return kinds[0] if kinds[0] == kinds[1] else f"{kinds[0]} / {kinds[1]}"


def mixed_note(results: Results) -> str:
    """SPNs of preset `accord` on the citation sets whose edge network is of another kind than the node network."""
    cells = [Cell(TRAINING, data, "spn", encoder, "accord") for data in CITATION_SETS for encoder in ABLATED_ENCODERS]
    mixed = [f"{cell.data} {_backbones(cell)}" for cell in cells if cell in results.by_cell and "/" in _backbones(cell)]
    return (
        f"Preset accord has edge networks of another kind (node / edge network): {', '.join(mixed)}." if mixed else ""
    )


def provenance_rows(results: Results) -> tuple[list[str], list[list[str]]]:
    """How many records come from which source and hardware."""
    found: Counter[tuple[str, str]] = Counter()
    for record in results.records:
        context = results.contexts.get(record.context)
        source = "unknown" if context is None else context.source.partition(", written by ")[2] or context.source
        found[source, "unknown" if context is None else context.provenance.get("device", "unknown")] += 1
    return ["computed by", "hardware", "records"], [[*key, str(count)] for key, count in sorted(found.items())]


def percent(value: float) -> str:
    """A fraction in percent."""
    return f"{100 * value:.1f}"
