"""`accord reproduce`: arguments, files and errors."""

import pytest
from typer.testing import CliRunner

from accord.app.cli import app
from accord.app.commands.reproduce import parse_seeds
from accord.errors import OptionError


def test_seeds_are_parsed():
    assert parse_seeds("1-5") == (1, 2, 3, 4, 5)
    assert parse_seeds("1,2, 7") == (1, 2, 7)
    assert parse_seeds("3-4,3") == (3, 4)
    for bad in ("", "a", "5-1", "1-", "-3"):
        with pytest.raises(OptionError, match="1-5 or 1,2,7"):
            parse_seeds(bad)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [(["main"], "no table 'main'"), (["citation", "--encoder", "sage"], "'sage' is not in this table")],
)
def test_unknown_names_are_refused(arguments, message, tmp_path):
    result = CliRunner().invoke(app, ["reproduce", *arguments, "--out", str(tmp_path)])
    assert result.exit_code == 2 and message in " ".join(result.output.split())


@pytest.mark.data("planetoid_citeseer.npz")
def test_a_slice_of_the_citation_table(tmp_path):
    arguments = ["reproduce", "citation", "--benchmark", "citeseer*", "--encoder", "gcn", "--preset", "paper"]
    result = CliRunner().invoke(app, [*arguments, "--seeds", "1-2", "--max-epochs", "2", "--out", str(tmp_path)])
    assert result.exit_code == 0, result.output
    assert "| citeseer* | gcn | paper | 2 |" in result.output.replace("\n", "")
    assert (tmp_path / "citation" / "paper-citeseer-gcn.json").is_file()
    assert "accord reproduce citation" in (tmp_path / "citation" / "README.md").read_text()


def test_lines_of_the_table_are_not_wrapped(monkeypatch, tmp_path):
    row = "| " + " | ".join(["citeseer*"] * 20) + " |"
    monkeypatch.setattr("accord.app.commands.reproduce.TABLES", {"citation": lambda *args, **options: row})
    result = CliRunner().invoke(app, ["reproduce", "citation", "--out", str(tmp_path)], env={"COLUMNS": "80"})
    assert result.stdout == row + "\n"
