"""What the command line prints: results, messages, and errors and warnings as one line each."""

import re
import warnings
from typing import Any, TextIO

import typer
from rich.console import Console
from rich.text import Text
from typer.core import TyperGroup

from accord._launched import launched_rank
from accord.errors import (
    AccordError,
    ConvergenceWarning,
    DamagedFileWarning,
    DepartureWarning,
    DivergenceWarning,
    MajorityWarning,
    MissingValuesWarning,
    ProcessLostError,
    UnseenCategoriesWarning,
    UnseenStatesWarning,
    UnusedLabelsWarning,
)

BAD_INPUT = 2  # exit code of a command that was refused
LOST_PROCESS = 3  # exit code of a process that stopped because another one of its job did
INTERRUPTED = 130  # exit code after Ctrl-C, by the shell's convention
OWN_WARNINGS = (
    ConvergenceWarning,
    DamagedFileWarning,
    DepartureWarning,
    DivergenceWarning,
    MajorityWarning,
    MissingValuesWarning,
    UnseenCategoriesWarning,
    UnseenStatesWarning,
    UnusedLabelsWarning,
)
# The library's errors begin with the Python name of what was called; the command line has its own names, or none.
COMMAND_LINE_NAMES = {
    "NodeClassifier": "",
    "Explanation": "",
    "hold_out": "",
    "eliminate_beliefs": "",
    "load_benchmark": "",
    "maximise": "",
    "preset_recipe": "",
    "propagate": "",
    "score_answers": "",
    "CombinationGrid": "recipe.grid: ",
    "GameOptions": "recipe.game: ",
    "RefinementOptions": "recipe.refinement: ",
    "TrainingOptions": "recipe.training: ",
    "CRFRecipe": "recipe: ",
    "GMNNRecipe": "recipe: ",
    "GNNRecipe": "recipe: ",
    "SPNRecipe": "recipe: ",
}
PYTHON_NAME = re.compile(rf"^({'|'.join(COMMAND_LINE_NAMES)})(\.\w+)?: ")
PYTHON_SWITCH = re.compile(r"Set (\w+)=False\.")


def output() -> Console:
    """The console for results; made for each use, so that it follows redirections."""
    return Console(highlight=False)


def messages() -> Console:
    """The console for progress and errors: standard error, so that results can be piped."""
    return Console(stderr=True, highlight=False)


def counted(number: int, noun: str) -> str:
    """A number of things in words, such as "1 block" or "2 blocks"."""
    return f"{number} {noun}{'' if number == 1 else 's'}"


class Commands(TyperGroup):
    """Shows Accord's own errors as one line with exit code 2; any other exception is a bug and keeps its traceback."""

    def invoke(self, ctx: Any) -> object:
        """Run the command of a context."""
        try:
            with warnings.catch_warnings():
                warnings.showwarning = show_warning
                return super().invoke(ctx)
        except (AccordError, OSError) as error:
            message = in_command_line_words(error) if isinstance(error, AccordError) else describe_os_error(error)
            # Of several processes, any may fail: the message says which one did.
            title = f"Error in process {launched_rank()}: " if launched_rank() else "Error: "
            messages().print(Text.assemble((title, "bold red"), (message, "red")), soft_wrap=True)
            raise typer.Exit(LOST_PROCESS if isinstance(error, ProcessLostError) else BAD_INPUT) from error
        except KeyboardInterrupt as stop:
            messages().print("[yellow]Stopped.[/] Completed work is kept. Run the same command again to continue.")
            raise typer.Exit(INTERRUPTED) from stop


def in_command_line_words(error: AccordError) -> str:
    """The message of an error, with the command line's names in place of Python's."""
    message = PYTHON_NAME.sub(lambda found: COMMAND_LINE_NAMES[found[1]], str(error), count=1)
    return PYTHON_SWITCH.sub(lambda found: f"Leave out --{found[1].replace('_', '-')}.", message)


def describe_os_error(error: OSError) -> str:
    """The file of a system error, and the reason."""
    reason = error.strerror or str(error)
    return f"{error.filename}: {reason}." if error.filename else f"{reason}."


def show_warning(
    message: Warning | str,
    category: type[Warning],
    filename: str,
    lineno: int,
    file: TextIO | None = None,
    line: str | None = None,
) -> None:
    """Print one of Accord's warnings as one line, and any other as Python does; of several processes, in the first."""
    if launched_rank():
        return
    if issubclass(category, OWN_WARNINGS):
        messages().print(Text.assemble(("Warning: ", "bold yellow"), (str(message), "yellow")), soft_wrap=True)
    else:
        messages().print(warnings.formatwarning(message, category, filename, lineno, line), markup=False, end="")
