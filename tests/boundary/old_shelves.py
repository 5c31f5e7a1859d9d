"""Documents folders as earlier releases wrote them: their tables by hand, since no code makes them any more."""

from __future__ import annotations

import hashlib
import sqlite3
from contextlib import closing
from pathlib import Path

from mesh.envelope import digest

OWNER = "+15551230001"
NAME = "Contract.md"
RAW = b"The fee is 7,413 zlotys."
DOCUMENT_ID = digest(OWNER, NAME)
SHA256 = hashlib.sha256(RAW).hexdigest()

_DOCUMENTS = """
CREATE TABLE documents (
    document_id TEXT NOT NULL,
    state TEXT NOT NULL CHECK (state IN ({states})),
    owner TEXT NOT NULL,
    name TEXT NOT NULL,
    folded TEXT NOT NULL,
    visibility TEXT NOT NULL CHECK (visibility IN ('private', 'global')),
    sha256 TEXT NOT NULL,
    size INTEGER NOT NULL,
    media_type TEXT NOT NULL,
    ingested_at TEXT NOT NULL,
    chunks INTEGER NOT NULL,
    PRIMARY KEY (document_id, state)
) STRICT;
CREATE INDEX documents_by_owner ON documents (state, owner, folded);
CREATE INDEX documents_by_name ON documents (state, folded);
CREATE INDEX documents_by_bytes ON documents (sha256);
CREATE TABLE parts (
    document_id TEXT NOT NULL,
    state TEXT NOT NULL,
    number INTEGER NOT NULL,
    label TEXT NOT NULL,
    text TEXT NOT NULL,
    trouble TEXT NOT NULL,
    {how}
    PRIMARY KEY (document_id, state, number),
    FOREIGN KEY (document_id, state) REFERENCES documents ON DELETE CASCADE
) STRICT, WITHOUT ROWID;
PRAGMA user_version = {version};
"""
_HOW = "how TEXT NOT NULL DEFAULT '',"
VERSIONS = {
    1: _DOCUMENTS.format(version=1, states="'live', 'coming'", how=""),
    2: _DOCUMENTS.format(version=2, states="'live', 'coming', 'leaving'", how=""),
    3: _DOCUMENTS.format(version=3, states="'live', 'coming', 'leaving'", how=_HOW),
}


def write(folder: Path, version: int) -> None:
    """With one private document of `OWNER`'s."""
    (folder / "raw").mkdir(parents=True)
    (folder / "raw" / SHA256).write_bytes(RAW)
    with closing(sqlite3.connect(folder / "index.sqlite")) as database, database:
        database.execute("PRAGMA journal_mode = WAL")
        database.executescript(VERSIONS[version])
        row = (DOCUMENT_ID, "live", OWNER, NAME, NAME.casefold(), "private", SHA256, len(RAW), "text/markdown")
        database.execute(
            "INSERT INTO documents VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, '2026-01-02T00:00:00+00:00', 1)", row
        )
        how = ", ''" if version >= 3 else ""
        database.execute(f"INSERT INTO parts VALUES (?, 'live', 0, '', ?, ''{how})", (DOCUMENT_ID, RAW.decode()))
