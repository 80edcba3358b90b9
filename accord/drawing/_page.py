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
main { max-width: 960px; margin: 0 auto; padding: 40px 20px 64px; }
h1 { font-size: 1.7rem; line-height: 1.2; margin: 0 0 4px; letter-spacing: -0.01em; }
h2 { font-size: 1.1rem; margin: 0 0 12px; }
h3 { font-size: 0.95rem; margin: 20px 0 6px; font-weight: 600; }
p { margin: 0 0 12px; } .soft { color: var(--soft); } small { color: var(--soft); font-size: 0.82rem; }
section { background: var(--card); border: 1px solid var(--line); border-radius: 10px; padding: 20px 22px;
  margin-top: 18px; overflow-x: auto; }
table { border-collapse: collapse; width: 100%; font-variant-numeric: tabular-nums; }
th, td { text-align: right; padding: 8px 12px; border-bottom: 1px solid var(--line); white-space: nowrap; }
th { font-weight: 600; color: var(--soft); font-size: 0.85rem; }
th:first-child, td:first-child { text-align: left; padding-left: 4px; }
tr:last-child td { border-bottom: 0; }
tr.best td { background: var(--tint); font-weight: 650; }
.settings { columns: 2; column-gap: 32px; font-size: 0.88rem; margin: 0; }
.settings div { display: flex; justify-content: space-between; gap: 12px; break-inside: avoid;
  border-bottom: 1px dotted var(--line); padding: 3px 0; }
.settings dt { color: var(--soft); } .settings dd { margin: 0; text-align: right; overflow-wrap: anywhere; }
img { display: block; max-width: 100%; height: auto; margin: 0 auto; border-radius: 6px; }
footer { margin-top: 24px; color: var(--soft); font-size: 0.82rem; }
@media (max-width: 640px) { .settings { columns: 1; } main { padding-top: 24px; } }
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


def section(title: str, *parts: str) -> str:
    """A card with a heading."""
    return f"<section>\n<h2>{escape(title)}</h2>\n" + "\n".join(parts) + "\n</section>"


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
