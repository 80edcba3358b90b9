"""The page of the suite: a table for each measure, exceptions from what is hoped for, and where records come from."""

from collections.abc import Sequence
from statistics import mean, stdev

from accord.bench.defaults._records import MEASURES, PEERS, TITLES, Record
from accord.errors import OptionError
from accord.evaluation import NODE

JOINT = "spn"


def table(records: Sequence[Record], notes: str = "") -> str:
    """Markdown: tables with a row for each task, mean and deviation over seeds; then exceptions, records and notes."""
    if not records:
        raise OptionError("bench defaults: there is no record to show. Choose at least one task, seed and model.")
    columns = list(dict.fromkeys((record.model, part) for record in records for part in record.scores))
    models = list(dict.fromkeys(record.model for record in records))
    seeds = sorted({record.seed for record in records})
    text = ["# Defaults on data that nobody tuned for", ""]
    text += [f"Written by `accord bench defaults`. Mean ± standard deviation over seeds ({_listed(seeds)})."]
    text += ["Plain networks and logistic regression are what one writes first: they read raw features, and the former"]
    text += ["undirected edges without attributes."]
    for measure, title in MEASURES.items():
        rows = {task: [_cell(records, task, *column, measure) for column in columns] for task in _tasks(records)}
        text += ["", f"## {title}", "", *_markdown(["task", *(_title(*column) for column in columns)], rows)]
    rows = {task: [_seconds(records, task, model) for model in models] for task in _tasks(records)}
    heads = [TITLES.get(model, model) for model in models]
    text += ["", "## Seconds", "", "Of training and choosing, on the hardware of the record (below)."]
    text += ["", *_markdown(["task", *heads], rows)]
    for model in models:
        text += _exceptions(records, model)
    text += ["", "## Records", "", *_sources(records)]
    return "\n".join(text) + "\n" + (f"\n{notes.strip()}\n" if notes.strip() else "")


def _exceptions(records: Sequence[Record], model: str) -> list[str]:
    """Where a model is not above its peers, or its joint labels not above its own node network."""
    own = [record for record in records if record.model == model and {NODE, JOINT} <= set(record.scores)]
    if not own:
        return []
    text = ["", f"## Where {model} is not ahead", ""]
    for task in _tasks(own):
        peers = {name: _mean(records, task, name, name, "node_accuracy") for name in PEERS}
        known = {name: value for name, value in peers.items() if value is not None}
        best = max(known, key=lambda name: known[name], default=None)
        mine = _mean(records, task, model, JOINT, "node_accuracy")
        if best is not None and mine is not None and mine < known[best]:
            cells = (_cell(records, task, *which, "node_accuracy") for which in ((model, JOINT), (best, best)))
            text.append(f"- Nodes on {task}: {next(cells)}, {TITLES[best]} {next(cells)}.")
    for task in _tasks(own):
        joint, alone = (_values(own, task, model, part, "ece") for part in (JOINT, NODE))
        if joint and alone and mean(joint) > mean(alone):
            ours, gnn = _spread(joint), _spread(alone)
            gap = _spread([a - b for a, b in zip(joint, alone, strict=True)], "+.1f")
            text.append(f"- Calibration error on {task}: {ours}, its GNN {gnn}; difference, seed by seed, {gap}.")
    graphs = [
        (_mean(own, t, model, JOINT, "graph_accuracy") or 0.0) - (_mean(own, t, model, NODE, "graph_accuracy") or 0.0)
        for t in _tasks(own)
    ]
    above, below = (sum(sign * gain > 1e-9 for gain in graphs) for sign in (1, -1))
    text.append(
        f"- Whole graphs: its SPN is above its GNN on {above} of {len(graphs)} tasks, below on {below}, equal on "
        f"{len(graphs) - above - below}."
    )
    return text


def _sources(records: Sequence[Record]) -> list[str]:
    """A row for each model, hardware, commit and date."""
    keys = ("device", "commit", "date")
    groups: dict[tuple[str, ...], list[Record]] = {}
    for record in records:
        groups.setdefault((record.model, *(record.provenance.get(key, "-") for key in keys)), []).append(record)
    lines = ["| model | hardware | commit | date | tasks (seeds) |", "|---|---|---|---|---|"]
    for group in sorted(groups):
        held = {
            task: sorted(record.seed for record in groups[group] if record.task == task)
            for task in _tasks(groups[group])
        }
        tasks = ", ".join(f"{task} ({_listed(seeds)})" for task, seeds in held.items())
        lines.append(f"| {' | '.join([TITLES.get(group[0], group[0]), *group[1:]])} | {tasks} |")
    return lines


def _markdown(head: Sequence[str], rows: dict[str, list[str]]) -> list[str]:
    lines = [f"| {' | '.join(head)} |", "|" + "---|" * len(head)]
    return lines + [f"| {task} | {' | '.join(cells)} |" for task, cells in rows.items()]


def _tasks(records: Sequence[Record]) -> list[str]:
    return sorted({record.task for record in records})


def _title(model: str, part: str) -> str:
    return TITLES[model] if model in PEERS else f"{model}: {TITLES.get(part, part)}"


def _values(records: Sequence[Record], task: str, model: str, part: str, measure: str) -> list[float]:
    found = [r.scores[part][measure] for r in records if (r.task, r.model) == (task, model) and part in r.scores]
    return [100 * value for value in found if value is not None]


def _mean(records: Sequence[Record], task: str, model: str, part: str, measure: str) -> float | None:
    values = _values(records, task, model, part, measure)
    return mean(values) if values else None


def _cell(records: Sequence[Record], task: str, model: str, part: str, measure: str) -> str:
    return _spread(_values(records, task, model, part, measure))


def _seconds(records: Sequence[Record], task: str, model: str) -> str:
    return _spread([record.seconds for record in records if (record.task, record.model) == (task, model)])


def _spread(values: Sequence[float], form: str = ".1f") -> str:
    """Mean and standard deviation."""
    if not values:
        return "-"
    return f"{mean(values):{form}}" + (f" ± {stdev(values):.1f}" if len(values) > 1 else "")


def _listed(seeds: Sequence[int]) -> str:
    """Seeds in words: 0 to 4, or each of them."""
    unbroken = len(seeds) > 2 and list(seeds) == list(range(seeds[0], seeds[-1] + 1))
    return f"{seeds[0]} to {seeds[-1]}" if unbroken else ", ".join(map(str, seeds))
