"""Raw files and their index, in one folder: the source of truth for documents.

raw/<sha256>    the bytes as they came
index.sqlite    documents, the text of their parts, and what notes lead to
lock, holds/    one writer at a time; one ingestion of a document at a time
"""

from __future__ import annotations

import asyncio
import fcntl
import hashlib
import logging
import os
import sqlite3
import time
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import asynccontextmanager, closing, contextmanager, suppress
from pathlib import Path
from typing import TypeVar

from mesh.access import Grant
from mesh.adapters import shelf_tables as tables
from mesh.adapters.notes import DiskNotes, prepare
from mesh.adapters.shelf_scan import holding
from mesh.adapters.shelf_tables import State
from mesh.envelope import pseudonym
from mesh.errors import Denied, Misconfigured, Unavailable
from mesh.ports.documents import Document, Visibility

log = logging.getLogger(__name__)

PATIENCE = 10.0
"""Seconds to wait for another writer."""
LARGE = 256 << 20
"""Bytes of an index that takes seconds to be written anew: there, pieces of what was deleted may stay on its pages."""

Result = TypeVar("Result")


class DiskShelf:
    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._raw = folder / "raw"
        self.notes = DiskNotes(self._with_database, self._writing)

    @classmethod
    async def open(cls, folder: Path) -> DiskShelf:
        """Raises `Misconfigured` when the folder can't be used, or was written by a newer version."""
        shelf = cls(folder)
        await asyncio.to_thread(shelf._prepare)
        return shelf

    async def close(self) -> None:
        """Nothing is kept open between calls."""

    # ── reading ───────────────────────────────────────────────────────────────────────────────────────────────────

    async def documents(self, grant: Grant, *, only: Sequence[str] | None = None) -> list[Document]:
        if only is None:
            return await self._read(grant, "live", "TRUE", order="folded, ingested_at, document_id")
        return await self._read(grant, "live", f"document_id IN ({_marks(only)})", *only, order="folded, document_id")

    async def holding(
        self, grant: Grant, beginnings: Sequence[str], *, limit: int, within: Sequence[str] | None = None
    ) -> list[Document]:
        allowed, owners = _scope(grant)
        among = "TRUE" if within is None else f"document_id IN ({_marks(within)})"
        where, values = f"({allowed}) AND {among}", (*owners, *(within or ()))
        ids = await asyncio.to_thread(
            self._with_database, lambda database: holding(database, where, values, beginnings, limit)
        )
        found = await self._read(grant, "live", f"document_id IN ({_marks(ids)})", *ids, with_text=True)
        return sorted(found, key=lambda document: ids.index(document.document_id))

    async def document(self, grant: Grant, document_id: str) -> Document | None:
        found = await self._read(grant, "live", "document_id = ?", document_id, with_text=True)
        return found[0] if found else None

    async def named(self, grant: Grant, name: str) -> list[Document]:
        found = await self._read(grant, "live", "folded = ?", name.casefold(), order="ingested_at DESC, document_id")
        return sorted(found, key=lambda document: document.owner != grant.client)

    async def raw(self, grant: Grant, document_id: str, *, unfinished: bool = False) -> bytes | None:
        state: State = "coming" if unfinished else "live"
        for _ in range(2):  # a replacement in between takes the old bytes away
            found = await self._read(grant, state, "document_id = ?", document_id)
            if not found:
                return None
            with _reachable(), suppress(FileNotFoundError):
                return await asyncio.to_thread((self._raw / found[0].sha256).read_bytes)
        raise Unavailable(detail="shelf: the bytes of a document are missing")

    async def unfinished(self, grant: Grant) -> list[Document]:
        return await self._read(grant, "coming", "TRUE", order="ingested_at, document_id", with_text=True)

    async def own(self, grant: Grant, document_id: str, *, leaving: bool = False) -> Document | None:
        owned, owners = _owned(grant, document_id)
        states: tuple[State, ...] = ("live", "coming", "leaving") if leaving else ("live", "coming")
        for state in states:
            found = await self._read(grant, state, owned, *owners)
            if found:
                return found[0]
        return None

    async def leaving(self, grant: Grant) -> list[Document]:
        return await self._read(grant, "leaving", "TRUE", order="document_id")

    async def _read(
        self, grant: Grant, state: State, where: str, *values: str, order: str = "1", with_text: bool = False
    ) -> list[Document]:
        allowed, owners = _scope(grant)
        # Every piece is a constant of this module; what comes from outside is bound.
        query = f"SELECT {tables.COLUMNS} FROM documents WHERE state = ? AND ({allowed}) AND ({where}) ORDER BY {order}"  # noqa: S608

        def read(database: sqlite3.Connection) -> list[Document]:
            database.execute("BEGIN")  # rows and their parts as of one moment
            rows = database.execute(query, (state, *owners, *values)).fetchall()
            return [tables.document(row, tables.parts(database, row[0], state, with_text)) for row in rows]

        return await asyncio.to_thread(self._with_database, read)

    # ── writing ───────────────────────────────────────────────────────────────────────────────────────────────────

    async def put(self, grant: Grant, document: Document, raw: bytes, *, complete: bool) -> None:
        if not grant.sees_all and document.owner != grant.limited_to():
            raise Denied(grant.refusal, detail="a document of another owner")
        if hashlib.sha256(raw).hexdigest() != document.sha256:
            raise ValueError("the bytes are not those of the document")
        await asyncio.to_thread(self._put, document, raw, "live" if complete else "coming")

    def _put(self, document: Document, raw: bytes, state: State) -> None:
        with self._writing():
            its_own = self._with_database(lambda database: tables.has(database, document))
            if not (its_own and (self._raw / document.sha256).exists()):
                self._keep(document.sha256, raw)
            self._with_database(lambda database: tables.replace(database, document, state))
            self._sweep()

    async def wish(self, grant: Grant, document_id: str, visibility: Visibility) -> None:
        owned, owners = _owned(grant, document_id)
        stricter = "CASE ? WHEN 'private' THEN 'private' ELSE visibility END"
        statement = f"UPDATE documents SET becoming = ?, visibility = {stricter} WHERE {owned}"  # noqa: S608 - as in `_read`
        await self._change(statement, visibility, visibility, *owners)

    async def set_visibility(self, grant: Grant, document_id: str, visibility: Visibility) -> None:
        owned, owners = _owned(grant, document_id)
        statement = f"UPDATE documents SET visibility = ?, becoming = '' WHERE {owned}"  # noqa: S608 - as in `_read`
        await self._change(statement, visibility, *owners)

    async def delete(self, grant: Grant, document_id: str) -> None:
        if await self.own(grant, document_id) is not None:
            await asyncio.to_thread(self._delete, document_id)

    def _delete(self, document_id: str) -> None:
        with self._writing():
            self._with_database(lambda database: tables.leave(database, document_id))
            self._with_database(_checkpoint)
            self._sweep()

    async def gone(self, grant: Grant, document_id: str) -> None:
        owned, owners = _owned(grant, document_id)
        statement = f"DELETE FROM documents WHERE state = 'leaving' AND {owned}"  # noqa: S608 - as in `_read`
        await self._change(statement, *owners, anew=True)

    async def _change(self, statement: str, *values: str, anew: bool = False) -> None:
        def change() -> None:
            with self._writing():
                self._with_database(lambda database: database.execute(statement, values))
                if anew and (self._folder / "index.sqlite").stat().st_size < LARGE:
                    self._with_database(_write_anew)
                self._with_database(_checkpoint)

        await asyncio.to_thread(change)

    def _keep(self, sha256: str, raw: bytes) -> None:
        """Also what is there already, for another document: how long it takes must not tell."""
        target = self._raw / sha256
        temporary = self._raw / f"{sha256}.new"
        with temporary.open("wb") as file:
            file.write(raw)
            file.flush()
            os.fsync(file.fileno())
        temporary.rename(target)
        _sync(self._raw)

    def _sweep(self) -> None:
        """Bytes that no version refers to are those of a replaced one, or of one that was never begun."""
        kept = self._with_database(tables.referred_to)
        for file in self._raw.iterdir():
            if file.name not in kept:
                file.unlink(missing_ok=True)

    @asynccontextmanager
    async def hold(self, document_id: str) -> AsyncIterator[None]:
        holds = self._folder / "holds"
        with _reachable():
            holds.mkdir(exist_ok=True)
            file = (holds / hashlib.sha256(document_id.encode()).hexdigest()).open("w")
        with file:
            with _reachable():
                while not _locked(file.fileno()):
                    await asyncio.sleep(0.05)
            yield

    # ── the folder ────────────────────────────────────────────────────────────────────────────────────────────────

    def _prepare(self) -> None:
        try:
            self._raw.mkdir(parents=True, exist_ok=True)
            with self._alone():
                self._connected(tables.migrate)
                self._connected(prepare)
                self._connected(lambda database: database.execute(tables.TROUBLES))
                self._sweep()
        except (OSError, sqlite3.DatabaseError) as error:
            raise Misconfigured(f"{self._folder} can't be used for documents: {error}.") from error

    def _with_database(self, work: Callable[[sqlite3.Connection], Result]) -> Result:
        """Raises `Unavailable`, also when the index is damaged."""
        try:
            return self._connected(work)
        except sqlite3.DatabaseError as error:
            if type(error) is not sqlite3.DatabaseError:  # its subclasses are defects of ours
                raise
            log.error("! the document index is damaged: %s", error)
            raise Unavailable(detail=f"shelf: {error}") from error

    def _connected(self, work: Callable[[sqlite3.Connection], Result]) -> Result:
        """In a connection of its own: threads share none. What `work` began is committed."""
        try:
            with closing(sqlite3.connect(self._folder / "index.sqlite", timeout=PATIENCE)) as database:
                database.isolation_level = None
                database.execute("PRAGMA foreign_keys = ON")
                database.execute("PRAGMA secure_delete = ON")  # what is deleted is not left on free pages
                result = work(database)
                if database.in_transaction:
                    database.execute("COMMIT")
                return result
        except sqlite3.OperationalError as error:
            raise Unavailable(detail=f"shelf: {error}") from error

    @contextmanager
    def _writing(self) -> Iterator[None]:
        with _reachable(), self._alone():
            yield

    @contextmanager
    def _alone(self) -> Iterator[None]:
        with (self._folder / "lock").open("w") as file:
            until = time.monotonic() + PATIENCE
            while not _locked(file.fileno()):
                if time.monotonic() > until:
                    raise Unavailable(detail="shelf: another process keeps writing")
                time.sleep(0.01)  # in a thread
            yield


