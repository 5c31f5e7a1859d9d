"""Documents, and the shelf that they stand on: the source of truth."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING, Literal, Protocol

from mesh.ports.notes import Notes

if TYPE_CHECKING:
    from mesh.access import Grant


Visibility = Literal["private", "global"]


@dataclass(frozen=True, slots=True)
class Part:
    """One page, slide or sheet, or the whole of a text file. `trouble` names what of it could not be read, and why; its
    text may be empty or not. `how` it was read: "ocr", "partly ocr", or empty for text that was there as text."""

    label: str
    text: str
    trouble: str = ""
    how: str = ""


@dataclass(frozen=True, slots=True)
class Chunk:
    index: int
    text: str
    heading_path: tuple[str, ...] = ()
    part: str = ""
    start: int = 0
    """Offset, in characters, into the text of its part."""


@dataclass(frozen=True, slots=True)
class Document:
    """`document_id` follows from owner and name; `sha256` from the bytes. The server stamps all of it."""

    document_id: str
    owner: str
    name: str
    visibility: Visibility
    sha256: str
    size: int
    media_type: str
    ingested_at: datetime
    chunks: int
    parts: tuple[Part, ...] = field(default=(), repr=False)
    becoming: Visibility | Literal[""] = ""
    """Was wished for, and not every store knows it yet: until then, the stricter of the two holds."""


class Shelf(Protocol):
    """Raw files and their index: the source of truth. Only what the grant may see exists for it."""

    @property
    def notes(self) -> Notes: ...

    async def put(self, grant: Grant, document: Document, raw: bytes, *, complete: bool) -> None:
        """Chunks follow from the parts, and are not kept. `complete=False` keeps the bytes; the version that was live
        stays live until it is put as complete."""
        ...

    async def documents(self, grant: Grant, *, only: Sequence[str] | None = None) -> list[Document]:
        """By name; of the parts, only those in trouble. `only` are document ids."""
        ...

    async def holding(
        self, grant: Grant, beginnings: Sequence[str], *, limit: int, within: Sequence[str] | None = None
    ) -> list[Document]:
        """With their text: those in which most, and the rarest, of these beginnings of words stand come first. Slow,
        and bounded: for when there is no index to ask."""
        ...

    async def document(self, grant: Grant, document_id: str) -> Document | None: ...
    async def named(self, grant: Grant, name: str) -> list[Document]:
        """By exact file name, case ignored; the grant's own before those of others."""
        ...

    async def raw(self, grant: Grant, document_id: str, *, unfinished: bool = False) -> bytes | None: ...
    async def unfinished(self, grant: Grant) -> list[Document]:
        """Versions whose ingestion was interrupted, with their parts."""
        ...

    async def own(self, grant: Grant, document_id: str, *, leaving: bool = False) -> Document | None:
        """What the grant may change or delete, whoever may see it: live, else unfinished, else (`leaving`) being
        deleted. Without its text."""
        ...

    async def wish(self, grant: Grant, document_id: str, visibility: Visibility) -> None:
        """What all its versions are becoming, until that is set. Private they are at once."""
        ...

    async def set_visibility(self, grant: Grant, document_id: str, visibility: Visibility) -> None:
        """Of all its versions."""
        ...

    async def delete(self, grant: Grant, document_id: str) -> None:
        """From then on it exists for nobody; all that is kept is that it is leaving, until it is `gone`."""
        ...

    async def leaving(self, grant: Grant) -> list[Document]: ...
    async def gone(self, grant: Grant, document_id: str) -> None:
        """The other stores have nothing of it any more, either."""
        ...

    def hold(self, document_id: str) -> AbstractAsyncContextManager[None]:
        """One ingestion of a document at a time, in all processes; the others wait."""
        ...

    async def close(self) -> None: ...
