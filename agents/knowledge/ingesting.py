"""Documents in: read, cut, embedded, and put in the old version's place when all of it is there."""

from __future__ import annotations

import asyncio
import hashlib
import logging
import time
import unicodedata
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Sequence
from contextlib import aclosing, asynccontextmanager, nullcontext
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import PurePosixPath
from typing import Literal

from agents.knowledge.chunking import chunk
from agents.knowledge.embedding import Embedding
from agents.knowledge.parsing import Parsed, parse
from agents.knowledge.stores import Stores
from agents.knowledge.turns import Line, is_small_text
from mesh.access import Grant, upkeep
from mesh.envelope import digest
from mesh.errors import Denied, Malformed, MeshError, NotFound, Unreadable
from mesh.files import readable
from mesh.ingestions import Progress, Report
from mesh.ports.documents import Chunk, Document, Part, Visibility
from mesh.ports.models import Vector
from mesh.settings import IDENTITY

log = logging.getLogger(__name__)

PUBLISH = "documents:publish"
LONGEST_NAME = 200
PARSERS, PARSERS_OF_TEXTS = 2, 4
RETRY_AFTER, RETRY_AFTER_AT_MOST = 30.0, 120.0
"""Seconds, before an interrupted ingestion that failed again is tried again; twice as long each time."""

Outcome = Literal["added", "replaced", "unchanged"]


