"""Vectors that were made before, in one SQLite file. Derived: whatever is wrong with it, it is dropped and made anew.

A vector is told to nobody, but it comes from a person's words. So each entry is of one document, and goes with it; two
documents of the same words have an entry each, and nobody's ingestion is quick because of another's document."""

from __future__ import annotations

import asyncio
import fcntl
import hashlib
import logging
import sqlite3
import time
import zlib
from array import array
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import TypeVar

from mesh.access import Grant
from mesh.errors import Unavailable
from mesh.ports.documents import Document
from mesh.ports.models import Vector

log = logging.getLogger(__name__)

SCHEMA = 1
MOST_BYTES = 256 << 20
"""Some 130,000 passages of 384 dimensions."""
PATIENCE = 10.0
"""Seconds to wait for another writer."""
AT_ONCE = 500
"""Bound values of one statement."""

Result = TypeVar("Result")

_TABLES = (
    """
CREATE TABLE vectors (
    document_id TEXT NOT NULL,
    owner TEXT NOT NULL,
    model TEXT NOT NULL,
    dims INTEGER NOT NULL,
    sha256 BLOB NOT NULL,
    vector BLOB NOT NULL,
    crc32 INTEGER NOT NULL,
    used_at REAL NOT NULL,
    UNIQUE (document_id, model, dims, sha256)
) STRICT
""",
    "CREATE INDEX vectors_by_use ON vectors (used_at)",
    f"PRAGMA user_version = {SCHEMA}",
)


class Damaged(Exception):
    pass


