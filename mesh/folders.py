"""A folder of the owner's whose files are documents: what is new in it, what has changed, what has gone.

What was taken in is kept in a small record beside the mesh's data, so that a restart reads only what has changed, and a
document is withdrawn only if this very folder had brought it."""

from __future__ import annotations

import logging
import math
import os
import stat
import time
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from pydantic import BaseModel, ValidationError

from mesh.contracts.documents import Ingested
from mesh.envelope import digest
from mesh.errors import Crashed, Malformed, MeshError, NotFound, TimedOut, Unavailable
from mesh.settings import Watched

log = logging.getLogger(__name__)

LARGEST = 20 << 20
"""Bytes."""
MOST_FILES = 10_000
SETTLED_S = 2.0
"""A file that changed within this time may still be being written: it is left for the next look."""
_UNFINISHED = (".tmp", ".part", ".partial", ".crdownload", ".download", ".swp", ".lock")
_LATER = (Unavailable, TimedOut, Crashed)


class Seen(BaseModel):
    """A file as it was taken in. One that was refused is tried again when it changes; `document_id` is then that of an
    older version of it, if there is one."""

    size: int
    modified_ns: int
    document_id: str = ""
    refused: str = ""
    """Why, in words for the owner; empty where it was taken in."""


class Record(BaseModel):
    files: dict[str, Seen] = {}
    """By the file's name, which is the document's."""


@dataclass(frozen=True, slots=True)
class File:
    path: Path
    name: str
    size: int
    modified_ns: int


@dataclass(frozen=True, slots=True)
class Look:
    files: int
    changed: tuple[File, ...]
    gone: tuple[str, ...]
    clashes: tuple[tuple[Path, Path], ...]
    """Two files of one name, in two folders below it: the first is taken."""
    settling: int
    """Files that may still be being written."""


@dataclass
class Tally:
    added: int = 0
    unchanged: int = 0
    withdrawn: int = 0
    refused: int = 0
    later: int = 0
    """What could not be done now, and is tried at the next look."""
    left: int = 0
    """What there was no time for."""


Add = Callable[[File], Awaitable[Ingested]]
Withdraw = Callable[[str], Awaitable[object]]
"""By document id."""
Tell = Callable[[str, str, Ingested | MeshError | None], None]
"""What happened (`added`, `unchanged`, `refused`, `later`, `withdrawn`), the name, and what came of it."""


