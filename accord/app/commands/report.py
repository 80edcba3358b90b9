"""`accord report`: report.html and curves.png, from the files of a run; the data is not needed."""

from collections.abc import Callable, Mapping, Sequence
from html import escape
from pathlib import Path
from typing import Any

from accord._files import locked, write_bytes, write_text
from accord.app.commands._diagnosis import diagnosis_section
from accord.app.progress import read_metrics
from accord.app.runs import (
    CASES_FILE,
    CASES_KEY,
    CURVES_FILE,
    METRICS_FILE,
    REPORT_FILE,
    RESULTS_FILE,
    Run,
    flatten,
    reading,
)
from accord.app.scores import score_rows
from accord.drawing import DARK, LIGHT, Theme, draw_case, draw_curves, draw_reliability, page
from accord.evaluation import EDGE, NODE, Case, Scores
from accord.learning import HistoryRow

RIGHT_AT_LEVEL = {"node": "nodes labelled right", "graph": "graphs with every node right"}
RIGHT = "the score asked for"  # at other levels
SCORE_MEANINGS = {  # of the curves, by the name of the score in metrics.csv
    "node": "{right} by the node network alone",
    "edge": "edges with both ends right by the edge network",
    "shared": "the mean of {right} and edges with both ends right",
    "label": "{right} by the label network, given the node network's labels of the neighbours",
    "field": "{right} by the joint labels of the whole field",
}
METHOD_MEANINGS = {
    "spn": "SPN: both networks combined in one field and decoded jointly.",
    "crf": "CRF: node and edge scores as potentials of one field, trained as a whole and decoded jointly.",
    "gmnn": "GMNN: a second network relabels each node from the labels of its neighbours.",
    "smooth": "Smoothed GNN: the node network's predictions averaged with the neighbours'.",
}


def write_report(run: Run) -> Path:
    """Write curves.png and report.html; returns the path of the report."""
    with locked(run.path), reading(run.path):
        return _write_report(run)


def _write_report(run: Run) -> Path:
    rows = read_metrics(run.path / METRICS_FILE)
    results = run.read(RESULTS_FILE) or {}
    body = [_heading(run, results), _table(results, run)]
    parts = (
        _gain(results),
        _cases(run, results),
        _reliability(results),
        diagnosis_section(results.get("diagnosis")),
        _candidates(results),
    )
    body += [part for part in parts if part]
    if rows:
        light, dark = draw_curves(rows, LIGHT), draw_curves(rows, DARK)
        write_bytes(run.path / CURVES_FILE, light)
        caption = page.caption(_curves_caption(rows, run.config["settings"]["level"]))
        body.append(page.section("Learning", page.picture(light, dark, "learning curves"), caption))
    body += [_settings(run, results), _footer(run, results)]
    path = run.path / REPORT_FILE
    write_text(path, page.page(f"Accord: {run.config['data']['name']}", body))
    return path


def _curves_caption(rows: Sequence[HistoryRow], level: str) -> str:
    shown = dict.fromkeys(key.removesuffix("_score") for row in rows for key in row if key.endswith("_score"))
    meanings = [
        SCORE_MEANINGS[name].format(right=RIGHT_AT_LEVEL.get(level, RIGHT)) for name in shown if name in SCORE_MEANINGS
    ]
    return f"Scores: {'; '.join(meanings)}. Dots mark the best evaluation, whose parameters were kept."


def _heading(run: Run, results: dict[str, Any]) -> str:
    data, settings = run.config["data"], run.config["settings"]
    counts = data["graphs"]
    # What was chosen on validation data; runs of earlier versions, and those without results, know the recipe alone.
    networks = results.get("networks") or {"encoder": run.config["recipe"]["encoder"]["kind"]}
    encoder = " and ".join(dict.fromkeys(networks.values()))
    graphs = (
        f"{counts['train']} training, {counts['val'] or 'held-out'} validation, {counts['test'] or 'no'} test graphs"
    )
    members = settings.get("ensemble", 1)  # runs of earlier versions do not have the key
    seeds = f"seed {settings['seed']}"
    if members > 1:
        seeds = f"average of {members} members, seeds {settings['seed']} to {settings['seed'] + members - 1}"
    line = f"{settings['method'].upper()} with {encoder} encoder, {seeds}; {graphs}"
    if settings.get("refit", False):
        line += "; trained again on training and validation graphs together (refit) after every choice was made"
    if results.get("unlabelled"):
        line += f". {unlabelled_words(results['unlabelled'])}"
    return f"<h1>{escape(data['name'])}</h1>\n" + page.paragraph(line, "soft")


def unlabelled_words(told: Mapping[str, Any]) -> str:
    """What came of unlabelled graphs (`NodeClassifier.unlabelled_`), in a sentence without its full stop."""
    words = f"{told['share']:.0%} of the labels of {told['graphs']} unlabelled graphs were confident"
    if told["scores"] is None:
        return words
    before, after = (f"{score:.4g}" for score in told["scores"])
    kept = "kept" if told["kept"] else "not kept: the gain is within noise, or there is none"
    return f"{words}; training with them was {kept} (validation score {before} without, {after} with them)"


