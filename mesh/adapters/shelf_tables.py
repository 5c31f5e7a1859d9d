"""The shelf's tables: how they are made, what earlier versions of them become, and a document as their rows."""

from __future__ import annotations

import sqlite3
from datetime import datetime
from typing import Literal

from mesh.errors import Misconfigured
from mesh.ports.documents import Document, Part, Visibility

SCHEMA = 4

State = Literal["live", "coming", "leaving"]

_DOCUMENTS = """
CREATE TABLE {} (
    document_id TEXT NOT NULL,
    state TEXT NOT NULL CHECK (state IN ('live', 'coming', 'leaving')),
    owner TEXT NOT NULL,
    name TEXT NOT NULL,
    folded TEXT NOT NULL,
    visibility TEXT NOT NULL CHECK (visibility IN ('private', 'global')),
    sha256 TEXT NOT NULL,
    size INTEGER NOT NULL,
    media_type TEXT NOT NULL,
    ingested_at TEXT NOT NULL,
    chunks INTEGER NOT NULL,
    {}
    PRIMARY KEY (document_id, state)
) STRICT;
"""
_BECOMING = "becoming TEXT NOT NULL DEFAULT '' CHECK (becoming IN ('', 'private', 'global'))"
_INDEXES = """
CREATE INDEX documents_by_owner ON documents (state, owner, folded);
CREATE INDEX documents_by_name ON documents (state, folded);
CREATE INDEX documents_by_bytes ON documents (sha256);
"""
_TABLES = f"""
BEGIN;
{_DOCUMENTS.format("documents", f"{_BECOMING},")}
{_INDEXES}
CREATE TABLE parts (
    document_id TEXT NOT NULL,
    state TEXT NOT NULL,
    number INTEGER NOT NULL,
    label TEXT NOT NULL,
    text TEXT NOT NULL,
    trouble TEXT NOT NULL,
    how TEXT NOT NULL DEFAULT '',
    PRIMARY KEY (document_id, state, number),
    FOREIGN KEY (document_id, state) REFERENCES documents ON DELETE CASCADE
) STRICT, WITHOUT ROWID;
PRAGMA user_version = {SCHEMA};
COMMIT;
"""
_FROM_1 = f"""
PRAGMA foreign_keys = OFF;
BEGIN;
{_DOCUMENTS.format("newer", "")}
INSERT INTO newer SELECT * FROM documents;
DROP TABLE documents;
ALTER TABLE newer RENAME TO documents;
{_INDEXES}
PRAGMA user_version = 2;
COMMIT;
VACUUM;
"""  # noqa: S608 - of constants
_ADDED = {"parts": "how TEXT NOT NULL DEFAULT ''", "documents": _BECOMING}
"""By table: the column that versions 3 and 4 brought."""
COLUMNS = "document_id, owner, name, visibility, sha256, size, media_type, ingested_at, chunks, becoming"


_EVERY_PART = "SELECT label, text, trouble, how FROM parts WHERE document_id = ? AND state = ? ORDER BY number"
_PARTS_IN_TROUBLE = """
SELECT label, '', trouble, how FROM parts WHERE document_id = ? AND state = ? AND trouble <> '' ORDER BY number
"""
TROUBLES = """
CREATE INDEX IF NOT EXISTS parts_in_trouble ON parts (document_id, state, number, trouble, label, how)
WHERE trouble <> ''
"""
"""Without it, each look at a document reads past the whole of its text."""


def document(
    row: tuple[str, str, str, Visibility, str, int, str, str, int, Visibility | Literal[""]], parts: tuple[Part, ...]
) -> Document:
    document_id, owner, name, visibility, sha256, size, media_type, ingested_at, chunks, becoming = row
    at = datetime.fromisoformat(ingested_at)
    return Document(document_id, owner, name, visibility, sha256, size, media_type, at, chunks, parts, becoming)


def parts(database: sqlite3.Connection, document_id: str, state: State, with_text: bool) -> tuple[Part, ...]:
    query = _EVERY_PART if with_text else _PARTS_IN_TROUBLE
    return tuple(Part(*row) for row in database.execute(query, (document_id, state)))


def has(database: sqlite3.Connection, document: Document) -> bool:
    """The same bytes, of this document itself."""
    known = "SELECT 1 FROM documents WHERE document_id = ? AND sha256 = ? AND state <> 'leaving'"
    return database.execute(known, (document.document_id, document.sha256)).fetchone() is not None


def replace(database: sqlite3.Connection, document: Document, state: State) -> None:
    """A finished version takes the place of the one that was live, and of the unfinished one that it was."""
    database.execute("BEGIN IMMEDIATE")
    database.execute(
        "DELETE FROM documents WHERE document_id = ? AND state IN ('coming', ?)",
        (document.document_id, state),
    )
    if state == "live":  # it was sent again while it was leaving, and its passages are those of this version
        database.execute("DELETE FROM documents WHERE document_id = ? AND state = 'leaving'", (document.document_id,))
    database.execute(
        "INSERT INTO documents VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
        (
            document.document_id,
            state,
            document.owner,
            document.name,
            document.name.casefold(),
            document.visibility,
            document.sha256,
            document.size,
            document.media_type,
            document.ingested_at.isoformat(),
            document.chunks,
            document.becoming,
        ),
    )
    database.executemany(
        "INSERT INTO parts VALUES (?, ?, ?, ?, ?, ?, ?)",
        (
            (document.document_id, state, number, part.label, part.text, part.trouble, part.how)
            for number, part in enumerate(document.parts)
        ),
    )


def referred_to(database: sqlite3.Connection) -> frozenset[str]:
    return frozenset(sha for (sha,) in database.execute("SELECT sha256 FROM documents WHERE state <> 'leaving'"))


def leave(database: sqlite3.Connection, document_id: str) -> None:
    """One row stays: the live version's, if there is one."""
    database.execute("BEGIN IMMEDIATE")
    database.execute("DELETE FROM parts WHERE document_id = ?", (document_id,))
    database.execute("DELETE FROM documents WHERE document_id = ? AND state = 'leaving'", (document_id,))
    leave = "UPDATE documents SET state = 'leaving' WHERE document_id = ? AND state = ?"
    if not database.execute(leave, (document_id, "live")).rowcount:
        database.execute(leave, (document_id, "coming"))
    database.execute("DELETE FROM documents WHERE document_id = ? AND state <> 'leaving'", (document_id,))


def migrate(database: sqlite3.Connection) -> None:
    (version,) = database.execute("PRAGMA user_version").fetchone()
    if version > SCHEMA:
        raise Misconfigured(
            f"The document index is of version {version}, and this Adiyan knows version {SCHEMA}. "
            "Install the newer Adiyan that wrote it, or restore a backup of the documents folder."
        )
    if version == 0:
        database.execute("PRAGMA journal_mode = WAL")
        database.executescript(_TABLES)
        return
    if version == 1:
        database.executescript(_FROM_1)
    if version < SCHEMA:
        database.execute("BEGIN IMMEDIATE")
        for table, column in _ADDED.items():
            there = {name for _, name, *_ in database.execute(f"PRAGMA table_info({table})")}
            if column.partition(" ")[0] not in there:
                database.execute(f"ALTER TABLE {table} ADD COLUMN {column}")
        database.execute(f"PRAGMA user_version = {SCHEMA}")
