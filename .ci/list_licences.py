"""Write docs/licences.md: the licence of every package that Accord requires, directly or through another package."""

import re
import sys
from importlib.metadata import Distribution, PackageNotFoundError, distribution
from pathlib import Path

from packaging.requirements import Requirement

HEAD = """# Licences of the packages that Accord requires

Written by `make licences` from the metadata of the installed packages, on Linux with Python 3.11. Accord itself is
under the Apache License 2.0. None of these packages is copied into Accord. Its wheel contains one file of others:
Cytoscape.js 3.34.4 for the page of `accord serve`, under the MIT licence
([text](../accord/app/server/page/vendor/cytoscape.LICENSE.txt)).

| package | version | licence | required by |
|---|---|---|---|
"""
LONG = 60  # some packages put the text of their licence where its name belongs
PREFIX = "License :: OSI Approved :: "


def licence(package: Distribution) -> str:
    """The licence as the package states it: as an SPDX expression, in classifiers, or in words."""
    data = package.metadata
    expression = data.get("License-Expression")
    classifiers = [line.removeprefix(PREFIX) for line in data.get_all("Classifier", []) if line.startswith(PREFIX)]
    words = (data.get("License") or "").strip()
    return expression or ", ".join(classifiers) or (words if words and len(words) < LONG else "see its LICENSE file")


def requirements(package: Distribution) -> set[str]:
    """Names of the packages that a package requires here, without its extras."""
    parsed = (Requirement(line) for line in package.requires or [])
    return {normal(entry.name) for entry in parsed if entry.marker is None or entry.marker.evaluate({"extra": ""})}


def normal(name: str) -> str:
    """A name as the package index spells it."""
    return re.sub(r"[-_.]+", "-", name).lower()


def collect(root: str) -> dict[str, tuple[Distribution, set[str]]]:
    """Every required package with the packages that require it."""
    found: dict[str, tuple[Distribution, set[str]]] = {}
    waiting = [(name, root) for name in requirements(distribution(root))]
    while waiting:
        name, parent = waiting.pop()
        if name in found:
            found[name][1].add(parent)
            continue
        try:
            package = distribution(name)
        except PackageNotFoundError:
            sys.exit(f"{name}: is required by {parent}, but not installed. Run `make setup` first.")
        found[name] = (package, {parent})
        waiting += [(other, name) for other in requirements(package)]
    return found


def main(path: Path) -> None:
    """Write the table."""
    rows = [
        f"| {name} | {package.version} | {licence(package)} | {', '.join(sorted(parents))} |"
        for name, (package, parents) in sorted(collect("accord").items())
    ]
    path.write_text(HEAD + "\n".join(rows) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
