"""What a reader finds in files: problems with file and row, and how each column was understood."""

from dataclasses import dataclass, field
from pathlib import Path

from accord.errors import AccordError, GraphError, TooLargeError

MOST_PROBLEMS = 10_000  # that are kept; a file may have one in every cell


@dataclass(frozen=True)
class ColumnUse:
    """How one column of a table is read."""

    file: str
    column: str
    use: str


@dataclass
class Findings:
    """Collects what is wrong with files, or raises the first problem.

    Args:
        collect: keep problems and go on reading, as `accord data check` does.
    """

    collect: bool = False
    problems: list[str] = field(default_factory=list)
    left_out: int = 0  # problems beyond the most that are kept
    columns: dict[tuple[str, str], ColumnUse] = field(default_factory=dict)  # by the file's name and the column
    mapping: Path | None = None  # the mapping file that was used

    def problem(self, message: str) -> None:
        """Report something that must be corrected."""
        self.error(GraphError(message))

    def error(self, error: AccordError) -> None:
        """Report an error that was raised, or would be."""
        if not self.collect or isinstance(error, TooLargeError):
            raise error
        if len(self.problems) < MOST_PROBLEMS:
            self.problems.append(str(error))
        else:
            self.left_out += 1

    def use(self, file: Path, column: str, use: str) -> None:
        """Note how a column was read; of files with the same name in several folders, the first counts."""
        self.columns.setdefault((file.name, column), ColumnUse(file.name, column, use))


class Unreadable(Exception):
    """A file cannot be read any further; its problems are in the findings."""
