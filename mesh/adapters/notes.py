"""What is known of a note beside its text: when and from which message it was saved, its tags, and what it leads to. In
the shelf's index, where a note is a document like any other; it goes when its document goes.

A link is kept as it was written and looked up when it is followed: what it names may come later."""

from __future__ import annotations

import asyncio
import sqlite3
import time
from collections.abc import Callable, Collection, Iterable, Sequence
from contextlib import AbstractContextManager
from datetime import UTC, datetime, timedelta
from typing import Any

from mesh.access import Grant
from mesh.envelope import digest
from mesh.errors import Misconfigured
from mesh.ports.notes import Link, NewNote, Note, Reserved

VERSION = 1
ENDING = ".md"
RARE = 8
"""A tag of more notes than this leads nowhere."""
BEGINS = 400
"""Characters of a note that a list of notes is given."""
ABANDONED = timedelta(hours=1)
NONE_FOR_S = 10.0
"""So long nothing is looked for where nobody's notes lead anywhere: each search would ask. Another process's first note
is followed that much later."""

_TABLES = f"""
BEGIN;
CREATE TABLE notes (
    document_id TEXT NOT NULL PRIMARY KEY,
    owner TEXT NOT NULL,
    name TEXT NOT NULL,
    title TEXT NOT NULL,
    saved_at TEXT NOT NULL,
    message_id TEXT NOT NULL,
    said_id TEXT NOT NULL,
    UNIQUE (owner, message_id)
) STRICT;
CREATE INDEX notes_by_time ON notes (owner, saved_at);
CREATE INDEX notes_by_title ON notes (owner, title);
CREATE INDEX notes_by_said ON notes (owner, said_id);
CREATE TABLE note_edges (
    document_id TEXT NOT NULL REFERENCES notes ON DELETE CASCADE,
    kind TEXT NOT NULL CHECK (kind IN ('tag', 'link', 'reply', 'about')),
    target TEXT NOT NULL,
    PRIMARY KEY (document_id, kind, target)
) STRICT, WITHOUT ROWID;
CREATE INDEX note_edges_by_target ON note_edges (kind, target);
CREATE TABLE notes_schema (version INTEGER NOT NULL) STRICT;
INSERT INTO notes_schema VALUES ({VERSION});
COMMIT;
"""  # noqa: S608 - of constants
_GOES = """
CREATE TRIGGER IF NOT EXISTS note_goes AFTER UPDATE OF state ON documents WHEN NEW.state = 'leaving'
BEGIN DELETE FROM notes WHERE document_id = NEW.document_id; END
"""
_ORPHANS = "DELETE FROM notes WHERE saved_at < ? AND document_id NOT IN (SELECT document_id FROM documents)"

Work = Callable[[Callable[[sqlite3.Connection], Any]], Any]
Writing = Callable[[], AbstractContextManager[None]]
Row = tuple[str, ...]


def prepare(database: sqlite3.Connection) -> None:
    """Beside the documents' tables, of whatever version they are. Raises `Misconfigured` for a newer form."""
    known = database.execute("SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = 'notes_schema'").fetchone()
    if not known:
        database.executescript(_TABLES)
    (version,) = database.execute("SELECT version FROM notes_schema").fetchone()
    if version > VERSION:
        raise Misconfigured(
            f"The index of notes is of version {version}, and this Adiyan knows version {VERSION}. "
            "Install the newer Adiyan that wrote it, or restore a backup of the documents folder."
        )
    database.execute(_GOES)
    database.execute(_ORPHANS, (_written(datetime.now(UTC) - ABANDONED),))


