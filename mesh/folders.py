"""A folder of the owner's whose files are documents: what is new in it, what has changed, what has gone.

What was taken in is kept in a small record beside the mesh's data, so that a restart reads only what has changed, and a
document is withdrawn only if this very folder had brought it, and none of its owner's other folders has it now."""

from __future__ import annotations

import errno
import logging
import math
import os
import stat
import time
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from pydantic import BaseModel, ValidationError

from mesh.contracts.documents import Ingested
from mesh.envelope import digest
from mesh.errors import Crashed, Malformed, MeshError, NotFound, TimedOut, Unavailable
from mesh.files import LARGEST, too_large
from mesh.settings import Watched

log = logging.getLogger(__name__)

MOST_FILES = 10_000
MOST_TOLD = 5
SETTLED_S = 2.0
"""A file that changed within this time may still be being written: it is left for the next look."""
_UNFINISHED = (".tmp", ".part", ".partial", ".crdownload", ".download", ".swp", ".lock")
_THE_DISKS = ("lost+found", "System Volume Information", "$RECYCLE.BIN")
"""Folders that a disk has of itself, often closed to everybody."""
_ABSENT = (errno.ENOENT, errno.ENOTDIR, errno.ELOOP)
"""It went while we looked, or it is a link that leads nowhere."""
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
    troubles: list[str] = []
    """What could not be looked at or taken in the last time, in sentences for the owner; what was refused is above."""


@dataclass(frozen=True, slots=True)
class File:
    path: Path
    name: str
    size: int
    modified_ns: int
    settling: bool
    """It may still be being written."""


@dataclass(frozen=True, slots=True)
class Look:
    found: Mapping[str, File]
    """By name."""
    clashes: tuple[tuple[Path, Path], ...] = ()
    """Two files of one name: the first is taken."""
    unseen: tuple[str, ...] = ()
    """What could not be looked at, in sentences for the owner. While there is any, nothing counts as gone."""

    @property
    def settling(self) -> int:
        return sum(file.settling for file in self.found.values())

    @property
    def troubles(self) -> tuple[str, ...]:
        return (*_few(self.unseen), *_few([clash(first, other) for first, other in self.clashes]))


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
        """Raises `Malformed` when the folder is not there or can't be read."""
        found: dict[str, File] = {}
        clashes: list[tuple[Path, Path]] = []
        unseen: list[str] = []
        for file in _files(self.watched.path, unseen):
            if file.name in found:
                clashes.append((found[file.name].path, file.path))
            else:
                found[file.name] = file
        if self.record.files and not found and not unseen:
            raise Malformed(
                f"{_shown(self.watched.path)} is empty, and was not before: is its disk still there? "
                "Nothing is withdrawn."
            )
        return Look(found, tuple(clashes), tuple(unseen))

    def seen(self) -> Look:
        """As `look`, but a folder that can't be looked at is one of which nothing was seen."""
        try:
            return self.look()
        except Malformed as error:
            return Look({}, unseen=(error.user_text,))

    def changed(self, look: Look) -> list[File]:
        known = self.record.files
        return [
            file
            for name, file in look.found.items()
            if not file.settling
            and (name not in known or (known[name].size, known[name].modified_ns) != (file.size, file.modified_ns))
        ]

    def gone(self, look: Look) -> list[str]:
        return [] if look.unseen else [name for name in self.record.files if name not in look.found]

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
        put_off: list[str] = []
        for name in self.gone(look):
            if time.monotonic() > until:
                tally.left += 1
                continue
            document_id = self.record.files[name].document_id
            try:
                if document_id:
                    await withdraw(document_id)
            except NotFound:
                pass  # somebody deleted it already
            except MeshError as error:
                tally.later += 1
                put_off.append(named(name, error.user_text))
                tell("later", name, error)
                continue
            tally.withdrawn += bool(document_id)
            if document_id:
                tell("withdrawn", name, None)
            del self.record.files[name]
            self._write()
        for file in self.changed(look):
            if time.monotonic() > until:
                tally.left += 1
                continue
            try:
                done = await add(file)
            except _LATER as error:
                tally.later += 1
                put_off.append(named(file.name, error.user_text))
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
        self.note((*look.troubles, *_few(put_off)))
        return tally

    def note(self, troubles: Sequence[str]) -> None:
        """For `adiyan doctor`."""
        if self.record.troubles != list(troubles):
            self.record.troubles = list(troubles)
            self._write()

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


