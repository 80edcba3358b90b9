"""What a table can be asked for: names that it does not have are refused before anything is run."""

from collections.abc import Mapping, Sequence

from accord.errors import OptionError


def check_choices(table: str, choices: Mapping[str, tuple[Sequence[str], Sequence[str]]], said: str) -> None:
    """Refuse the first name that a table does not know.

    Args:
        table: its name, for the message.
        choices: by kind, the names that are wanted and those that are known.
        said: what is wrong with an unknown name.
    """
    for kind, (wanted, known) in choices.items():
        unknown = [name for name in wanted if name not in known]
        if unknown:
            raise OptionError(f"reproduce {table}: {kind} {unknown[0]!r} {said}; it has {', '.join(known)}.")