class DiskNotes:
    """In the shelf's database, and through its connections and its writers' lock."""

    def __init__(self, work: Work, writing: Writing) -> None:
        self._work = work
        self._writing = writing
        self._none_until = 0.0

    # ── writing ───────────────────────────────────────────────────────────────────────────────────────────────────

    async def reserve(self, grant: Grant, note: NewNote) -> Reserved:
        grant.limited_to()  # raises for who is nobody
        return await asyncio.to_thread(self._reserve, grant.client, note)

    def _reserve(self, owner: str, note: NewNote) -> Reserved:
        def reserve(database: sqlite3.Connection) -> Reserved:
            database.execute("BEGIN IMMEDIATE")
            of_message = "SELECT name FROM notes WHERE owner = ? AND message_id = ?"
            if found := database.execute(of_message, (owner, note.message_id)).fetchone():
                return Reserved(found[0])
            alike = """SELECT d.name FROM documents d JOIN notes n USING (document_id)
                WHERE d.owner = ? AND d.sha256 = ? AND d.state IN ('live', 'coming')"""
            if found := database.execute(alike, (owner, note.sha256)).fetchone():
                return Reserved(found[0], known=True)
            name = _free(database, owner, f"{note.title} {note.saved_at:%Y-%m-%d}")
            document_id = digest(owner, name)
            row = (document_id, owner, name, folded(note.title), _written(note.saved_at), note.message_id, note.said_id)
            database.execute("INSERT INTO notes VALUES (?, ?, ?, ?, ?, ?, ?)", row)
            edges = {(document_id, kind, target) for kind, target in _edges(note)}
            database.executemany("INSERT INTO note_edges VALUES (?, ?, ?)", sorted(edges))
            return Reserved(name)

        with self._writing():
            reserved: Reserved = self._work(reserve)
        self._none_until = 0.0
        return reserved

    # ── reading ───────────────────────────────────────────────────────────────────────────────────────────────────

    async def noted(
        self,
        grant: Grant,
        *,
        since: datetime | None = None,
        until: datetime | None = None,
        tags: Sequence[str] = (),
    ) -> list[Note]:
        grant.limited_to()
        tagged = " AND EXISTS (SELECT 1 FROM note_edges e WHERE e.document_id = n.document_id AND e.kind = 'tag' "
        tagged += "AND e.target = ?)"
        query = f"""
            SELECT n.document_id, n.name, n.saved_at,
                (SELECT substr(p.text, 1, {BEGINS}) FROM parts p
                 WHERE p.document_id = n.document_id AND p.state = 'live' AND p.number = 0)
            FROM notes n JOIN documents d ON d.document_id = n.document_id AND d.state = 'live'
            WHERE n.owner = ? AND d.owner = n.owner AND n.saved_at >= ? AND n.saved_at < ?{tagged * len(tags)}
            ORDER BY n.saved_at DESC, n.name
        """  # noqa: S608 - of constants; what comes from outside is bound
        bounds = (_written(since) if since else "", _written(until) if until else "~")

        def read(database: sqlite3.Connection) -> list[Note]:
            rows = database.execute(query, (grant.client, *bounds, *map(folded, tags))).fetchall()
            return [Note(key, name, datetime.fromisoformat(at), begins or "") for key, name, at, begins in rows]

        return await asyncio.to_thread(self._work, read)

    async def near(self, grant: Grant, document_ids: Sequence[str]) -> list[Link]:
        owner = grant.limited_to()
        wanted = list(dict.fromkeys(document_ids))
        if time.monotonic() < self._none_until:
            return []

        def read(database: sqlite3.Connection) -> list[Link]:
            if not database.execute("SELECT 1 FROM note_edges LIMIT 1").fetchone():
                self._none_until = time.monotonic() + NONE_FOR_S
                return []
            return _near(_Seen(database, owner), wanted)

        return await asyncio.to_thread(self._work, read)


class _Seen:
    """The index as one person may see it: no other row is ever looked at."""

    def __init__(self, database: sqlite3.Connection, owner: str | None) -> None:
        self._database = database
        self._may_see = "TRUE" if owner is None else "(d.visibility = 'global' OR d.owner = ?)"
        self._bound = () if owner is None else (owner,)

    def documents(self, where: str, values: Iterable[str]) -> list[Row]:
        """Id, owner, visibility, folded name; of notes their title and the ids of their messages, too."""
        query = f"""
            SELECT d.document_id, d.owner, d.visibility, d.folded,
                coalesce(n.title, ''), coalesce(n.message_id, ''), coalesce(n.said_id, '')
            FROM documents d LEFT JOIN notes n ON n.document_id = d.document_id AND n.owner = d.owner
            WHERE d.state = 'live' AND {self._may_see} AND ({where})
        """  # noqa: S608 - as above
        return self._database.execute(query, (*self._bound, *values)).fetchall()

    def edges(self, where: str, values: Iterable[str]) -> list[Row]:
        """Id, owner, kind, target."""
        query = f"""
            SELECT e.document_id, d.owner, e.kind, e.target
            FROM note_edges e JOIN documents d ON d.document_id = e.document_id AND d.state = 'live'
            WHERE {self._may_see} AND ({where})
        """  # noqa: S608 - as above
        return self._database.execute(query, (*self._bound, *values)).fetchall()