def _table(results: dict[str, Any], run: Run) -> str:
    scores: dict[str, Scores] | None = results.get("test")
    if scores is None:
        return page.section("Test graphs", page.paragraph("There are no labelled test graphs, so there are no scores."))
    titles: dict[str, str] = results["titles"]
    columns, rows = score_rows(scores, titles)
    method = run.config["settings"]["method"]
    whole = method if method in scores else NODE
    notes = [
        results.get("note")
        or f"{titles[NODE]}: the node network alone, which labels each node on its own. "
        + (
            f"{titles[EDGE]}: the edge network alone; each node sums the tables of its edges. "
            if EDGE in scores
            else ""
        )
        + METHOD_MEANINGS.get(whole, ""),
        "Graph accuracy: share of graphs with every node right. Calibration error: mean gap between confidence and "
        "accuracy; lower is better.",
    ]
    if any("unseen_accuracy" in part for part in scores.values()):
        notes.append("Unseen nodes: accuracy on nodes that occur in no training graph.")
    return page.section(
        "Test graphs", page.table(columns, rows, list(scores).index(whole)), page.caption(" ".join(notes))
    )


def _gain(results: dict[str, Any]) -> str:
    """What joint labelling could gain on the test graphs."""
    gain = results.get("joint_gain")
    if not gain or gain["equal"] is None:
        return ""
    titles = results["titles"]
    parts = {part: value for part, value in gain["known"].items() if part in titles}
    rows = [[titles[part], "-" if value is None else f"{value:.2f}"] for part, value in parts.items()]
    caption = (
        f"{gain['equal']:.0%} of the edges join equal labels. The table shows how well each part tells these edges "
        "from the others (area under the ROC curve: 0.5 is chance, 1 is perfect). If this were known exactly, the same "
        f"node evidence would label {gain['node_accuracy']:.1%} of the nodes and {gain['graph_accuracy']:.1%} of the "
        "whole graphs right. Where labels depend on each other in other ways than by being equal, joint labels can "
        "gain more."
    )
    return page.section(
        "What joint labelling can gain here",
        page.table(["knows equal labels"], rows, len(rows) - 1),
        page.caption(caption),
    )


def _candidates(results: dict[str, Any]) -> str:
    """Networks that were tried on validation data."""
    rows = [
        [row["network"], row["kind"], f"{row['score']:.1%}", f"{row['loss']:.3f}" if "loss" in row else ""]
        for row in results.get("candidates") or []
    ]
    if not rows:
        return ""
    caption = "On validation data. Score of node networks: nodes right; of edge networks: edges with both ends right."
    table = page.table(["kind", "score", "loss"], rows, -1)
    return page.section("Networks that were tried", table, page.caption(caption))


def _cases(run: Run, results: dict[str, Any]) -> str:
    stored = run.read(CASES_FILE)
    if isinstance(stored, dict):  # older runs have a list, without a checksum
        stored = stored[CASES_KEY]
    if not stored:
        return ""
    names = run.config["label_names"] or [str(state) for state in range(run.config["data"]["num_states"])]
    parts = []
    for entry in stored:
        case = Case(**entry)
        parts.append(f"<h3>{escape(case.title)}</h3>")
        parts.append(_both(lambda theme, case=case: draw_case(case, names, results["titles"], theme), case.title))  # type: ignore[misc]
    caption = "Test graphs on which the parts of the model differ. Colour: the label. Red ring: a wrong label."
    return page.section("Where the labels differ", *parts, page.caption(caption))


def _reliability(results: dict[str, Any]) -> str:
    bins = results.get("reliability")
    if not bins:
        return ""
    drawn = _both(lambda theme: draw_reliability(bins, results["titles"], theme), "reliability diagram")
    caption = (
        "On the dashed line, accuracy equals confidence. Above it the model is underconfident, below it overconfident."
    )
    return page.section("Calibration", drawn, page.caption(caption))


def _settings(run: Run, results: dict[str, Any]) -> str:
    shown = flatten({key: value for key, value in run.config["settings"].items() if key != "recipe"})
    values = [(name.replace("_", " "), _text(value)) for name, value in shown.items() if value is not None]
    values += [
        (f"recipe: {name.replace('_', ' ')}", _text(value)) for name, value in flatten(run.config["recipe"]).items()
    ]
    for name, value in (results.get("chosen") or {}).items():
        values.append((f"chosen: {name.replace('_', ' ')}", _text(value)))
    return page.section("Settings", page.settings(values))


def _footer(run: Run, results: dict[str, Any]) -> str:
    versions = ", ".join(f"{name} {version}" for name, version in run.config["versions"].items())
    seconds = results.get("seconds")
    spent = f" Trained in {seconds:.0f} s." if seconds else ""
    return f"<footer>Data: {escape(run.config['data']['source'])}.{spent} {escape(versions)}.</footer>"


def _text(value: Any) -> str:
    if isinstance(value, float):
        return f"{value:g}"
    if isinstance(value, list):
        return ", ".join(_text(entry) for entry in value)
    return "none" if value is None else str(value)


def _both(draw: Callable[[Theme], bytes], text: str) -> str:
    return page.picture(draw(LIGHT), draw(DARK), text)