def shared(seen: Sequence[tuple[Folder, Look]]) -> list[tuple[Folder, Look]]:
    """A document is known by its owner and its bare name. So of one owner's files with one name, in all folders, the
    first is read and the others are named, as within one folder. What a folder had brought and does not hold any more
    is handed over to the folder that does, or to one that may, since it can't be looked at now; it is taken in again
    there, and not withdrawn."""
    first: dict[tuple[str, str], tuple[Folder, File]] = {}
    for folder, look in seen:
        for name, file in look.found.items():
            first.setdefault((folder.watched.owner, name), (folder, file))
    heirs: list[Folder] = []
    givers: list[Folder] = []
    own: list[tuple[Folder, Look]] = []
    for folder, look in seen:
        owner = folder.watched.owner
        found = {name: file for name, file in look.found.items() if first[owner, name][0] is folder}
        others = [name for name in look.found if name not in found]
        clashes = [(first[owner, name][1].path, look.found[name].path) for name in others]
        own.append((folder, replace(look, found=found, clashes=(*look.clashes, *clashes))))
        unseen = [other for other, at in seen if other is not folder and other.watched.owner == owner and at.unseen]
        for name in [*(name for name in others if name in folder.record.files), *folder.gone(look)]:
            if (owner, name) in first:
                heir = first[owner, name][0]
            elif may := [other for other in unseen if name in other.record.files]:
                heir = may[0]
            else:
                continue
            if document_id := folder.record.files.pop(name).document_id:
                heir.record.files[name] = Seen(size=-1, modified_ns=0, document_id=document_id)
                heirs.append(heir)
            givers.append(folder)
    for each in {folder.record_file: folder for folder in [*heirs, *givers]}.values():
        each._write()
    return own


def clash(first: Path, other: Path) -> str:
    if first == other:
        return f"{_shown(first)} lies in two of the folders: it is read as a file of the first."
    return f"{_shown(first)} and {_shown(other)} have one name: only the first is read. Please rename the other."


def named(name: str, text: str) -> str:
    return text if name in text else f"{name}: {text}"


def read(file: File) -> bytes:
    """Raises `Malformed` for what is too large, and `Unavailable` for what can't be read now."""
    if file.size > LARGEST:
        raise Malformed(too_large(file.name, file.size))
    try:
        return file.path.read_bytes()
    except OSError as error:
        raise Unavailable(f"{file.name} can't be read: {error.strerror}.") from error


def _files(folder: Path, unseen: list[str]) -> Iterator[File]:
    """By path, so that of two with one name it is always the same that counts. Links that lead out are left aside.
    Raises `Malformed` when the folder itself can't be read; what can't be looked at below it is told in `unseen`."""

    def cant(error: OSError) -> None:
        at = Path(error.filename or folder)
        if at == folder:
            raise Malformed(f"{_shown(at)} is no folder that can be read: {error.strerror}.") from error
        if error.errno not in _ABSENT:
            unseen.append(f"{_shown(at)} can't be looked at ({error.strerror}): until it can, nothing is withdrawn.")

    count = 0
    inside = os.path.realpath(folder)
    for parent, folders, names in os.walk(folder, onerror=cant):
        folders[:] = sorted(each for each in folders if not each.startswith(".") and each not in _THE_DISKS)
        for name in sorted(names):
            path = Path(parent, name)
            if name.startswith((".", "~$")) or name.lower().endswith(_UNFINISHED):
                continue
            try:
                if path.is_symlink() and not Path(os.path.realpath(path)).is_relative_to(inside):
                    continue
                about = path.stat()
            except OSError as error:
                cant(error)
                continue
            if not stat.S_ISREG(about.st_mode):
                continue
            count += 1
            if count > MOST_FILES:
                raise Malformed(f"{_shown(folder)} holds more than {MOST_FILES:,} files: choose a smaller folder.")
            settling = 0 <= time.time() - about.st_mtime_ns / 1e9 < SETTLED_S
            yield File(path, _shown(Path(name)), about.st_size, about.st_mtime_ns, settling)


def _few(told: Sequence[str]) -> Sequence[str]:
    return told if len(told) <= MOST_TOLD else [*told[:MOST_TOLD], f"And {len(told) - MOST_TOLD:,} more."]


def _shown(path: Path) -> str:
    """As text: bytes that are no UTF-8 become question marks."""
    return str(path).encode("utf-8", "replace").decode("utf-8")
