"""The report: the paper's tables, figures and claims beside ours, as one HTML page and as Markdown."""

import os
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from accord._files import write_bytes, write_text
from accord.drawing import DARK, LIGHT, page
from accord.experiments._paper import RESULT_TABLES, paper_numbers
from accord.experiments._results import markdown_table
from accord.experiments.reproduction._cells import TRAINING
from accord.experiments.reproduction._plan import Asked, all_targets, current_records, missing_tasks, task_seconds, tier
from accord.experiments.reproduction._results import Results
from accord.experiments.reproduction.report._claims import UNKNOWN, judge
from accord.experiments.reproduction.report._comparisons import CLAIMS
from accord.experiments.reproduction.report._figures import Picture, pictures
from accord.experiments.reproduction.report._summaries import (
    ablation_rows,
    fair_rows,
    mixed_note,
    overlap_rows,
    provenance_rows,
    search_rows,
)
from accord.experiments.reproduction.report._tables import (
    FAR,
    GIVEN,
    NOTES,
    PRESETS,
    TITLES,
    closeness,
    filled,
    table_lines,
)
from accord.experiments.reproduction.report._texts import ABLATION, DIFFERENCES, FAIR, MARKS, PRESET_TEXTS, RULE, TIERS

TITLE = "The reproduction of the paper"
HTML, MARKDOWN = "report.html", "README.md"


@dataclass(frozen=True)
class Part:
    """A section of the report."""

    anchor: str
    title: str
    texts: tuple[str, ...] = ()
    tables: tuple[tuple[Sequence[str], Sequence[Sequence[str]], Sequence[str], bool], ...] = ()
    pictures: tuple[Picture, ...] = field(default=())


def write_report(folder: Path, results: Results, document: Path | None = None) -> str:
    """Write the page and the Markdown beside the store; returns the summary.

    Args:
        folder: of the store.
        results: what the store holds.
        document: also write the Markdown there, for instance docs/REPRODUCTION.md; pictures are linked.
    """
    parts = report_parts(results)
    for picture in (picture for part in parts for picture in part.pictures):
        write_bytes(folder / f"{picture.name}.png", picture.draw(LIGHT))
    write_text(folder / HTML, html_report(parts))
    write_text(folder / MARKDOWN, markdown_report(parts, ""))
    if document is not None:
        relative = os.path.relpath(folder, document.parent)
        write_text(document, markdown_report(parts, f"{relative}/"))
    return "\n".join(parts[0].texts)


def report_parts(results: Results) -> list[Part]:
    """All sections, in order."""
    drawn = pictures(results)
    parts = [Part("summary", "Summary", summary(results)), _claims(results)]
    for table in (*RESULT_TABLES[:7], 12, 13, 8):
        head, lines = table_lines(results, table)
        rows = [[line.title, *line.cells] for line in lines]
        kinds = [GIVEN if line.whose == GIVEN else "own" for line in lines]
        notes = [NOTES.get(table, ""), mixed_note(results) if table in (2, 12) else ""]
        parts.append(
            Part(
                f"table-{table}",
                f"Table {table}. {TITLES[table]}",
                tuple(note for note in notes if note),
                ((["", *head], rows, kinds, False),),
            )
        )
    figures = tuple(picture for picture in drawn if not picture.name.startswith("figure-5"))
    parts.append(Part("figures", "Figures 2 to 4", (_missing_figures(figures),), pictures=figures))
    parts.append(_ablation(results, tuple(picture for picture in drawn if picture.name.startswith("figure-5"))))
    parts.append(_fair(results))
    differences = (["", "what"], [list(pair) for pair in DIFFERENCES], (), True)
    parts.append(Part("differences", "What differs, and slips in the paper", tables=(differences,)))
    parts.append(_rest(results))
    return parts


def summary(results: Results) -> tuple[str, ...]:
    """The counts that matter."""
    total = sum(number.table in RESULT_TABLES for number in paper_numbers())
    by_preset = {preset: len(filled(results, preset)) for preset in PRESETS}
    anyhow = {id(number) for preset in PRESETS for number, _ in filled(results, preset)}
    near = [abs(gap) <= FAR for _, _, gap in closeness(results)]
    texts = [
        f"The paper's result tables have {total} numbers. {len(anyhow)} of them have a result of ours beside them: "
        + ", ".join(f"{count} of {PRESETS[preset]}" for preset, count in by_preset.items())
        + ".",
        PRESET_TEXTS,
        MARKS,
    ]
    if near:
        texts.insert(
            1,
            f"Preset authors is within {FAR:.0f} of the paper's standard deviations in {sum(near)} of {len(near)} "
            f"citation cells that are measured ({100 * sum(near) / len(near):.0f} %), of 78.",
        )
    if results.outdated:
        texts.append(f"{results.outdated} records of recipes that presets no longer have are left out.")
    return tuple(texts)


