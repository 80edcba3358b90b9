"""The store: one file of json lines that travels. Lines are only ever added.

A line holds a record, or the context that records refer to, and a checksum. A process that is killed while it writes
leaves half a line; it is left out when the file is read, and the next line starts on its own. Records of the same
identity count once, so files of several machines can be merged in any order. A shorter run is kept beside a longer one,
and the longer one counts.
"""

import json
import os
import warnings
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from filelock import FileLock

from accord._files import fingerprint
from accord.errors import DamagedFileWarning, InputError
from accord.experiments.reproduction._records import Context, Record

CHECK = "check"
LOCK_SECONDS = 60.0  # a write takes milliseconds, so this is a process that hangs


class Store:
    """Records in a file.

    Args:
        path: of the file; it need not exist.
    """

    def __init__(self, path: Path) -> None:
        self.path = path

    def read(self) -> tuple[list[Record], dict[str, Context]]:
        """All records, each identity once, and contexts by code; damaged lines are left out with a warning."""
        records: dict[object, Record] = {}
        contexts: dict[str, Context] = {}
        damaged = []
        for number, content in self._lines():
            try:
                values = _checked(content)
                if "context" in values:
                    context = Context(**values["context"])
                    contexts[context.code] = context
                else:
                    record = Record.from_plain(values["record"])
                    records.setdefault(record.identity, record)
            except (ValueError, TypeError, LookupError, AttributeError, RecursionError):
                damaged.append(number)
        if damaged:
            warnings.warn(
                f"{self.path}: line {damaged[0]}{f' and {len(damaged) - 1} more' if damaged[1:] else ''} cannot be "
                "read, perhaps because a process was killed while it wrote. The rest is used.",
                DamagedFileWarning,
                stacklevel=2,
            )
        return list(records.values()), contexts

    def append(self, records: Iterable[Record], contexts: Iterable[Context]) -> int:
        """Add records that are not there yet, with their contexts; returns how many were added."""
        with self._locked():
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", DamagedFileWarning)  # reported by whoever reads the file to use it
                known, known_contexts = self.read()
            there = {record.identity for record in known}
            new = [record for record in records if record.identity not in there]
            codes = {record.context for record in new}
            lines = [
                _line({"context": vars(context)})
                for context in contexts
                if context.code in codes and context.code not in known_contexts
            ]
            self._write(b"".join([*lines, *(_line({"record": record.plain()}) for record in new)]))
            return len(new)

    def merge(self, other: Path) -> int:
        """Add the records of another store; returns how many were new."""
        if not other.is_file():
            raise InputError(f"{other}: there is no such file. Give the records.jsonl of another run.")
        records, contexts = Store(other).read()
        return self.append(records, contexts.values())

    def _lines(self) -> Iterator[tuple[int, bytes]]:
        if not self.path.is_file():
            return
        with self.path.open("rb") as file:
            for number, content in enumerate(file, 1):
                if content.strip():
                    yield number, content

    def _write(self, content: bytes) -> None:
        """Add whole lines by one write, after half a line that an earlier process may have left."""
        if not content:
            return
        torn = False
        if self.path.is_file() and self.path.stat().st_size:
            with self.path.open("rb") as file:
                file.seek(-1, os.SEEK_END)
                torn = file.read(1) != b"\n"
        with self.path.open("ab", buffering=0) as file:
            file.write((b"\n" if torn else b"") + content)
            os.fsync(file.fileno())

    def _locked(self) -> FileLock:
        self.path.parent.mkdir(parents=True, exist_ok=True)
        return FileLock(self.path.with_name(f".{self.path.name}.lock"), timeout=LOCK_SECONDS)


def _line(values: dict[str, Any]) -> bytes:
    plain = json.loads(json.dumps(values, default=dict))  # keys that are numbers become text, which sorts otherwise
    text = json.dumps(plain, sort_keys=True, separators=(",", ":"))
    return (json.dumps({CHECK: fingerprint([text])})[:-1] + "," + text[1:] + "\n").encode()


def _checked(content: bytes) -> dict[str, Any]:
    """The values of a line; raises ValueError if they do not match its checksum."""
    values: dict[str, Any] = json.loads(content)
    check = values.pop(CHECK)
    if check != fingerprint([json.dumps(values, sort_keys=True, separators=(",", ":"))]):
        raise ValueError("checksum")
    return values
