"""What people see: two consoles, and errors as one red line instead of a traceback."""

from typing import Any

import typer
from rich.console import Console
from rich.text import Text
from typer.core import TyperGroup

from accord.errors import AccordError

BAD_INPUT = 2  # exit code where what was asked for cannot be done
INTERRUPTED = 130  # the shell's own number for Ctrl-C


def output() -> Console:
    """For results; made anew, so that it follows redirections."""
    return Console(highlight=False)


def messages() -> Console:
    """For trouble and for progress, so that results can be piped."""
    return Console(stderr=True, highlight=False)


class Commands(TyperGroup):
    """Turns errors that are meant for people into one line and exit code 2; other ones are bugs and show as such."""

    def invoke(self, ctx: Any) -> object:
        """Run the command that was asked for."""
        try:
            return super().invoke(ctx)
        except (AccordError, OSError) as error:
            message = str(error) if isinstance(error, AccordError) else describe_os_error(error)
            messages().print(Text.assemble(("Error: ", "bold red"), (message, "red")), soft_wrap=True)
            raise typer.Exit(BAD_INPUT) from error
        except KeyboardInterrupt as stop:
            messages().print("[yellow]Stopped.[/] What was done so far is kept: the same command goes on from there.")
            raise typer.Exit(INTERRUPTED) from stop


def describe_os_error(error: OSError) -> str:
    """Which file, and what the system says about it."""
    reason = error.strerror or str(error)
    return f"{error.filename}: {reason}." if error.filename else f"{reason}."
