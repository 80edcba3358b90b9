"""A folder of compiled libraries that are safe to load.

Loading a library runs its code, so only this user (or the administrator) may be able to write it, and it must be whole:
a checksum is kept beside it. Whatever fails these checks is built again.
"""

import contextlib
import hashlib
import logging
import os
import shutil
import stat
from collections.abc import Iterator
from pathlib import Path

from accord._files import replacing, write_text

log = logging.getLogger("accord.inference")

ADMINISTRATOR = 0
OTHERS_MAY_WRITE = stat.S_IWGRP | stat.S_IWOTH
OWNER_ONLY = 0o700


class UnsafeFolderError(OSError):
    """Libraries in this folder could be replaced by somebody else."""


def make_private(folder: Path) -> None:
    """Make the folder, or take away the right of others to write in it.

    Raises:
        UnsafeFolderError: it belongs to somebody else, who could replace any file in it.
        OSError: it cannot be made.
    """
    folder.mkdir(mode=OWNER_ONLY, parents=True, exist_ok=True)
    for each in (folder.parent, folder):
        found = each.stat()
        if not _is_trusted(found.st_uid):
            raise UnsafeFolderError(
                f"{each} belongs to another user (number {found.st_uid}), who could change the libraries in it; "
                "remove it, or set $XDG_CACHE_HOME to a folder of your own"
            )
    if found.st_mode & OTHERS_MAY_WRITE:
        folder.chmod(stat.S_IMODE(found.st_mode) & ~OTHERS_MAY_WRITE)


def flaw(library: Path) -> str | None:
    """Why a library must not be loaded, or None: it is the file that `keep` stored, and nobody else could write it."""
    try:
        found = library.lstat()
        if not stat.S_ISREG(found.st_mode) or found.st_mode & OTHERS_MAY_WRITE or not _is_trusted(found.st_uid):
            return "could have been written by another user"
        return None if _checksum(library) == _beside(library).read_text() else "is damaged"
    except FileNotFoundError:
        return "is missing" if not library.exists() else "has no checksum"
    except (OSError, ValueError):  # the checksum may hold any bytes
        return "cannot be read"


@contextlib.contextmanager
def keep(library: Path) -> Iterator[Path]:
    """A path to write a library to; it is moved into place when the block ends without an error."""
    discard(library)
    with replacing(library) as beside:
        yield beside
        code = _checksum(beside)
    os.chmod(library, OWNER_ONLY)  # whatever the user's umask allows to others
    write_text(_beside(library), code)


def discard(library: Path) -> None:
    """Delete a library, its checksum, and what an interrupted process left of them."""
    for left in (library, _beside(library), *library.parent.glob(f".{library.name}.*")):
        if left.is_dir() and not left.is_symlink():
            shutil.rmtree(left)
        else:
            left.unlink(missing_ok=True)


@contextlib.contextmanager
def alone(library: Path) -> Iterator[None]:
    """Let one process at a time build a library; the others wait. A killed process frees the lock."""
    from filelock import FileLock, Timeout  # imported here, because most processes find the library built

    lock = FileLock(library.with_suffix(".lock"), mode=0o600)
    try:
        try:
            lock.acquire(timeout=0)
        except Timeout:
            log.warning("propagate: another process compiles the fast CPU kernel; waiting for it.")
            lock.acquire()
    except NotImplementedError:  # a file system without locks: several processes may do the same work
        log.info("propagate: %s cannot be locked.", library)
    try:
        yield
    finally:
        lock.release()


def _is_trusted(user: int) -> bool:
    return not hasattr(os, "geteuid") or user in (os.geteuid(), ADMINISTRATOR)


def _beside(library: Path) -> Path:
    return library.with_suffix(".sha256")


def _checksum(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()