@contextmanager
def _reachable() -> Iterator[None]:
    """A disk that is full or does not answer is `Unavailable`."""
    try:
        yield
    except OSError as error:
        raise Unavailable(detail=f"shelf: {error.strerror}") from error


def _scope(grant: Grant) -> tuple[str, tuple[str, ...]]:
    owner = grant.limited_to()
    if owner is None:
        log.info("◦ read=documents sees_all=true client=%s", pseudonym(grant.client))
        return "TRUE", ()
    return "visibility = 'global' OR owner = ?", (owner,)


def _marks(values: Sequence[str]) -> str:
    return ", ".join("?" * len(values))


def _owned(grant: Grant, document_id: str) -> tuple[str, tuple[str, ...]]:
    """Which rows the grant may change; being visible to it is not enough."""
    owner = grant.limited_to()
    if owner is None:
        log.info("◦ write=documents sees_all=true client=%s document=%s", pseudonym(grant.client), document_id)
        return "(document_id = ?)", (document_id,)
    return "(document_id = ? AND owner = ?)", (document_id, owner)


def _write_anew(database: sqlite3.Connection) -> None:
    """When a page is split or filled up, SQLite leaves pieces of text in its gaps, and `secure_delete` misses them."""
    database.execute("PRAGMA temp_store = MEMORY")
    database.execute("VACUUM")


def _checkpoint(database: sqlite3.Connection) -> None:
    """What was deleted is in the write-ahead log until then."""
    database.execute("PRAGMA wal_checkpoint(TRUNCATE)")


def _locked(descriptor: int) -> bool:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _sync(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
