"""Mapping files: which tables and columns of a folder hold what."""

import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any

from accord.datasets._sources import check_text_file
from accord.errors import DataNotFoundError, InputTypeError, OptionError

MAPPING_FILE = "accord.toml"
SPLIT_FOLDERS = ("train", "val", "test")
ITEM_FORMS = ("items", "numbers")


@dataclass(frozen=True, kw_only=True)
class NodeTable:
    """The table of nodes. What is None is guessed by its usual names."""

    file: str | None = None
    id: str | None = None  # names the nodes; edges refer to it
    label: tuple[str, ...] | None = None  # one column, or several tasks
    split: str | None = None  # holds train, val or test
    graph: str | None = None  # names the graph of each node, where a table has several
    features: tuple[str, ...] | None = None  # None: every other column
    ignore: tuple[str, ...] = ()
    categories: tuple[str, ...] = ()  # columns of text even if it looks like numbers
    missing: tuple[str, ...] = ()  # text that stands for a missing value, besides nothing


@dataclass(frozen=True, kw_only=True)
class EdgeTable:
    """The table of edges."""

    file: str | None = None
    source: str | None = None
    target: str | None = None
    graph: str | None = None
    attributes: tuple[str, ...] | None = None  # None: every other column
    ignore: tuple[str, ...] = ()
    categories: tuple[str, ...] = ()
    missing: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class ItemFile:
    """A .json file of further features: an object with a list for each node id."""

    file: str | None = None
    name: str = "item"  # features are called item=17
    form: str = "items"  # what occurs at the node, each counted; or "numbers": as many at every node


@dataclass(frozen=True, kw_only=True)
class TableMapping:
    """Which tables and columns of a folder hold what; `read_mapping` reads it from a file."""

    nodes: NodeTable = field(default_factory=NodeTable)
    edges: EdgeTable = field(default_factory=EdgeTable)
    features: ItemFile = field(default_factory=ItemFile)
    path: Path | None = None  # of the mapping file


SECTIONS: dict[str, type[NodeTable] | type[EdgeTable] | type[ItemFile]] = {
    "nodes": NodeTable,
    "edges": EdgeTable,
    "features": ItemFile,
}
LISTS = {"label", "features", "attributes", "ignore", "categories", "missing"}


def read_mapping(path: str | Path) -> TableMapping:
    """Read a mapping file: TOML with the sections `nodes`, `edges` and `features`."""
    path = Path(path)
    if not path.exists():
        raise DataNotFoundError(f"{path}: there is no such mapping file. Write one, or leave out --mapping.")
    check_text_file(path)
    if sys.version_info >= (3, 11):
        import tomllib
    else:
        import tomli as tomllib  # Python 3.10 has no reader of its own

    try:
        content = tomllib.loads(path.read_text(encoding="utf-8-sig"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError, RecursionError) as error:
        raise OptionError(f"{path}: is not valid TOML ({error}). Correct it there.") from error
    return mapping_from(content, str(path), path)


def mapping_from(content: Mapping[str, Any], where: str = "mapping", path: Path | None = None) -> TableMapping:
    """A mapping from nested dictionaries, as a mapping file has them."""
    unknown = [name for name in content if name not in SECTIONS]
    if unknown:
        raise OptionError(f"{where}: there is no section {unknown[0]!r}. Choose among {', '.join(SECTIONS)}.")
    parts: dict[str, Any] = {}
    for name, kind in SECTIONS.items():
        given = content.get(name, {})
        if not isinstance(given, Mapping):
            raise InputTypeError(
                f"{where}: {name} is a {type(given).__name__}, not a section. Write [{name}] above it."
            )
        known = [item.name for item in fields(kind)]
        for key in given:
            if key not in known:
                raise OptionError(f"{where}: [{name}] has no key {key!r}. Choose among {', '.join(known)}.")
        values: dict[str, Any] = {k: _value(f"{where}: [{name}] {k}", k, value) for k, value in given.items()}
        if values.get("file") is not None and Path(values["file"]).name != values["file"]:
            raise OptionError(f"{where}: [{name}] file is {values['file']!r}. Name a file of the graph's own folder.")
        parts[name] = kind(**values)
    if parts["features"].form not in ITEM_FORMS:
        raise OptionError(f"{where}: [features] form is {parts['features'].form!r}. Choose {' or '.join(ITEM_FORMS)}.")
    return TableMapping(**parts, path=path)


def change_mapping(mapping: TableMapping | None, entries: Sequence[str]) -> TableMapping:
    """A mapping with single entries replaced, each written `nodes.label=page_type`; lists are separated by commas."""
    mapping = mapping or TableMapping()
    content: dict[str, dict[str, Any]] = {
        name: {item.name: value for item in fields(kind) if (value := getattr(getattr(mapping, name), item.name))}
        for name, kind in SECTIONS.items()
    }
    for entry in entries:
        key, equals, value = entry.partition("=")
        section, _, name = key.strip().partition(".")
        if not equals or section not in content or not name:
            raise OptionError(f"--map {entry!r}: write SECTION.KEY=VALUE, such as nodes.label=page_type.")
        content[section][name] = value.split(",") if name in LISTS else value
    return mapping_from(content, "--map", mapping.path)


def _value(where: str, key: str, value: object) -> str | tuple[str, ...]:
    if isinstance(value, str) and value.strip() and "\0" not in value:
        return (value.strip(),) if key in LISTS else value.strip()
    if key in LISTS and isinstance(value, Sequence) and all(isinstance(item, str) for item in value):
        return tuple(item.strip() for item in value)
    needed = "a list of names" if key in LISTS else "a name"
    raise InputTypeError(f"{where} is {str(value)[:80]!r}, but {needed} is needed, in quotes.")


def find_mapping(path: Path) -> TableMapping | None:
    """The mapping file of a graph or folder: in the folder itself, or in that of its split or data folder; or None."""
    folder = path.absolute() if path.is_dir() else path.absolute().parent
    folders = [folder]
    if folder.name in SPLIT_FOLDERS:
        folders.append(folder.parent)
    elif folder.parent.name in SPLIT_FOLDERS:
        folders += [folder.parent, folder.parent.parent]
    for place in folders:
        if (place / MAPPING_FILE).is_file():
            return read_mapping(place / MAPPING_FILE)
    return None