@dataclass
class Ingesting:
    _stores: Stores
    _parsing: Line = field(default_factory=lambda: Line(PARSERS), repr=False)
    _parsing_texts: Line = field(default_factory=lambda: Line(PARSERS_OF_TEXTS), repr=False)
    _interrupted: asyncio.Event = field(default_factory=asyncio.Event, repr=False)
    _embedding: Embedding = field(init=False, repr=False)

    def __post_init__(self) -> None:
        self._embedding = Embedding(self._stores)

    async def ingest(
        self,
        grant: Grant,
        name: str,
        raw: bytes,
        *,
        owner: str = "",
        visibility: Visibility = "private",
        report: Report | None = None,
    ) -> tuple[Document, Outcome]:
        name = clean_name(name)
        owner = _owner(grant, owner)
        if visibility == "global":
            may_publish(grant)
        document_id = digest(owner, name)
        async with self._stores.shelf.hold(document_id):
            before = await self._stores.shelf.document(grant, document_id)
            sha256 = hashlib.sha256(raw).hexdigest()
            same = before and (before.sha256, before.visibility) == (sha256, visibility)
            if before and same and not await self._coming(grant, document_id):
                return before, "unchanged"
            async with self._told(document_id, owner, name, report) as tell:
                parsed = await self._read(grant, name, raw)
                chunks = await _chunked(name, parsed)
                document = Document(
                    document_id=document_id,
                    owner=owner,
                    name=name,
                    visibility=visibility,
                    sha256=sha256,
                    size=len(raw),
                    media_type=parsed.media_type,
                    ingested_at=datetime.now(UTC),
                    chunks=len(chunks),
                    parts=parsed.parts,
                )
                await self._take_in(grant, document, raw, chunks, tell)
        return document, "replaced" if before else "added"

    async def rebuild(
        self, grant: Grant, document_id: str, *, anew: bool = False, report: Report | None = None
    ) -> tuple[Document, Unreadable | None]:
        """Its passages are made again from its file, as it is read and cut today; who owns and sees it, and when it was
        sent, stay. A file that can't be read any more keeps the text that was read then, and is told why; so does a
        page that OCR read then, where there is none today. `anew`: its vectors are made again, too."""
        await self._stores.passages.prepare()
        async with self._stores.shelf.hold(document_id):
            # A version that broke off is newer than the one that is live.
            await _went_well(document_id, self._finish(grant, document_id))
            document = await self._stores.shelf.document(grant, document_id)
            raw = await self._stores.shelf.raw(grant, document_id) if document else None
            if document is None or raw is None:
                raise NotFound
            if anew and self._stores.cache:
                await self._stores.cache.forget(grant, document_id)
            async with self._told(document_id, document.owner, document.name, report) as tell:
                refused = None
                try:
                    parsed = await self._read(grant, document.name, raw)
                    parsed = replace(parsed, parts=_with_ocr_of_before(document.parts, parsed.parts))
                    chunks = await _chunked(document.name, parsed)
                except Unreadable as error:
                    refused, chunks = error, await _cut(document)
                else:
                    document = replace(document, parts=parsed.parts, media_type=parsed.media_type, chunks=len(chunks))
                await self._take_in(grant, document, raw, chunks, tell)
        return document, refused

    async def _read(self, grant: Grant, name: str, raw: bytes) -> Parsed:
        line = self._parsing_texts if is_small_text(name, raw) else self._parsing
        async with line.turn(grant.client):
            return await parse(name, raw, reader=self._stores.reader)

    @asynccontextmanager
    async def _told(
        self, document_id: str, owner: str, name: str, report: Report | None = None
    ) -> AsyncIterator[Report]:
        """Both to who asked for it, if anybody did, and to who looks on."""
        ingestions = self._stores.ingestions
        async with ingestions.noted(document_id, owner, name) if ingestions else nullcontext(_nobody) as note:

            def tell(progress: Progress) -> None:
                note(progress)
                if report:
                    report(progress)

            tell(Progress("reading"))
            yield tell

    async def _take_in(
        self, grant: Grant, document: Document, raw: bytes, chunks: Sequence[Chunk], tell: Report
    ) -> None:
        await self._stores.shelf.put(grant, document, raw, complete=False)
        async with self.resumed():
            await self._complete(grant, document, raw, chunks, tell)

    async def _coming(self, grant: Grant, document_id: str) -> bool:
        """A later version broke off: it must be overtaken, or it would be finished yet."""
        return any(document.document_id == document_id for document in await self._stores.shelf.unfinished(grant))

    async def _complete(
        self, grant: Grant, document: Document, raw: bytes, chunks: Sequence[Chunk], tell: Report
    ) -> None:
        began = time.time()
        async with aclosing(self._vectors(grant, document, chunks, tell)) as vectors:
            await self._stores.passages.put(grant, document, chunks, vectors)
        tell(Progress("finishing", len(chunks), len(chunks)))
        if self._stores.cache:
            await self._stores.cache.forget(grant, document.document_id, unused_since=began)
        await self._stores.shelf.put(grant, document, raw, complete=True)

    async def _vectors(
        self, grant: Grant, document: Document, chunks: Sequence[Chunk], tell: Report
    ) -> AsyncGenerator[Vector, None]:
        done = 0
        tell(Progress("embedding", done, len(chunks)))
        async with aclosing(self._embedding.vectors(grant, document, chunks)) as vectors:
            async for vector in vectors:
                yield vector
                done += 1
                tell(Progress("embedding", done, len(chunks)))

    async def settle(self, grant: Grant, document_id: str, visibility: Visibility) -> None:
        """The index first: what the shelf shows to others, the index must show, too."""
        await self._stores.passages.set_visibility(grant, document_id, visibility)
        await self._stores.shelf.set_visibility(grant, document_id, visibility)

    async def leave(self, grant: Grant, document_id: str) -> None:
        await self._stores.passages.delete(grant, document_id)
        if self._stores.cache:
            await self._stores.cache.forget(grant, document_id)
        await self._stores.shelf.gone(grant, document_id)

    @asynccontextmanager
    async def resumed(self) -> AsyncIterator[None]:
        """What breaks off in the block is finished in the background."""
        try:
            yield
        except BaseException:
            self._interrupted.set()
            raise

    def look_again(self) -> None:
        """Something may be left to finish, or the stores may disagree."""
        self._interrupted.set()

    async def keep_finishing(self) -> None:
        """Finishes what a crash, a time-out or an unreachable store interrupted, now and whenever it happens."""
        self._interrupted.set()
        pause = RETRY_AFTER
        while True:
            await self._interrupted.wait()
            self._interrupted.clear()
            if await _went_well("all", self.finish_interrupted()):
                pause = RETRY_AFTER
            else:
                await asyncio.sleep(pause)
                pause = min(2 * pause, RETRY_AFTER_AT_MOST)
                self._interrupted.set()

    async def finish_interrupted(self) -> bool:
        """Whether all could be finished: what broke off, and what the index has lost. What one document meets does not
        keep the others waiting."""
        grant, shelf = upkeep(), self._stores.shelf
        await self._stores.passages.prepare()
        done = await self._each(grant, await shelf.leaving(grant), self._left)
        done &= await self._index_lost(grant)
        done &= await self._each(grant, await shelf.unfinished(grant), self._finish)
        return await self._agree(grant) and done

    async def _each(
        self, grant: Grant, documents: Sequence[Document], work: Callable[[Grant, str], Awaitable[None]]
    ) -> bool:
        async def held(document_id: str) -> None:
            async with self._stores.shelf.hold(document_id):
                await work(grant, document_id)

        return all([await _went_well(each.document_id, held(each.document_id)) for each in documents])

    async def _left(self, grant: Grant, document_id: str) -> None:
        leaving = await self._stores.shelf.leaving(grant)
        if any(each.document_id == document_id for each in leaving):  # else it is gone, or was sent again
            await self.leave(grant, document_id)

    async def _agree(self, grant: Grant) -> bool:
        """What documents are becoming they become; and the index is told who may see one, where it has missed that."""
        shown: dict[Visibility, set[str]] = {
            "private": await self._stores.passages.indexed(grant, visibility="global"),
            "global": await self._stores.passages.indexed(grant, visibility="private"),
        }
        differing = [
            document
            for document in await self._stores.shelf.documents(grant)
            if document.becoming or document.document_id in shown[document.visibility]
        ]
        return await self._each(grant, differing, self._settled)

    async def _settled(self, grant: Grant, document_id: str) -> None:
        for document in await self._stores.shelf.documents(grant, only=[document_id]):
            await self.settle(grant, document_id, document.becoming or document.visibility)
            log.info("→ settled document=%s was_becoming=%r", document_id, document.becoming)

    async def _index_lost(self, grant: Grant) -> bool:
        """Vectors are derived: a document whose passages are gone (a deleted collection, another model) gets them
        again from its file."""
        indexed = await self._stores.passages.indexed(grant)
        known = await self._stores.shelf.documents(grant)
        lost = [document for document in known if document.document_id not in indexed]
        return await self._each(grant, lost, self._index_again)

    async def _index_again(self, grant: Grant, document_id: str) -> None:
        document = await self._stores.shelf.document(grant, document_id)
        raw = await self._stores.shelf.raw(grant, document_id) if document else None
        if document is not None and raw is not None:
            await self._completed(grant, document, raw)

    async def _finish(self, grant: Grant, document_id: str) -> None:
        raw = await self._stores.shelf.raw(grant, document_id, unfinished=True)
        for document in await self._stores.shelf.unfinished(grant):
            if document.document_id == document_id and raw is not None:  # else another process was first
                await self._completed(grant, document, raw)

    async def _completed(self, grant: Grant, document: Document, raw: bytes) -> None:
        chunks = await _cut(document)
        async with self._told(document.document_id, document.owner, document.name) as tell:
            await self._complete(grant, document, raw, chunks, tell)
        log.info("→ indexed document=%s chunks=%d", document.document_id, len(chunks))


