import warnings

import pytest
from support.command_line import call

from accord.app.console import counted, describe_os_error, in_command_line_words, show_warning
from accord.errors import DivergenceWarning, GraphError, OptionError


@pytest.mark.parametrize(
    ("python", "command_line"),
    [
        ("NodeClassifier: features 'x' is unknown. Choose raw.", "features 'x' is unknown. Choose raw."),
        ("NodeClassifier.fit: a label is 7.", "a label is 7."),
        (
            "preset_recipe: method 'gnn' has no refinement. Set refine=False.",
            "method 'gnn' has no refinement. Leave out --refine.",
        ),
        ("TrainingOptions: clip_norm is -1.", "recipe.training: clip_norm is -1."),
        ("SPNRecipe: damping is 2.", "recipe: damping is 2."),
        ("fit.toml: the key 'sede' is unknown.", "fit.toml: the key 'sede' is unknown."),
        ("data/NodeClassifier: is empty.", "data/NodeClassifier: is empty."),
        ("GCN: dropout=2; it must be below 1.", "GCN: dropout=2; it must be below 1."),
    ],
)
def test_errors_use_the_names_of_the_command_line(python, command_line):
    assert in_command_line_words(OptionError(python)) == command_line


def test_one_thing_is_not_several():
    assert [counted(number, "block") for number in (0, 1, 2)] == ["0 blocks", "1 block", "2 blocks"]


def test_system_errors_name_the_file():
    assert describe_os_error(FileNotFoundError(2, "No such file", "a.csv")) == "a.csv: No such file."
    assert describe_os_error(OSError("disk on fire")) == "disk on fire."


def test_bugs_keep_their_traceback(monkeypatch):
    def broken(*args):
        raise ValueError("a bug")

    monkeypatch.setattr("accord.datasets.list_benchmarks", broken)
    with pytest.raises(ValueError, match="a bug"):
        call("data", "list")


def test_errors_are_one_line_with_exit_code_2(monkeypatch):
    def refuse(*args):
        raise GraphError("NodeClassifier.fit: [bold]no[/] labels.")

    monkeypatch.setattr("accord.datasets.list_benchmarks", refuse)
    result = call("data", "list")
    assert (result.exit_code, result.stdout, result.stderr) == (2, "", "Error: [bold]no[/] labels.\n")


@pytest.mark.filterwarnings("always")
def test_warnings_are_one_line(monkeypatch, capsys):
    def warn(*args):
        warnings.warn("training diverged.", DivergenceWarning, stacklevel=1)
        return []

    monkeypatch.setattr("accord.datasets.list_benchmarks", warn)
    before = warnings.showwarning
    assert call("data", "list").stderr == "Warning: training diverged.\n"
    assert warnings.showwarning is before
    show_warning("of others", UserWarning, "file.py", 3)
    assert "file.py:3: UserWarning: of others" in capsys.readouterr().err
