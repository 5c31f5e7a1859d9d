"""What the shelf knows of the documents that are notes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING, Literal, Protocol

if TYPE_CHECKING:
    from mesh.access import Grant


@dataclass(frozen=True, slots=True)
class NewNote:
    """`title` is its first words; `links` are as they were written. `replies_to` names messages, `about` documents."""

    title: str
    sha256: str
    saved_at: datetime
    """In the time zone whose day is in its name."""
    message_id: str
    """That asked for it: one message, one note."""
    said_id: str
    """Whose text it is."""
    tags: tuple[str, ...] = ()
    links: tuple[str, ...] = ()
    replies_to: tuple[str, ...] = ()
    about: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Reserved:
    """A document's name. `known`: another message has saved the very same text already."""

    name: str
    known: bool = False


@dataclass(frozen=True, slots=True)
class Note:
    document_id: str
    name: str
    saved_at: datetime
    begins: str = field(repr=False)


@dataclass(frozen=True, slots=True)
class Link:
    """Two documents of which one, at least, is a note."""

    document_id: str
    other: str
    kind: Literal["link", "reply", "tag"]


class Notes(Protocol):
    """What the shelf knows of the documents that are notes."""

    async def reserve(self, grant: Grant, note: NewNote) -> Reserved:
        """A name that no document of theirs has, kept for the note from then on; the same for the same message."""
        ...

    async def noted(
        self,
        grant: Grant,
        *,
        since: datetime | None = None,
        until: datetime | None = None,
        tags: Sequence[str] = (),
    ) -> list[Note]:
        """The person's own, newest first; with all of the tags."""
        ...

    async def near(self, grant: Grant, document_ids: Sequence[str]) -> list[Link]:
        """From these documents one step along links (both ways), chains of replies and tags of few notes, over what
        the grant may see; what it may not see is as if it were not there, also in counting notes."""
        ...
