"""What the guide adds to mkdocs.

- Pages of docs/ link to files outside it (results, benchmarks, the changelog). These files, and the files that they
  link to, become part of the site under repository/, so that no link is dead. A folder without a README gets a list.
- The navigation may hold patterns, so that a new page needs no entry.
- A picture `name.png` with a `name.dark.png` beside it follows the colours of the page.
- A figure such as 1.2 ± 0.3 is kept on one line.
- A site that would load anything from another host is reported, and fails a strict build.
"""

import logging
import os
import re
from collections.abc import Callable, Iterator
from pathlib import Path, PurePosixPath
from typing import Any

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"
OUTSIDE = "repository"  # folder of the site with files from outside docs/
LINK = re.compile(r"\]\(([^)\s#]+)(#[^)\s]*)?\)")
PICTURE = re.compile(r"!\[([^\]]*)\]\(([^)\s]+)\.png\)")
LOADED = re.compile(r"""<(?:script|link|img|iframe|source)\b[^>]*?\b(?:src|href)=["']?((?:https?:)?//[^"'\s>]+)""")
LOADED_BY_STYLE = re.compile(r"""(?:@import\s+|url\()["']?((?:https?:)?//[^"')\s]+)""")

log = logging.getLogger("mkdocs.hooks.guide")


def uri_of(path: Path) -> str:
    """Where a file or folder of the repository lies in the site's sources."""
    if path.is_dir():
        path = path / ("README.md" if (path / "README.md").is_file() else "index.md")
    if path.is_relative_to(DOCS):
        return path.relative_to(DOCS).as_posix()
    return f"{OUTSIDE}/{path.relative_to(ROOT).as_posix()}"


def path_of(uri: str) -> Path:
    """The file of the repository behind a page; of a list, a path inside its folder."""
    inside = PurePosixPath(uri)
    return ROOT.joinpath(*inside.parts[1:]) if inside.parts[0] == OUTSIDE else DOCS.joinpath(*inside.parts)


def linked(text: str, page: Path) -> Iterator[Path]:
    """Files and folders of the repository that a page links to."""
    for target, _ in LINK.findall(text):
        found = _resolve(target, page)
        if found is not None:
            yield found


def list_folder(folder: Path) -> str:
    """A page with the content of a folder that has no README."""
    rows = [f"- [{entry.name}]({entry.name})" for entry in sorted(folder.iterdir())]
    return "\n".join([f"# {folder.relative_to(ROOT).as_posix()}", "", *rows, ""])


def rewrite_links(text: str, uri: str) -> str:
    """The text with links to files of the repository as links within the site."""
    page = path_of(uri)

    def rewrite(link: re.Match[str]) -> str:
        found = _resolve(link[1], page)
        if found is None:
            return link[0]
        target = os.path.relpath(uri_of(found), PurePosixPath(uri).parent)
        return f"]({PurePosixPath(target).as_posix()}{link[2] or ''})"

    return LINK.sub(rewrite, text)


def add_dark_pictures(text: str, exists: Callable[[str], bool]) -> str:
    """Both versions of each picture that has a dark one; the theme shows the one that fits."""

    def both(picture: re.Match[str]) -> str:
        title, name = picture[1], picture[2]
        if not exists(f"{name}.dark.png"):
            return picture[0]
        return f"![{title}]({name}.png#only-light)![{title}]({name}.dark.png#only-dark)"

    return PICTURE.sub(both, text)


def loaded_elsewhere(text: str) -> list[str]:
    """Addresses on other hosts that a page or style sheet would load; links that a reader may follow do not count."""
    return sorted({*LOADED.findall(text), *LOADED_BY_STYLE.findall(text)})


def expand_nav(nav: list[Any]) -> list[Any]:
    """The navigation with each pattern replaced by the pages of docs/ that match it and are named nowhere else."""
    named = {entry for entry in _entries(nav) if "*" not in entry}

    def pages(entry: Any) -> list[Any]:
        if isinstance(entry, dict):
            return [{title: expand(part) if isinstance(part, list) else part for title, part in entry.items()}]
        if "*" not in entry:
            return [entry]
        found = (path.relative_to(DOCS).as_posix() for path in sorted(DOCS.glob(entry)))
        return [page for page in found if page not in named]

    def expand(entries: list[Any]) -> list[Any]:
        return [page for entry in entries for page in pages(entry)]

    return expand(nav)


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    """Fill in the navigation."""
    config.nav = expand_nav(config.nav or [])
    return config


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add what pages link to outside docs/, and what those files link to."""
    texts = [(path_of(file.src_uri), file.content_string) for file in files.documentation_pages()]
    waiting = [path for page, text in texts for path in linked(text, page)]
    waiting += [path_of(uri) for uri in _entries(config.nav) if uri.startswith(f"{OUTSIDE}/")]
    while waiting:
        path = waiting.pop()
        uri = uri_of(path)
        if files.get_file_from_path(uri) is not None:
            continue
        source = path_of(uri)
        if source.is_file():
            files.append(File.generated(config, uri, abs_src_path=str(source)))
        else:
            files.append(File.generated(config, uri, content=list_folder(path)))
        if uri.endswith(".md"):
            waiting += linked(source.read_text() if source.is_file() else list_folder(path), source)
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Rewrite links and pictures of a page."""
    here = path_of(page.file.src_uri).parent
    markdown = add_dark_pictures(markdown, lambda name: (here / name).is_file())
    markdown = markdown.replace(" ± ", "\u00a0±\u00a0")  # no line break inside a figure
    return rewrite_links(markdown, page.file.src_uri)


def on_post_build(config: MkDocsConfig) -> None:
    """Report what the site would load from other hosts."""
    site = Path(config.site_dir)
    for path in sorted([*site.rglob("*.html"), *site.rglob("*.css")]):
        for address in loaded_elsewhere(path.read_text()):
            log.warning(f"{path.relative_to(site)} loads {address}: the guide must work offline")


def _resolve(target: str, page: Path) -> Path | None:
    """What a link leads to, if it is inside the repository."""
    if "://" in target or target.startswith(("/", "mailto:")):
        return None
    found = (page.parent / target).resolve()
    return found if found.exists() and found.is_relative_to(ROOT) else None


def _entries(nav: object) -> Iterator[str]:
    """Pages and patterns of the navigation, at any depth."""
    if isinstance(nav, str):
        yield nav
    for part in nav.values() if isinstance(nav, dict) else nav if isinstance(nav, list) else ():
        yield from _entries(part)
