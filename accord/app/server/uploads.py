"""Uploaded files, in a private folder under names of our own; no name or path of a client is ever opened."""

import hashlib
import shutil
import zipfile
from collections import OrderedDict
from collections.abc import Mapping
from pathlib import Path, PurePosixPath

from accord.app.server.limits import EXPANSION, MEGABYTE, Limits, Refused

MOST_UPLOADS = 32  # older ones are removed; the page sends them again when it needs them
SINGLE = (".json", ".npz")  # one file is a graph
TABLES = ("nodes.csv", "edges.csv")  # two files are a graph
FORMATS = [*SINGLE, *TABLES]
REMEDY = "Send one .json or .npz file, or nodes.csv and edges.csv together."
ID_LENGTH = 32  # hexadecimal digits


class Uploads:
    """The uploads of one server.

    Args:
        folder: a private folder, removed when the server stops.
        limits: of the server.
    """

    def __init__(self, folder: Path, limits: Limits) -> None:
        self.folder, self.limits = folder, limits
        self._sizes: OrderedDict[str, int] = OrderedDict()

    def add(self, files: Mapping[str, bytes]) -> str:
        """Keep the files of one graph.

        Args:
            files: content by the client's file name, of which only the ending is read.

        Returns:
            The id of the graph: the same files have the same id.
        """
        ours = own_names(files)
        digest = hashlib.sha256()
        for name, content in sorted(ours.items()):
            digest.update(f"{name}:{len(content)}:".encode() + content)
        identity = digest.hexdigest()[:ID_LENGTH]
        place = self.folder / identity
        if identity not in self._sizes:
            for name, content in ours.items():
                (place / name).parent.mkdir(parents=True, exist_ok=True)
                (place / name).write_bytes(content)
                self._check_expansion(place / name)
        self._sizes[identity] = sum(map(len, ours.values()))
        self._sizes.move_to_end(identity)
        self._remove_old()
        return identity

    def _check_expansion(self, path: Path) -> None:
        """Refuse an archive that takes far more memory than its size suggests."""
        if path.suffix != ".npz":
            return
        most = EXPANSION * self.limits.bytes
        try:
            with zipfile.ZipFile(path) as archive:
                size = sum(member.file_size for member in archive.infolist())
        except Exception:
            return  # the reader says what is wrong with it
        if size > most:
            shutil.rmtree(path.parent)
            raise Refused(
                413, f"The .npz file takes {size / MEGABYTE:,.0f} MB when read; {most / MEGABYTE:,.0f} MB are allowed. "
                "Send a smaller graph.", "too_large"
            )  # fmt: skip

    def _remove_old(self) -> None:
        room = 4 * self.limits.bytes
        while len(self._sizes) > 1 and (len(self._sizes) > MOST_UPLOADS or sum(self._sizes.values()) > room):
            oldest, _ = self._sizes.popitem(last=False)
            shutil.rmtree(self.folder / oldest, ignore_errors=True)


def own_names(files: Mapping[str, bytes]) -> dict[str, bytes]:
    """The files under names of our own, by their endings."""
    endings = {PurePosixPath(name.replace("\\", "/")).name.lower(): content for name, content in files.items()}
    if len(endings) == 1:
        name, content = next(iter(endings.items()))
        suffix = PurePosixPath(name).suffix
        if suffix in SINGLE:
            return {f"graph{suffix}": content}
        raise Refused(422, f"A graph cannot be read from {suffix[:20] or 'such'} files. {REMEDY}", "format")
    if set(endings) == set(TABLES):
        return {f"tables/{name}": endings[name] for name in TABLES}
    raise Refused(422, f"{len(files)} files were sent. {REMEDY}", "format")


def graph_path(folder: Path, identity: str) -> Path | None:
    """Where the graph of an upload lies; None if there is no such upload (any more)."""
    place = folder / identity
    if not place.is_dir():
        return None
    return next((entry for entry in sorted(place.iterdir()) if entry.name.startswith(("graph.", "tables"))), None)
