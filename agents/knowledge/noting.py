"""Notes: what a person saves in chat, as documents of their own."""

from __future__ import annotations

import hashlib
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Literal

import regex

from agents.knowledge.breaker import Breaker
from agents.knowledge.fallback import in_texts
from agents.knowledge.ingesting import Ingesting
from agents.knowledge.stores import Stores
from mesh.access import Grant
from mesh.contracts.notes import NotesWanted, SaveNote
from mesh.envelope import digest
from mesh.errors import Malformed, TooLong, Unavailable
from mesh.files import readable
from mesh.ports.documents import Document
from mesh.ports.notes import NewNote, Note
from mesh.ports.passages import Passage

LONGEST = 50_000
"""In characters. What is longer is a file."""
TITLE_WORDS, TITLE_LENGTH = 7, 48
MOST_EDGES = 50
"""Tags, and links, of one note that are followed."""
NEAREST = 3
"""Notes that are shown where none names what was asked for."""
PER_LEG = 200
FOUND_WITHIN_S = 8.0
"""With the question embedded, whose model may have to be loaded first."""

_CODE = regex.compile(r"```.*?(?:```|\Z)|~~~.*?(?:~~~|\Z)|`[^`\n]*`", regex.DOTALL)
_TAG = regex.compile(r"(?<![\p{L}\p{M}\p{N}_/&#])#([\p{L}\p{M}\p{N}_][\p{L}\p{M}\p{N}_/-]{0,80})")
_LETTER = regex.compile(r"\p{L}")
_LINK = regex.compile(r"\[\[([^\[\]|#\n]{1,200})(?:#[^\[\]|\n]{0,200})?(?:\|[^\[\]\n]{0,200})?\]\]")
_ALIAS = regex.compile(r"\[\[(?:[^\[\]|\n]{1,400}\|)?([^\[\]|\n]{1,400})\]\]")
_ADDRESS = regex.compile(r"\b(?:https?://|www\.)\S+", regex.IGNORECASE)
_WORD = regex.compile(r"[\p{L}\p{N}][\p{L}\p{M}\p{N}'’-]*")


@dataclass(frozen=True, slots=True)
class Written:
    """What the text of a note says of itself. Tags and links in the order and form in which they were written; what
    stands in code is neither."""

    title: str
    tags: tuple[str, ...]
    links: tuple[str, ...]

    @classmethod
    def of(cls, text: str) -> Written:
        prose = _CODE.sub(" ", text)
        tags = [tag.strip("-/_") for tag in _TAG.findall(_ADDRESS.sub(" ", _LINK.sub(" ", prose)))]
        links = [" ".join(link.split()) for link in _LINK.findall(prose)]
        return cls(
            _title(_ALIAS.sub(r"\1", text)),
            _distinct([tag for tag in tags if _LETTER.search(tag)]),
            _distinct([link for link in links if link]),
        )


def _title(text: str) -> str:
    """The first words of its first line, of letters and digits alone: a file name in every system, and in one
    direction. Without its tags, where there is more."""
    lines = text[:2000].splitlines()
    found = (_WORD.findall(line) for line in [*(_TAG.sub(" ", line) for line in lines), *lines])
    title = ""
    for word in next(filter(None, found), [])[:TITLE_WORDS]:
        longer = f"{title} {word}".strip()
        if title and len(longer) > TITLE_LENGTH:
            break
        title = longer[:TITLE_LENGTH]
    title = title or "Note"
    return unicodedata.normalize("NFC", title[0].upper() + title[1:])


def _distinct(found: Sequence[str]) -> tuple[str, ...]:
    return tuple({each.casefold(): each for each in reversed(found)}.values())[::-1][:MOST_EDGES]


def cleaned(text: str) -> str:
    """Its lines as they read: without control characters and turned writing. Raises `Malformed` when nothing is left,
    and `TooLong`."""
    if len(text) > LONGEST:
        raise TooLong(
            "That is too long for a note. Please send it to me as a file, and I'll read it.",
            detail=f"{len(text)} characters",
        )
    lines = (readable(line).rstrip() for line in unicodedata.normalize("NFC", text).splitlines())
    clean = "\n".join(lines).strip()
    if not any(not character.isspace() and unicodedata.category(character) != "Cf" for character in clean):
        raise Malformed("There is nothing in that note. Please write it again, with some words.")
    return clean


@dataclass(frozen=True, slots=True)
class Saved:
    document: Document
    outcome: Literal["added", "unchanged"]
    written: Written


@dataclass(frozen=True, slots=True)
class Noting:
    _stores: Stores
    _ingesting: Ingesting
    _index: Breaker = field(default_factory=lambda: Breaker("search in notes", within=FOUND_WITHIN_S), repr=False)

    async def save(self, grant: Grant, wanted: SaveNote) -> Saved:
        """Once for each message that asks for it: its name is reserved first, and a repetition finds that. What is
        there stays as it is: its owner may have shown it to everyone since."""
        text = cleaned(wanted.text)
        raw, written = text.encode("utf-8", "replace"), Written.of(text)
        note = NewNote(
            title=written.title,
            sha256=hashlib.sha256(raw).hexdigest(),
            saved_at=datetime.now(UTC).astimezone(),
            message_id=wanted.message_id,
            said_id=wanted.said_id or wanted.message_id,
            tags=written.tags,
            links=written.links,
            replies_to=wanted.replies_to,
            about=wanted.about,
        )
        reserved = await self._stores.shelf.notes.reserve(grant, note)
        document = await self._stores.shelf.document(grant, digest(grant.client, reserved.name))
        if document is None or document.sha256 != note.sha256:
            document, _ = await self._ingesting.ingest(grant, reserved.name, raw)
        return Saved(document, "unchanged" if reserved.known else "added", written)

    async def find(self, grant: Grant, wanted: NotesWanted) -> tuple[list[Note], bool]:
        """Newest first; those about something best first. True: none names it, and these are the nearest."""
        noted = await self._stores.shelf.notes.noted(grant, since=wanted.since, until=wanted.until, tags=wanted.tags)
        about = wanted.about.strip()
        if not about or not noted:
            return noted, False
        known = {note.document_id: note for note in noted}
        passages = await self._passages(grant, about, list(known))
        best = sorted(passages, key=lambda each: (-(each.sparse or 0.0), -(each.dense or 0.0)))
        named = dict.fromkeys(each.document_id for each in best if each.sparse)
        nearest = dict.fromkeys(each.document_id for each in best)
        chosen = list(named) or list(nearest)[:NEAREST]
        return [known[each] for each in chosen if each in known], not named

    async def _passages(self, grant: Grant, about: str, within: list[str]) -> list[Passage]:
        """By words alone, in the shelf's own text, where nothing can be embedded or the index can't be asked."""

        async def searched() -> list[Passage]:
            (vector,) = await self._stores.embedder.queries([about])
            return await self._stores.passages.search(grant, about, vector, limit=PER_LEG, within=within)

        try:
            return await self._index.call(searched)
        except Unavailable:
            found = await in_texts(self._stores.shelf, grant, about, limit=PER_LEG, within=within)
            return [passage for passage, _ in found]