def _claims(results: Results) -> Part:
    rows = []
    for claim in CLAIMS:
        verdicts = [(preset, judge(results, claim, preset)) for preset in PRESETS]
        known = [(preset, verdict) for preset, verdict in verdicts if verdict.verdict != UNKNOWN]
        for preset, verdict in known or [("", verdicts[0][1])]:
            first = preset == (known[0][0] if known else "")
            start = [claim.text, claim.where] if first else ["", ""]
            rows.append([*start, PRESETS.get(preset, ""), verdict.verdict, verdict.measured, verdict.evidence])
    head = ["claim", "where", "with", "verdict", "measured", "evidence, in points"]
    return Part("claims", "The paper's claims", (RULE, *_letter(results)), ((head, rows, (), True),))


def _letter(results: Results) -> tuple[str, ...]:
    """What verdicts with preset paper rest on: the paper has no SPN with GCN or GraphSAGE on the citation sets."""
    cells = {
        cell for cell in results.by_cell if (cell.experiment, cell.preset, cell.variant) == (TRAINING, "paper", "")
    }
    if not cells:
        return ()
    encoders = sorted({cell.encoder for cell in cells})
    known = {number.encoder for number in paper_numbers() if (number.table, number.method) == (2, "spn")}
    absent = [encoder for encoder in encoders if encoder not in known]
    note = f" (the paper's Table 2 has none with {', '.join(absent)})" if absent else ""
    return (f"Verdicts with preset paper rest on SPNs with {', '.join(encoders)}{note}.",)


def _missing_figures(found: Sequence[Picture]) -> str:
    there = {picture.name.partition("-")[2][0] for picture in found}
    missing = [number for number in "234" if number not in there]
    if not missing:
        return "Figure 1 of the paper is a drawing of the method."
    return f"Figure 1 is a drawing of the method. Not measured yet: Figure {', Figure '.join(missing)}."


def _ablation(results: Results, drawn: tuple[Picture, ...]) -> Part:
    head, rows = ablation_rows(results)
    tables = ((head, rows, (), False),) if rows else ()
    return Part("ablation", "Ablation and Figure 5: normaliser, sharpness, inference", ABLATION, tables, drawn)


def _fair(results: Results) -> Part:
    found = (overlap_rows(results), fair_rows(results), search_rows(results))
    tables = [(*table, (), False) for table in found if table[1]]
    return Part("fair", "Fair play: overlap, unseen nodes, significance, search", FAIR, tuple(tables))


def _rest(results: Results) -> Part:
    """What is not measured, with the GPU time that it needs, and where records come from."""
    todo = missing_tasks(Asked(all_targets()["all"]), current_records(results.records, results.contexts), "cuda")
    rows = []
    for number, title in TIERS.items():
        mine = [task for task in todo if tier(task.cell) == number]
        if mine:
            hours = sum(task_seconds(task, [], "cuda") for task in mine) / 3600
            seeds = len({(task.cell, seed) for task in mine for seed in task.seeds})
            rows.append([title, str(len({task.cell for task in mine})), str(seeds), str(len(mine)), f"{hours:.1f}"])
    head = ["not measured yet", "cells", "cells x seeds", "tasks", "hours of one H200, estimated"]
    texts = ("`accord reproduce all --budget 25m` goes on with the first of these.",)
    tables = ((head, rows, (), False), (*provenance_rows(results), (), False))
    return Part("rest", "What is missing, and where records come from", texts, tables)


def html_report(parts: Sequence[Part]) -> str:
    """One page that loads nothing else."""
    body = [f"<h1>{TITLE}</h1>", page.paragraph("Structured Proxy Networks, ICLR 2022, beside Accord.", "soft")]
    body.append(page.links([(part.anchor, part.title.partition(".")[0].partition(":")[0]) for part in parts]))
    for part in parts:
        pieces = [page.paragraph(text.replace("`", "")) for text in part.texts]
        pieces += [page.rows_table(head, rows, kinds, words) for head, rows, kinds, words in part.tables]
        for picture in part.pictures:
            shown = page.picture(picture.draw(LIGHT), picture.draw(DARK), picture.text)
            pieces += [shown, page.caption(picture.text)]
        body.append(page.section(part.title, *pieces, anchor=part.anchor))
    return page.page(TITLE, body)


def markdown_report(parts: Sequence[Part], pictures_in: str) -> str:
    """The same as Markdown; pictures are linked."""
    lines = [f"# {TITLE}", "", "Written by `accord reproduce` from `records.jsonl`.", ""]
    for part in parts:
        lines += [f"## {part.title}", ""]
        for text in part.texts:
            lines += [text, ""]
        for head, rows, _, _ in part.tables:
            cells = [[cell.replace("*", "\\*").replace("|", "\\|") for cell in row] for row in rows]
            lines += [markdown_table([title.replace("*", "\\*") for title in head], cells), ""]
        for picture in part.pictures:
            lines += [f"![{picture.text}]({pictures_in}{picture.name}.png)", ""]
    return "\n".join(lines)