class SqliteVectors:
    def __init__(self, file: Path, *, model: str, dims: int, prefix: str = "", most_bytes: int = MOST_BYTES) -> None:
        """`prefix` is what the embedder puts before a text: it is embedded, too."""
        self._file = file
        self._lock = file.with_suffix(".lock")
        self._model = model
        self._dims = dims
        self._prefix = prefix
        self._most_bytes = most_bytes

    async def known(self, grant: Grant, document: Document, texts: Sequence[str]) -> dict[str, Vector]:
        owned, owners = _owned(grant)
        named = {self._sha256(text): text for text in texts}

        def look(database: sqlite3.Connection) -> dict[str, Vector]:
            found: dict[str, Vector] = {}
            for some in _slices(list(named)):
                which = f"document_id = ? AND model = ? AND dims = ? AND sha256 IN ({_marks(some)}) AND {owned}"
                values = (document.document_id, self._model, self._dims, *some, *owners)
                rows = database.execute(f"SELECT sha256, vector, crc32 FROM vectors WHERE {which}", values)  # noqa: S608 - of constants
                found.update((named[sha256], self._vector(blob, crc32)) for sha256, blob, crc32 in rows)
                database.execute(f"UPDATE vectors SET used_at = ? WHERE {which}", (time.time(), *values))  # noqa: S608
            return found

        return await self._if_possible(look, {})

    async def keep(self, grant: Grant, document: Document, vectors: Mapping[str, Vector]) -> None:
        if not grant.sees_all and document.owner != grant.limited_to():
            raise ValueError("a document of another owner")
        now = time.time()

        def keep(database: sqlite3.Connection) -> None:
            database.executemany(
                "INSERT OR REPLACE INTO vectors VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
                (self._row(document, text, vector, now) for text, vector in vectors.items()),
            )
            self._evict(database)

        await self._if_possible(keep, None)

    async def forget(self, grant: Grant, document_id: str, *, unused_since: float | None = None) -> None:
        owned, owners = _owned(grant)

        def forget(database: sqlite3.Connection) -> None:
            which = f"document_id = ? AND used_at < ? AND {owned}"
            before = float("inf") if unused_since is None else unused_since
            statement = f"DELETE FROM vectors WHERE {which}"  # noqa: S608 - of constants
            if database.execute(statement, (document_id, before, *owners)).rowcount:
                database.execute("COMMIT")
                database.execute("PRAGMA wal_checkpoint(TRUNCATE)")  # it is in the write-ahead log until then

        try:
            await asyncio.to_thread(self._with_database, forget)
        except Damaged:
            pass  # all of it is forgotten
        except (sqlite3.Error, OSError) as error:
            raise Unavailable(detail=f"vectors: {error}") from error

    async def close(self) -> None:
        """Nothing is kept open between calls."""

    # ── the file ──────────────────────────────────────────────────────────────────────────────────────────────────

    async def _if_possible(self, work: Callable[[sqlite3.Connection], Result], otherwise: Result) -> Result:
        """Doing without only costs time."""
        try:
            return await asyncio.to_thread(self._with_database, work)
        except Damaged:
            return otherwise
        except (sqlite3.Error, OSError) as error:
            log.warning("! vectors error=%s", error)
            return otherwise

    def _with_database(self, work: Callable[[sqlite3.Connection], Result]) -> Result:
        """In a connection and a transaction of its own. Raises `Damaged` when the file was, and is gone."""
        try:
            with self._locked(fcntl.LOCK_SH), closing(sqlite3.connect(self._file, timeout=PATIENCE)) as database:
                database.isolation_level = None
                database.execute("PRAGMA secure_delete = ON")  # what is forgotten is not left on free pages
                database.execute("PRAGMA synchronous = NORMAL")
                self._prepare(database)
                database.execute("BEGIN IMMEDIATE")
                result = work(database)
                if database.in_transaction:
                    database.execute("COMMIT")
                return result
        except sqlite3.OperationalError:
            raise
        except (sqlite3.DatabaseError, Damaged) as error:
            log.warning("! vectors damaged, made anew error=%s", error)
            self._drop()
            raise Damaged from error

    def _prepare(self, database: sqlite3.Connection) -> None:
        if _version(database) == SCHEMA:
            return
        database.execute("PRAGMA journal_mode = WAL")
        database.execute("BEGIN IMMEDIATE")
        version = _version(database)
        if version or database.execute("SELECT 1 FROM sqlite_schema").fetchone():
            if version != SCHEMA:  # else another process was first
                raise Damaged(f"it is of version {version}")
        else:
            for statement in _TABLES:
                database.execute(statement)
        database.execute("COMMIT")

    @contextmanager
    def _locked(self, how: int) -> Iterator[None]:
        with self._lock.open("w") as file:
            fcntl.flock(file.fileno(), how)
            yield

    def _drop(self) -> None:
        with self._locked(fcntl.LOCK_EX):
            for end in ("", "-wal", "-shm"):
                self._file.with_name(self._file.name + end).unlink(missing_ok=True)

    def _evict(self, database: sqlite3.Connection) -> None:
        """A tenth at a time, what was not used for longest."""
        (pages,), (free,), (size,) = (
            database.execute(f"PRAGMA {what}").fetchone() for what in ("page_count", "freelist_count", "page_size")
        )
        if (pages - free) * size > self._most_bytes:
            tenth = "SELECT max(1, count(*) / 10) FROM vectors"
            oldest = f"SELECT rowid FROM vectors ORDER BY used_at LIMIT ({tenth})"  # noqa: S608 - of constants
            database.execute(f"DELETE FROM vectors WHERE rowid IN ({oldest})")  # noqa: S608

    # ── entries ───────────────────────────────────────────────────────────────────────────────────────────────────

    def _sha256(self, text: str) -> bytes:
        return hashlib.sha256((self._prefix + text).encode("utf-8", "surrogatepass")).digest()

    def _row(self, document: Document, text: str, vector: Vector, now: float) -> tuple[object, ...]:
        blob = array("f", vector).tobytes()
        key = (document.document_id, document.owner, self._model, self._dims, self._sha256(text))
        return (*key, blob, zlib.crc32(blob), now)

    def _vector(self, blob: bytes, crc32: int) -> Vector:
        vector = array("f")
        if zlib.crc32(blob) != crc32 or len(blob) != self._dims * vector.itemsize:
            raise Damaged("a vector is not as it was written")
        vector.frombytes(blob)
        return vector


def _version(database: sqlite3.Connection) -> int:
    return int(database.execute("PRAGMA user_version").fetchone()[0])


def _owned(grant: Grant) -> tuple[str, tuple[str, ...]]:
    owner = grant.limited_to()
    return ("TRUE", ()) if owner is None else ("owner = ?", (owner,))


def _marks(values: Sequence[object]) -> str:
    return ", ".join("?" * len(values))


def _slices(values: list[bytes]) -> Iterator[list[bytes]]:
    for start in range(0, len(values), AT_ONCE):
        yield values[start : start + AT_ONCE]