@dataclass
class Folder:
    watched: Watched
    home: Path
    """Where the record is kept: `adiyan_home`."""
    _record: Record | None = field(default=None, repr=False)

    @property
    def record_file(self) -> Path:
        key = digest(str(self.watched.path), self.watched.owner, self.watched.visibility)
        return self.home / "folders" / f"{key[:24]}.json"

    @property
    def record(self) -> Record:
        if self._record is None:
            try:
                self._record = Record.model_validate_json(self.record_file.read_bytes())
            except FileNotFoundError:
                self._record = Record()
            except (OSError, ValidationError):
                log.warning("! folder record=%s can't be read: every file is looked at again", self.record_file.name)
                self._record = Record()
        return self._record

    def look(self) -> Look:
        """Raises `Malformed` when the folder is not there or can't be read: what is in it is then not known, and
        nothing has gone."""
        if not self.watched.path.is_dir():
            raise Malformed(f"{_shown(self.watched.path)} is no folder that can be read.")
        found: dict[str, File] = {}
        clashes: list[tuple[Path, Path]] = []
        settling = 0
        for file in _files(self.watched.path):
            if file.name in found:
                clashes.append((found[file.name].path, file.path))
                continue
            found[file.name] = file
            settling += _is_settling(file)
        known = self.record.files
        changed = [
            file
            for name, file in found.items()
            if not _is_settling(file)
            and (name not in known or (known[name].size, known[name].modified_ns) != (file.size, file.modified_ns))
        ]
        gone = [name for name in known if name not in found]
        if known and not found:
            raise Malformed(
                f"{_shown(self.watched.path)} is empty, and was not before: is its disk still there? "
                "Nothing is withdrawn."
            )
        return Look(len(found), tuple(changed), tuple(gone), tuple(clashes), settling)

    async def follow(
        self,
        look: Look,
        add: Add,
        withdraw: Withdraw,
        tell: Tell = lambda *_: None,
        *,
        until: float = math.inf,
    ) -> Tally:
        """Withdraws what has gone, and takes in what is new; one file's trouble stops no other. Kept after each file,
        so that it goes on where it was killed. What is not begun `until` then, by the monotonic clock, is left."""
        tally = Tally()
        for name in look.gone:
            document_id = self.record.files[name].document_id
            try:
                if document_id:
                    await withdraw(document_id)
            except NotFound:
                pass  # somebody deleted it already
            except MeshError as error:
                tally.later += 1
                tell("later", name, error)
                continue
            tally.withdrawn += bool(document_id)
            if document_id:
                tell("withdrawn", name, None)
            del self.record.files[name]
            self._write()
        for file in look.changed:
            if time.monotonic() > until:
                tally.left += 1
                continue
            try:
                done = await add(file)
            except _LATER as error:
                tally.later += 1
                tell("later", file.name, error)
                continue
            except MeshError as error:
                tally.refused += 1
                tell("refused", file.name, error)
                before = self.record.files.get(file.name)
                # an older version of it still answers
                self._keep(file, before.document_id if before else "", refused=error.user_text)
                continue
            fresh = done.outcome != "unchanged"
            tally.added += fresh
            tally.unchanged += not fresh
            tell("added" if fresh else "unchanged", file.name, done)
            self._keep(file, done.document.document_id)
        return tally

    def _keep(self, file: File, document_id: str, refused: str = "") -> None:
        self.record.files[file.name] = Seen(
            size=file.size, modified_ns=file.modified_ns, document_id=document_id, refused=refused
        )
        self._write()

    def _write(self) -> None:
        self.record_file.parent.mkdir(parents=True, exist_ok=True)
        temporary = self.record_file.with_suffix(".tmp")
        temporary.write_text(self.record.model_dump_json())
        temporary.replace(self.record_file)


def clash(first: Path, other: Path) -> str:
    return f"{_shown(first)} and {_shown(other)} have one name: only the first is read. Please rename the other."


def read(file: File) -> bytes:
    """Raises `Malformed` for what is too large or can't be read."""
    if file.size > LARGEST:
        raise Malformed(f"{file.name} is larger than {LARGEST >> 20} MB: split it.")
    try:
        return file.path.read_bytes()
    except OSError as error:
        raise Malformed(f"{file.name} can't be read: {error.strerror}.") from error


def _files(folder: Path) -> Iterator[File]:
    """By path, so that of two with one name it is always the same that counts. Links that lead out are left aside."""
    count = 0
    inside = folder.resolve()
    for parent, folders, names in os.walk(folder):
        folders[:] = sorted(each for each in folders if not each.startswith("."))
        for name in sorted(names):
            path = Path(parent, name)
            if name.startswith((".", "~$")) or name.lower().endswith(_UNFINISHED):
                continue
            try:
                about = path.stat()
                outside = path.is_symlink() and not path.resolve().is_relative_to(inside)
            except OSError:
                continue  # it went while we looked, or leads nowhere
            if outside or not stat.S_ISREG(about.st_mode):
                continue
            count += 1
            if count > MOST_FILES:
                raise Malformed(f"{_shown(folder)} holds more than {MOST_FILES:,} files: choose a smaller folder.")
            yield File(path, _shown(Path(name)), about.st_size, about.st_mtime_ns)


def _is_settling(file: File) -> bool:
    return 0 <= time.time() - file.modified_ns / 1e9 < SETTLED_S


def _shown(path: Path) -> str:
    """As text: bytes that are no UTF-8 become question marks."""
    return str(path).encode("utf-8", "replace").decode("utf-8")