async def _went_well(what: str, work: Awaitable[bool | None]) -> bool:
    """If not, that is logged, and it is worth trying again. False also for a `work` that comes to False."""
    try:
        return await work is not False
    except MeshError as error:
        log.warning("! resume=%s code=%s detail=%r", what, error.code, error.detail)
    except Exception:  # the boundary: a defect must neither end the finishing nor keep other documents waiting
        log.exception("! resume=%s", what)
    return False


def clean_name(name: str) -> str:
    """A bare file name that reads as it is written. Raises `Malformed` when nothing is left of it."""
    bare = PurePosixPath(unicodedata.normalize("NFC", name).replace("\\", "/")).name
    shown = " ".join(readable(bare).split())
    stem, dot, extension = shown.rpartition(".")
    if len(shown) > LONGEST_NAME:
        shown = (
            stem[: LONGEST_NAME - len(extension) - 1] + dot + extension if len(extension) < 10 else shown[:LONGEST_NAME]
        )
    if not shown.strip(". "):
        raise Malformed("That file has no name. Please give it one and send it again.")
    return shown


def _owner(grant: Grant, named: str) -> str:
    owner = named or grant.client
    if owner != grant.client and not grant.sees_all:
        raise Denied(detail="a document in another's name")
    if not IDENTITY.fullmatch(owner):
        raise Malformed("A document's owner is a number such as +15551230001.")
    return owner


def may_publish(grant: Grant) -> None:
    if not grant.covers(PUBLISH):
        raise Denied(
            "Sharing a document with everyone isn't part of your plan. It stays visible to you alone.",
            detail=f"tier {grant.tier or 'unknown'} lacks {PUBLISH}",
        )


async def _chunked(name: str, parsed: Parsed) -> list[Chunk]:
    chunks = await asyncio.to_thread(chunk, parsed.media_type, parsed.parts)
    if not chunks:
        raise Unreadable(f"{name} has headings but nothing under them. Please check the file and send it again.")
    return chunks


def _with_ocr_of_before(before: Sequence[Part], today: Sequence[Part]) -> tuple[Part, ...]:
    """Pages are matched by their labels."""
    read = {part.label: part for part in before if part.how}

    def better(part: Part) -> Part:
        old = read.get(part.label)
        return old if old and not part.how and len(part.text) < len(old.text) else part

    return tuple(better(part) for part in today)


def _nobody(progress: Progress) -> None:
    """Looks on."""


async def _cut(document: Document) -> list[Chunk]:
    """Of the text that was read."""
    return await asyncio.to_thread(chunk, document.media_type, document.parts)
