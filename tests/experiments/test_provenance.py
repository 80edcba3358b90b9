"""Provenance: a commit is recorded only for a checkout of Accord."""

import subprocess

import pytest

from accord.experiments import _provenance, provenance

OWN_PROJECT = '[project]\nname = "accord"\n'


@pytest.fixture
def installed(tmp_path, monkeypatch):
    """Pretend that the package lies in a folder of a fresh repository, and return its commit."""

    def commit(package, project, tracked=True):
        where = tmp_path / package
        module = where / "experiments" / "_provenance.py"
        module.parent.mkdir(parents=True)
        (where / "__init__.py").write_text("")
        module.write_text("")
        (tmp_path / "pyproject.toml").write_text(project)
        git(tmp_path, "init", "-q")
        git(tmp_path, "add", "pyproject.toml", *([package] if tracked else []))
        git(tmp_path, "-c", "user.name=a", "-c", "user.email=a@b", "commit", "-qm", "first")
        monkeypatch.setattr(_provenance, "__file__", str(module))
        return git(tmp_path, "rev-parse", "--short=12", "HEAD")

    monkeypatch.delenv("ACCORD_COMMIT", raising=False)
    return commit


def git(folder, *arguments):
    done = subprocess.run(["git", *arguments], cwd=folder, capture_output=True, text=True, check=True)
    return done.stdout.strip()


def test_a_checkout_of_accord_gives_its_commit(installed):
    commit = installed("accord", OWN_PROJECT)
    assert provenance()["commit"] == commit


def test_changed_files_are_marked(installed, tmp_path):
    commit = installed("accord", OWN_PROJECT)
    (tmp_path / "accord" / "__init__.py").write_text("changed = 1\n")
    assert provenance()["commit"] == f"{commit}-dirty"


@pytest.mark.parametrize(
    ("package", "project", "tracked"),
    [
        (".venv/lib/site-packages/accord", '[project]\nname = "mine"\n', False),
        (".venv/lib/site-packages/accord", OWN_PROJECT, False),  # a checkout whose environment has another version
        ("accord", '[project]\nname = "mine"\n', True),  # copied into somebody's own project
        ("accord", OWN_PROJECT, False),
    ],
)
def test_the_commit_of_another_repository_is_not_recorded(installed, package, project, tracked):
    installed(package, project, tracked)
    assert provenance()["commit"] == "unknown"


def test_a_package_outside_any_repository_has_no_commit(tmp_path, monkeypatch):
    monkeypatch.delenv("ACCORD_COMMIT", raising=False)
    monkeypatch.setattr(_provenance, "__file__", str(tmp_path / "accord" / "experiments" / "_provenance.py"))
    assert provenance()["commit"] == "unknown"


def test_a_copy_without_history_can_be_given_its_commit(monkeypatch):
    monkeypatch.setenv("ACCORD_COMMIT", "abc123")
    assert provenance()["commit"] == "abc123"


def test_git_runs_once_in_a_process(installed, monkeypatch):
    installed("accord", OWN_PROJECT)
    first = provenance()["commit"]
    monkeypatch.setattr(subprocess, "run", lambda *_, **__: pytest.fail("git was called again"))
    assert provenance()["commit"] == first
