"""Reader of .npz archives. Sizes are checked before memory is taken, checksums are verified, nothing is unpickled."""

import math
import os
import zipfile
from collections.abc import Sequence
from pathlib import Path
from typing import IO

import numpy as np

from accord.datasets._sources import check_memory, check_regular_file
from accord.errors import AccordError, GraphError

HEADER_READERS = {(1, 0): np.lib.format.read_array_header_1_0, (2, 0): np.lib.format.read_array_header_2_0}
SUFFIX = ".npy"
COPIES = 2  # arrays may be converted to another type once they are read
CHUNK = 2**20  # bytes that are decompressed at a time
NODE_BYTES = 8  # an array with a row for each node takes at least this much once the graph is in use
CONVERTED = 8  # bytes of an entry as int64, or as float32 with the masks that check it
END, END_SIZE, MOST_COMMENT = b"PK\x05\x06", 22, 2**16  # the last record of an archive, before an optional comment
COUNT = slice(10, 12)  # of that record: the number of members; the largest number means that another record has it


def read_archive(path: Path, names: Sequence[str], remedy: str) -> tuple[dict[str, np.ndarray], list[str]]:
    """Read the named arrays of an .npz file.

    Args:
        path: the file.
        names: arrays to read; those that are absent are left out.
        remedy: what to do about a file that cannot be read; the last sentence of the message.

    Returns:
        The arrays, and the names of everything in the archive.
    """
    check_regular_file(path)
    try:
        with path.open("rb") as file, zipfile.ZipFile(file) as archive:
            _check_count(file, archive)
            members = _members(path, archive)
            wanted = [name for name in names if name in members]
            check_memory(COPIES * sum(members[name].file_size for name in wanted), f"{path}: reading it")
            return {name: _read_member(archive, members[name], path, name) for name in wanted}, list(members)
    except (AccordError, MemoryError):
        raise
    # zipfile, its decompressors and numpy raise many kinds of error on damaged content (zlib.error, LZMAError,
    # struct.error, TokenError, NotImplementedError and more), and the advice is the same for all of them.
    except Exception as error:
        raise GraphError(f"{path}: cannot be read as an .npz file of plain arrays ({error}). {remedy}") from error


def _check_count(file: IO[bytes], archive: zipfile.ZipFile) -> None:
    """Refuse an archive whose directory lists fewer members than its last record counts.

    zipfile takes what follows a damaged length for a comment, so that members disappear without an error.
    """
    file.seek(-min(file.seek(0, os.SEEK_END), END_SIZE + MOST_COMMENT), os.SEEK_END)
    tail = file.read()
    record = tail[tail.rfind(END) :]
    count, found = int.from_bytes(record[COUNT], "little"), len(archive.infolist())
    if count not in (found, 2**16 - 1):
        raise ValueError(f"its directory lists {found} of {count} arrays")


def _members(path: Path, archive: zipfile.ZipFile) -> dict[str, zipfile.ZipInfo]:
    """The members of an archive by the name of their array."""
    members: dict[str, zipfile.ZipInfo] = {}
    for info in archive.infolist():
        with archive.open(info):  # compares the directory with the header of the member
            pass
        name = info.filename.removesuffix(SUFFIX)
        if name in members:
            raise GraphError(f"{path}: holds {name!r} twice. Write each array once.")
        members[name] = info
    return members


def _read_member(archive: zipfile.ZipFile, info: zipfile.ZipInfo, path: Path, name: str) -> np.ndarray:
    with archive.open(info) as member:
        shape, fortran, dtype = _read_header(member, name)
        count = math.prod(shape)
        if count * dtype.itemsize != info.file_size - member.tell():
            raise ValueError(f"{name} has a header for {count} entries of {dtype}, but another number of bytes")
        needed = max(NODE_BYTES * max(shape, default=1), count * (dtype.itemsize + CONVERTED))
        check_memory(needed, f"{path}: {name}, of shape {list(shape)},")
        flat = np.empty(count, dtype)
        _fill(member, flat.view(np.uint8))
    return flat.reshape(shape, order="F" if fortran else "C")


def _read_header(member: IO[bytes], name: str) -> tuple[tuple[int, ...], bool, np.dtype]:
    """Shape, order and type of an array."""
    try:
        version = np.lib.format.read_magic(member)
    except ValueError as error:
        raise ValueError(f"{name} is not an array") from error
    if version not in HEADER_READERS:
        raise ValueError(f"{name} has format version {version}")
    shape, fortran, dtype = HEADER_READERS[version](member)
    if dtype.hasobject:
        raise ValueError(f"{name} holds Python objects, which are never unpickled (allow_pickle=False)")
    if not dtype.itemsize or any(size < 0 for size in shape):
        raise ValueError(f"{name} has shape {list(shape)} and type {dtype}")
    return shape, fortran, dtype


def _fill(member: IO[bytes], content: np.ndarray) -> None:
    """Read bytes until `content` is full, and the end of the member, where its checksum is verified."""
    place = 0
    while place < len(content):
        piece = member.read(min(CHUNK, len(content) - place))
        if not piece:
            raise EOFError("the data ends early")
        content[place : place + len(piece)] = np.frombuffer(piece, np.uint8)
        place += len(piece)
    if member.read(1):
        raise ValueError("there is more data than announced")
