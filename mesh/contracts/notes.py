"""The knowledge agent: what people ask it to keep, and look for later."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Literal

from mesh.contracts.documents import _READ, DocumentCard
from mesh.envelope import Wire
from mesh.skills import Skill


class SaveNote(Wire):
    """`message_id` asked for it, `said_id` is the message whose text it is (empty: the same). It replied to
    `replies_to`, nearest first, and those messages are about the documents `about`."""

    text: str
    message_id: str
    said_id: str = ""
    replies_to: tuple[str, ...] = ()
    about: tuple[str, ...] = ()


class NoteSaved(Wire):
    """`unchanged`: another message has saved the same text already. Tags and links as they were written."""

    document: DocumentCard
    outcome: Literal["added", "unchanged"]
    tags: tuple[str, ...] = ()
    links: tuple[str, ...] = ()


class NotesWanted(Wire):
    """The asker's own notes: saved since then and before `until`, with all of the tags."""

    since: datetime | None = None
    until: datetime | None = None
    tags: tuple[str, ...] = ()
    about: str = ""
    """Only those that name it, best first; where none does, the nearest ones."""
    limit: int = 10


class NoteCard(Wire):
    document_id: str
    name: str
    saved_at: datetime
    begins: str


class NotesFound(Wire):
    notes: tuple[NoteCard, ...]
    more: int = 0
    nearest: bool = False
    """None names what was asked for: these are the nearest."""


FIND_NOTES = Skill(
    name="knowledge.find_notes",
    takes=NotesWanted,
    returns=NotesFound,
    needs=_READ,
    within=timedelta(seconds=15),
)
OWN_READ_PATHS = (FIND_NOTES,)
"""Show the asker's own alone, also to the system owner."""
SAVE_NOTE = Skill(
    name="knowledge.save_note",
    takes=SaveNote,
    returns=NoteSaved,
    needs="documents:add",
    kept=True,
    within=timedelta(minutes=2),
)
"""As a private document of the asker's."""
