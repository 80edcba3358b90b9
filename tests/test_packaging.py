"""What a wheel contains, and what is installed beside it."""

import re
from fnmatch import fnmatch
from pathlib import Path

import pytest
from packaging.requirements import Requirement

import accord

try:
    import tomllib
except ImportError:  # Python 3.10
    import tomli as tomllib

ROOT = Path(__file__).resolve().parents[1]
PACKAGE = Path(accord.__file__).parent
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())
PIN = re.compile(r"^(?P<name>[a-z0-9-]+)==(?P<version>\S+)(?P<rest>.*)$")


def pins(name):
    """The blocks of a constraints file by package; a package may be pinned once for each range of Pythons."""
    found = {}
    for block in re.split(r"\n(?=\S)", (ROOT / name).read_text()):
        pinned = PIN.match(block.splitlines()[0])
        if pinned:
            found.setdefault(pinned["name"], []).append((pinned["version"], block))
    return found


def test_every_file_of_the_package_is_in_the_wheel():
    patterns = PROJECT["tool"]["setuptools"]["package-data"]["accord"]
    others = [path for path in PACKAGE.rglob("*") if path.is_file() and path.suffix not in (".py", ".pyc")]
    names = [path.relative_to(PACKAGE).as_posix() for path in others]
    assert any(name.endswith(".cpp") for name in names)
    assert [name for name in names if not any(fnmatch(name, pattern) for pattern in patterns)] == []


@pytest.mark.parametrize("name", ["constraints.txt", "constraints-dev.txt"])
def test_every_pin_has_a_hash(name):
    found = pins(name)
    assert len(found) > 10
    assert [package for package, blocks in found.items() for _, block in blocks if "--hash=sha256:" not in block] == []
    assert "torch" not in found  # its CPU build has no hash that holds everywhere


def test_every_requirement_is_pinned_within_its_range():
    runtime, development = pins("constraints.txt"), pins("constraints-dev.txt")
    extra = PROJECT["project"]["optional-dependencies"]["dev"]
    for line, known in [
        *((line, runtime) for line in PROJECT["project"]["dependencies"]),
        *((line, development) for line in extra),
    ]:
        wanted = Requirement(line)
        if wanted.name != "torch":
            versions = [version for version, _ in known[wanted.name]]
            assert all(wanted.specifier.contains(version) for version in versions), (line, versions)


def test_one_version_of_torch_is_installed_and_compiled_for():
    made = re.search(r"^TORCH := (torch==\S+)$", (ROOT / "Makefile").read_text(), re.MULTILINE)[1]
    uv = PROJECT["tool"]["uv"]
    assert made in uv["constraint-dependencies"]
    assert made == f"torch=={uv['dependency-metadata'][0]['version']}"


def test_no_file_of_the_package_index_names_a_host():
    for name in ("constraints.txt", "constraints-dev.txt", "pyproject.toml"):
        assert "://" not in (ROOT / name).read_text(), name


def test_pins_are_for_every_supported_python():
    made = (ROOT / "Makefile").read_text()
    oldest = re.search(r"--universal --python-version (\S+)", made)[1]
    assert PROJECT["project"]["requires-python"] == f">={oldest}"
    for name in ("constraints.txt", "constraints-dev.txt"):
        markers = [Requirement(block.splitlines()[0].rstrip(" \\")).marker for _, block in sum(pins(name).values(), [])]
        for minor in range(int(oldest.split(".")[1]), 14):
            here = {"python_version": f"3.{minor}", "python_full_version": f"3.{minor}.0", "sys_platform": "linux"}
            assert sum(marker is None or marker.evaluate(here) for marker in markers) > 10, (name, minor)


def test_the_licence_of_every_required_package_is_listed():
    rows = [line.split(" | ") for line in (ROOT / "docs" / "licences.md").read_text().splitlines() if line[:2] == "| "]
    listed = {row[0].removeprefix("| "): row[2] for row in rows[1:]}
    here = {"sys_platform": "linux", "python_version": "3.11", "python_full_version": "3.11.0"}
    for name, blocks in pins("constraints.txt").items():
        markers = [Requirement(block.splitlines()[0].rstrip(" \\")).marker for _, block in blocks]
        if any(marker is None or marker.evaluate(here) for marker in markers):
            assert listed.get(name, "").strip(), name


def test_ci_uses_the_wheel_in_an_empty_environment():
    assert "make wheel" in (ROOT / ".ci" / "run").read_text().splitlines()
    recipe = re.search(r"^wheel:.*\n((?:\t.*\n)+)", (ROOT / "Makefile").read_text(), re.MULTILINE)[1]
    for step in (
        "pip wheel",
        "--build-option=--kernels",
        "venv --without-pip",
        "--require-hashes --requirement constraints.txt",
        "use_wheel.py",
    ):
        assert step in recipe, step