def _near(seen: _Seen, wanted: list[str]) -> list[Link]:
    found: dict[tuple[str, str], str] = {}

    def lead(a: str, b: str, kind: str) -> None:
        if a != b:
            found.setdefault((a, b), kind)

    seeds = seen.documents(f"d.document_id IN ({_marks(wanted)})", wanted)
    outward = seen.edges(f"e.document_id IN ({_marks(wanted)})", wanted)
    for key, owner, kind, target in outward:
        if kind == "link":
            for other in _named(seen, owner, target):
                lead(key, other, "link")
        elif kind == "about":
            for row in seen.documents("d.document_id = ?", (target,)):
                lead(key, row[0], "reply")
        elif kind == "reply":
            for column in ("message_id", "said_id"):
                of_theirs = f"d.owner = ? AND n.owner = ? AND n.{column} = ?"
                for row in seen.documents(of_theirs, (owner, owner, target)):
                    lead(key, row[0], "reply")
    for key, owner, visibility, name, title, *messages in seeds:
        names = {name, name.rpartition(".")[0] or name, title} - {""}
        for other, its_owner, _, _ in seen.edges(f"e.kind = 'link' AND e.target IN ({_marks(names)})", names):
            if visibility == "global" or its_owner == owner:
                lead(key, other, "link")
        for other, *_ in seen.edges("e.kind = 'about' AND e.target = ?", (key,)):
            lead(key, other, "reply")
        for other, its_owner, _, _ in seen.edges(f"e.kind = 'reply' AND e.target IN ({_marks(messages)})", messages):
            if its_owner == owner:
                lead(key, other, "reply")
    for key, _, kind, target in outward:
        if kind == "tag":
            alike = seen.edges("e.kind = 'tag' AND e.target = ?", (target,))
            for other, *_ in alike if len(alike) <= RARE else ():
                lead(key, other, "tag")
    return [Link(a, b, kind) for (a, b), kind in found.items()]  # type: ignore[arg-type]  # the kinds of `Link`


def _named(seen: _Seen, owner: str, target: str) -> list[str]:
    """What a link of this owner's means: by name with or without its ending, or a note's first words. Their own, or
    what all may see."""
    of_theirs = "(d.owner = ? OR d.visibility = 'global')"
    wheres = (
        (f"{of_theirs} AND d.folded = ?", (owner, target)),
        (f"{of_theirs} AND d.folded > ? AND d.folded < ?", (owner, f"{target}.", f"{target}/")),
        (f"{of_theirs} AND n.owner = ? AND n.title = ?", (owner, owner, target)),
    )
    return [row[0] for where, values in wheres for row in seen.documents(where, values)]


def _edges(note: NewNote) -> list[tuple[str, str]]:
    return [
        *(("tag", folded(each)) for each in note.tags),
        *(("link", folded(each)) for each in note.links),
        *(("reply", each) for each in note.replies_to),
        *(("about", each) for each in note.about),
    ]


def _free(database: sqlite3.Connection, owner: str, stem: str) -> str:
    number, name = 1, stem + ENDING
    taken = """SELECT 1 FROM documents WHERE owner = ?1 AND folded = ?2
        UNION ALL SELECT 1 FROM notes WHERE owner = ?1 AND document_id = ?3"""
    while database.execute(taken, (owner, name.casefold(), digest(owner, name))).fetchone():
        number += 1
        name = f"{stem} ({number}){ENDING}"
    return name


def folded(name: str) -> str:
    return " ".join(name.casefold().split())


def _marks(values: Collection[str]) -> str:
    return ", ".join("?" * len(values))


def _written(at: datetime) -> str:
    """As texts they are in the order of time."""
    return at.astimezone(UTC).isoformat(timespec="microseconds")
