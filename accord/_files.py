"""Files on disk: atomic writes, the user's cache folder, fingerprints of content."""

import hashlib
import json
import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

FINGERPRINT_DIGITS = 16  # 64 bits: two different contents share one by chance once in 10^19


@contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """A temporary path beside `path` that takes its place when the block ends without an error.

    The content is flushed to disk first, so that a crash leaves either the old file or the new one, both whole.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    beside = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        yield beside
        umask = os.umask(0)
        os.umask(umask)
        os.chmod(beside, 0o666 & ~umask)  # safetensors makes files that only their owner may read
        with beside.open("rb") as file:
            os.fsync(file.fileno())
        os.replace(beside, path)
    finally:
        beside.unlink(missing_ok=True)


def write_bytes(path: Path, content: bytes) -> None:
    """Write a file atomically."""
    with replacing(path) as beside:
        beside.write_bytes(content)


def write_text(path: Path, text: str) -> None:
    """Write a text file atomically, as UTF-8."""
    write_bytes(path, text.encode())


def write_json(path: Path, value: object) -> Path:
    """Write a json file atomically; returns its path."""
    write_text(path, json.dumps(value, indent=1) + "\n")
    return path


def cache_folder() -> Path:
    """The user's cache for Accord: `$XDG_CACHE_HOME/accord`, or `~/.cache/accord`."""
    base = os.environ.get("XDG_CACHE_HOME")
    return (Path(base) if base else Path.home() / ".cache") / "accord"


def fingerprint(parts: Iterable[bytes | str]) -> str:
    """A short code for exactly these parts, in this order."""
    digest = hashlib.sha256()
    for part in parts:
        content = part.encode() if isinstance(part, str) else part
        digest.update(len(content).to_bytes(8, "little") + content)  # lengths keep ("ab", "c") and ("a", "bc") apart
    return digest.hexdigest()[:FINGERPRINT_DIGITS]
