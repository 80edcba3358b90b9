"""Files on disk: atomic writes, locks of folders, checksums, the user's cache folder, fingerprints of content.

A write goes through a temporary folder `.NAME.PID` beside the file. A process that is killed during a write leaves that
folder behind; the next write of the same file removes it, and so does `remove_leftovers`.
"""

import hashlib
import json
import os
import re
import shutil
import tempfile
import threading
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from accord._launched import launched_rank
from accord.errors import InputError

FINGERPRINT_DIGITS = 16  # 64 bits: two different contents share one by chance once in 10^19
CHECKSUM = "sha256"  # key of a json file that holds the checksum of all its other keys
LOCK_FILE = ".lock"
LEFTOVER = re.compile(r"\.(.+\.(?:csv|fg|gz|html|json|MAP|MAR|md|npz|parquet|png|PR|safetensors|uai))\.([0-9]{1,10})")
CHUNK = 1 << 20  # bytes read at a time
_locked = threading.local()  # folders that the current thread has locked


# Atomic writes


@contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """A temporary path that takes the place of `path` when the block ends without an error.

    The content is flushed to disk first, so that a crash leaves either the old file or the new one, both whole. Errors
    of the system name `path`, not the temporary file.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    # A folder rather than a file, because safetensors makes temporary files of its own, beside the one it writes.
    beside = path.with_name(f".{path.name}.{os.getpid()}")
    _remove_leftovers(other for other in path.parent.glob(f".{_literal(path.name)}.*") if other != beside)
    try:
        beside.mkdir(exist_ok=True)
        content = beside / "new"
        yield content
        umask = os.umask(0)
        os.umask(umask)
        os.chmod(content, 0o666 & ~umask)  # safetensors makes files that only their owner may read
        with content.open("rb") as file:
            os.fsync(file.fileno())
        os.replace(content, path)
    except OSError as error:
        if error.errno is None or (error.filename is not None and not str(error.filename).startswith(str(beside))):
            raise
        raise OSError(error.errno, f"{error.strerror}; the file was not written", str(path)) from error
    finally:
        shutil.rmtree(beside, ignore_errors=True)


def remove_leftovers(folder: Path) -> None:
    """Remove what killed processes left of their writes in a folder and the folders in it.

    Call it only for a locked folder: what has the number of this process is taken for that of an earlier one.
    """
    _remove_leftovers(folder.rglob(".*.*"))


def is_leftover(path: Path) -> bool:
    """Whether a path is a lock, or the temporary folder of a write."""
    return path.name == LOCK_FILE or LEFTOVER.fullmatch(path.name) is not None


def _remove_leftovers(paths: Iterable[Path]) -> None:
    for path in list(paths):
        found = LEFTOVER.fullmatch(path.name)
        if found is None or _is_other_process(int(found[2])):
            continue
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path, ignore_errors=True)
        else:
            path.unlink(missing_ok=True)


def _is_other_process(pid: int) -> bool:
    """Whether another process with this number is running."""
    if pid == os.getpid():
        return False
    if os.name == "nt":
        return True  # there, os.kill ends a process even with signal 0
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except (OSError, OverflowError):
        return True
    return True


def _literal(name: str) -> str:
    """A pattern of `glob` for exactly this name."""
    return re.sub(r"([*?[])", r"[\1]", name)


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


# Checksums


def sealed(values: Mapping[str, Any]) -> dict[str, Any]:
    """The values with their checksum under `sha256`: of the compact json of the others, with sorted keys."""
    content = {key: value for key, value in values.items() if key != CHECKSUM}
    text = json.dumps(content, sort_keys=True, separators=(",", ":"))
    return {**content, CHECKSUM: hashlib.sha256(text.encode()).hexdigest()}


def check_seal(values: Mapping[str, Any], path: Path) -> None:
    """Refuse values that do not match their checksum; values without one are accepted unchecked."""
    if CHECKSUM in values and values[CHECKSUM] != sealed(values)[CHECKSUM]:
        raise InputError(
            f"{path}: is damaged: its content does not match its checksum. Restore the file. If it was edited on "
            f'purpose, remove the key "{CHECKSUM}" from it.'
        )


def file_checksum(path: Path) -> str:
    """The SHA-256 checksum of a file."""
    digest = hashlib.sha256()
    with path.open("rb") as file:
        while chunk := file.read(CHUNK):
            digest.update(chunk)
    return digest.hexdigest()


def fingerprint(parts: Iterable[bytes | str]) -> str:
    """A short code for exactly these parts, in this order."""
    digest = hashlib.sha256()
    for part in parts:
        content = part.encode() if isinstance(part, str) else part
        digest.update(len(content).to_bytes(8, "little") + content)  # lengths keep ("ab", "c") and ("a", "bc") apart
    return digest.hexdigest()[:FINGERPRINT_DIGITS]


# Folders


@contextmanager
def locked(folder: Path) -> Iterator[None]:
    """Keep other processes out of a folder, which is made if needed; refused if another process holds it.

    The system releases the lock when the process ends, however it ends. A thread may lock a folder twice. Of several
    processes that a launcher started for one job, only the first makes the folder and takes the lock.
    """
    if launched_rank():
        yield
        return
    folder.mkdir(parents=True, exist_ok=True)
    own: set[Path] = _locked.__dict__.setdefault("folders", set())
    key = folder.resolve()
    if key in own:
        yield
        return
    from filelock import FileLock, Timeout  # imported here, because few uses of the package lock a folder

    if not os.access(folder, os.W_OK):
        yield  # nobody can write here, so there is nothing to protect; what needs to write reports its own error
        return
    path = folder / LOCK_FILE
    holder = _read_holder(path)
    lock = FileLock(path)
    try:
        lock.acquire(timeout=0)
    except Timeout as error:
        by = f"process {holder}" if holder else "another process"
        raise InputError(f"{folder}: is in use by {by}. Wait until it has ended, or choose another folder.") from error
    own.add(key)
    try:
        path.write_text(f"{os.getpid()}\n")
        yield
    finally:
        own.discard(key)
        lock.release()


def _read_holder(path: Path) -> str | None:
    """The number of the process that wrote its number into a lock."""
    try:
        text = path.read_text(encoding="ascii").strip()
    except (OSError, UnicodeDecodeError):
        return None
    return text if text.isdecimal() and len(text) <= 10 else None


def cache_folder() -> Path:
    """The user's cache for Accord: `$XDG_CACHE_HOME/accord`, or `~/.cache/accord`.

    A user without a home folder gets a folder in the system's temporary one.
    """
    base = os.environ.get("XDG_CACHE_HOME")
    if base and Path(base).is_absolute():  # the XDG standard ignores relative paths
        return Path(base) / "accord"
    try:
        return Path.home() / ".cache" / "accord"
    except RuntimeError:  # HOME is not set, and the system does not know the user
        owner = os.getuid() if hasattr(os, "getuid") else "user"
        return Path(tempfile.gettempdir()) / f"accord-{owner}"
