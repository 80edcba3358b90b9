"""HTML pages in one file that loads nothing else; light or dark, as the browser prefers."""

import base64
from collections.abc import Sequence
from html import escape

STYLE = """
:root { color-scheme: light dark; --ink: #1f2328; --soft: #59636e; --line: #d8dee4; --page: #f6f7f9; --card: #ffffff;
  --accent: #2f7fd3; --tint: #eaf3fd; }
@media (prefers-color-scheme: dark) { :root { --ink: #e6edf3; --soft: #9198a1; --line: #30363d; --page: #0d1117;
  --card: #161b22; --accent: #6cb0f5; --tint: #17283c; } }
* { box-sizing: border-box; }
body { margin: 0; background: var(--page); color: var(--ink);
  font: 16px/1.55 system-ui, -apple-system, "Segoe UI", Roboto, "Helvetica Neue", sans-serif; }
main { max-width: 1160px; margin: 0 auto; padding: 40px 20px 64px; }
h1 { font-size: 1.7rem; line-height: 1.2; margin: 0 0 4px; letter-spacing: -0.01em; }
h2 { font-size: 1.1rem; margin: 0 0 12px; }
h3 { font-size: 0.95rem; margin: 20px 0 6px; font-weight: 600; }
p { margin: 0 0 12px; max-width: 105ch; }
.soft { color: var(--soft); } small { color: var(--soft); font-size: 0.82rem; }
section { background: var(--card); border: 1px solid var(--line); border-radius: 10px; padding: 20px 22px;
  margin-top: 18px; overflow-x: auto; }
table { border-collapse: collapse; width: 100%; font-variant-numeric: tabular-nums; }
th, td { text-align: right; padding: 8px 12px; border-bottom: 1px solid var(--line); white-space: nowrap; }
th { font-weight: 600; color: var(--soft); font-size: 0.85rem; }
th:first-child, td:first-child { text-align: left; padding-left: 4px; }
tr:last-child td { border-bottom: 0; }
tr.best td { background: var(--tint); font-weight: 650; }
tr.given td { color: var(--soft); border-bottom: 0; border-top: 1px solid var(--line); }
tr.own td { padding-top: 0; border-bottom: 0; } tr.own td:first-child { padding-left: 18px; font-size: 0.85rem;
  color: var(--soft); }
table.words td { white-space: normal; text-align: left; vertical-align: top; min-width: 6.5em; }
table.words th { text-align: left; } td.good { color: #1a7f37; } td.part { color: #9a6700; } td.bad { color: #cf222e; }
@media (prefers-color-scheme: dark) { td.good { color: #57ab5a; } td.part { color: #c69026; }
  td.bad { color: #f47067; } }
nav { margin: 14px 0 0; font-size: 0.88rem; line-height: 1.9; } nav a { color: var(--accent); margin-right: 14px;
  text-decoration: none; white-space: nowrap; }
.settings { columns: 2; column-gap: 32px; font-size: 0.88rem; margin: 0; }
.settings div { display: flex; justify-content: space-between; gap: 12px; break-inside: avoid;
  border-bottom: 1px dotted var(--line); padding: 3px 0; }
.settings dt { color: var(--soft); } .settings dd { margin: 0; text-align: right; overflow-wrap: anywhere; }
img { display: block; max-width: 100%; height: auto; margin: 14px auto 0; border-radius: 6px; }
footer { margin-top: 24px; color: var(--soft); font-size: 0.82rem; }
@media (max-width: 640px) { table.words thead { display: none; } table.words tr { display: block; padding: 8px 0;
    border-bottom: 1px solid var(--line); } table.words td { display: block; border: 0; padding: 1px 4px; }
  table.words td:empty { display: none; } table.words td:first-child { font-weight: 600; }
  .settings { columns: 1; } main { padding-top: 24px; } }
"""


def page(title: str, body: Sequence[str]) -> str:
    """A whole page: its title and the HTML of its parts."""
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{escape(title)}</title>\n<style>{STYLE}</style>\n</head>\n<body>\n<main>\n"
        + "\n".join(body)
        + "\n</main>\n</body>\n</html>\n"
    )


def section(title: str, *parts: str, anchor: str = "") -> str:
    """A card with a heading; links lead to it by its anchor, if it has one."""
    place = f' id="{escape(anchor)}"' if anchor else ""
    return f"<section{place}>\n<h2>{escape(title)}</h2>\n" + "\n".join(parts) + "\n</section>"


def links(entries: Sequence[tuple[str, str]]) -> str:
    """Links to the sections of a page: anchor and title of each."""
    return "<nav>" + " ".join(f'<a href="#{escape(a)}">{escape(title)}</a>' for a, title in entries) + "</nav>"


def rows_table(
    columns: Sequence[str], rows: Sequence[Sequence[str]], kinds: Sequence[str] = (), words: bool = False
) -> str:
    """A table whose rows may have a kind: "given" for figures of others, "own" for ours below them.

    Args:
        columns: all titles, that of the first column too.
        rows: cells; one that is a verdict is coloured by it.
        kinds: of the rows; none if empty.
        words: cells hold sentences, which wrap.
    """
    head = "".join(f"<th>{escape(column)}</th>" for column in columns)
    body = []
    for number, row in enumerate(rows):
        kind = f' class="{kinds[number]}"' if kinds else ""
        body.append(f"<tr{kind}>" + "".join(_cell(cell) for cell in row) + "</tr>")
    style = ' class="words"' if words else ""
    return f"<table{style}>\n<thead><tr>{head}</tr></thead>\n<tbody>\n" + "\n".join(body) + "\n</tbody>\n</table>"


def paragraph(text: str, kind: str = "") -> str:
    """A paragraph of plain text, of an optional CSS class."""
    return f'<p class="{kind}">{escape(text)}</p>' if kind else f"<p>{escape(text)}</p>"


def caption(text: str) -> str:
    """A caption under a table or picture."""
    return f"<small>{escape(text)}</small>"


def table(columns: Sequence[str], rows: Sequence[Sequence[str]], best: int) -> str:
    """A table; the first cell of a row is its title, and row number `best` is highlighted."""
    head = "".join(f"<th>{escape(column)}</th>" for column in ("", *columns))
    lines = []
    for number, row in enumerate(rows):
        cells = "".join(f"<td>{escape(cell)}</td>" for cell in row)
        lines.append(f'<tr class="best">{cells}</tr>' if number == best else f"<tr>{cells}</tr>")
    return f"<table>\n<thead><tr>{head}</tr></thead>\n<tbody>\n" + "\n".join(lines) + "\n</tbody>\n</table>"


VERDICTS = {"holds": "good", "holds in part": "part", "does not hold": "bad"}


def _cell(text: str) -> str:
    kind = VERDICTS.get(text)
    return f'<td class="{kind}">{escape(text)}</td>' if kind else f"<td>{escape(text)}</td>"


def settings(values: Sequence[tuple[str, str]]) -> str:
    """Names and values in two columns."""
    entries = "".join(f"<div><dt>{escape(name)}</dt><dd>{escape(value)}</dd></div>" for name, value in values)
    return f'<dl class="settings">{entries}</dl>'


def picture(light: bytes, dark: bytes, text: str) -> str:
    """A picture inside the page, as a PNG for light and one for dark pages; `text` describes it."""
    return (
        f'<picture><source media="(prefers-color-scheme: dark)" srcset="{_inline(dark)}">'
        f'<img alt="{escape(text)}" src="{_inline(light)}"></picture>'
    )


def _inline(png: bytes) -> str:
    return "data:image/png;base64," + base64.b64encode(png).decode()
