"""Where the figures of a benchmark come from: stored beside them, and told at the head of their page."""

import subprocess
from collections.abc import Mapping
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
CODE = ("accord", "benchmarks")  # figures of an earlier part of the same run may have changed files under results
DIRTY = "-dirty"
HEAD = ("accord", "torch", "numpy")

Origin = dict[str, object]


def origin(*peers: str) -> Origin:
    """Versions, hardware, threads, load, date and commit; and the files of code that differ from the commit.

    Args:
        peers: distributions that accord is compared with; None for the version of an absent one.
    """
    from accord.bench.inference._machine import describe_machine  # here: scripts also run with an old accord

    facts = describe_machine("cpu")
    commit = str(facts["commit"])
    return {
        **facts,
        "numpy": _version("numpy"),
        "peers": {name: _version(name) for name in peers},
        "commit": commit.removesuffix(DIRTY),
        "changed": _changed() if commit.endswith(DIRTY) else [],
    }


def same_code(one: Origin, other: Origin) -> bool:
    """Whether figures of both may stand in one table: nothing but date and load differs."""
    varying = {"date", "load_before", "memory_bytes"}
    return {key: one[key] for key in one if key not in varying} == {
        key: other[key] for key in other if key not in varying
    }


def told(found: Mapping[str, object]) -> str:
    """One sentence for the head of a page; figures of earlier scripts have no commit."""
    machine = [str(found["processor"])]
    for name, unit in (("instructions", ""), ("cores", " cores"), ("threads", " thread(s)")):
        machine += [f"{found[name]}{unit}"] if name in found else []
    if "load_before" in found:
        machine.append(f"load {found['load_before']:.1f} before the run")
    versions = {name: found.get(name) for name in HEAD} | dict(found.get("peers", {}))  # type: ignore[call-overload]
    libraries = ", ".join(f"{name} {number}" for name, number in versions.items() if number)
    if "commit" not in found:
        return f"{', '.join(machine)}; {libraries}; the commit was not recorded."
    changed = found["changed"]
    state = f"with changes in {', '.join(changed)}" if changed else "no code changed"  # type: ignore[arg-type]
    return f"{', '.join(machine)}; {libraries}; commit {found['commit']} ({state}), {found['date']}."


def _version(distribution: str) -> str | None:
    try:
        return version(distribution)
    except PackageNotFoundError:
        return None


def _changed() -> list[str]:
    command = ["git", "status", "--porcelain", "--", *CODE]
    found = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    return [line[3:] for line in found.splitlines()]
