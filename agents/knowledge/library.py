"""Documents, in and out: the shelf holds them, the passages find them, and both are asked with the caller's grant."""

from __future__ import annotations

import asyncio
import hashlib
import logging
import unicodedata
from array import array
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Literal

from agents.knowledge.chunking import chunk, embedding_text
from agents.knowledge.parsing import Parsed, parse
from agents.knowledge.ranking import fuse
from mesh.access import Grant, upkeep
from mesh.envelope import digest
from mesh.errors import Denied, Malformed, MeshError, NotFound, Unavailable, Unreadable
from mesh.files import readable
from mesh.ports import Chunk, Document, Embedder, Passage, PassageIndex, Shelf, Vector, Visibility
from mesh.settings import IDENTITY

if TYPE_CHECKING:
    from mesh.wiring import Parts

log = logging.getLogger(__name__)

PUBLISH = "documents:publish"
PER_LEG = 40
MOST = 20
MOST_NAMED = 5
LONGEST_QUERY = 2_000
LONGEST_NAME = 200
EMBED_AT_ONCE = 16
PARSERS = 2
RETRY_AFTER = 30.0
"""Seconds, before an interrupted ingestion that failed again is tried again."""

Outcome = Literal["added", "replaced", "unchanged"]


@dataclass(frozen=True, slots=True)
class Hit:
    passage: Passage
    document: Document
    score: float

    @property
    def reference(self) -> str:
        return f"{self.document.document_id}#{self.passage.chunk.index}"

    @property
    def section(self) -> str:
        chunk = self.passage.chunk
        return " › ".join(chunk.heading_path) or chunk.part


@dataclass
class Library:
    shelf: Shelf
    passages: PassageIndex
    embedder: Embedder
    _parsing: asyncio.Semaphore = field(default_factory=lambda: asyncio.Semaphore(PARSERS), repr=False)
    _interrupted: asyncio.Event = field(default_factory=asyncio.Event, repr=False)

    # ── out ───────────────────────────────────────────────────────────────────────────────────────────────────────

    async def document(self, grant: Grant, document_id: str) -> Document:
        """Without its text. Raises `NotFound`, in the same words for what is absent and for what is another's."""
        found = await self.shelf.documents(grant, only=[document_id])
        if not found:
            raise NotFound
        return found[0]

    async def text(self, grant: Grant, document_id: str) -> Document:
        found = await self.shelf.document(grant, document_id)
        if found is None:
            raise NotFound
        return found

    async def search(self, grant: Grant, text: str, *, limit: int, within: str | None = None) -> list[Hit]:
        _, hits = await self.evidence(grant, text, within=within)
        return hits[: max(1, min(limit, MOST))]

    async def evidence(self, grant: Grant, text: str, *, within: str | None = None) -> tuple[Vector, list[Hit]]:
        """The question's vector and all that was found, best first. What the shelf does not show to the grant is left
        out, whatever the index says."""
        text = text.strip()[:LONGEST_QUERY]
        if not text:
            return (), []
        (vector,) = await self.embedder.queries([text])
        passages = await self.passages.search(grant, text, vector, limit=PER_LEG, within=within)
        documents = await self._shelved(grant, passages)
        seen: set[tuple[str, int]] = set()
        hits: list[Hit] = []
        for place, score in _ranked(passages):
            passage = passages[place]
            document = documents.get(passage.document_id)
            key = (passage.document_id, passage.chunk.index)
            if document and key not in seen:  # twice while a new version takes the old one's place
                seen.add(key)
                hits.append(Hit(passage, document, score))
        return vector, hits

    async def _shelved(self, grant: Grant, passages: Sequence[Passage]) -> dict[str, Document]:
        ids = sorted({passage.document_id for passage in passages})
        return {found.document_id: found for found in await self.shelf.documents(grant, only=ids)}

    async def find(self, grant: Grant, name: str) -> list[Document]:
        """By file name, with or without its extension; if there is none, by content."""
        wanted = unicodedata.normalize("NFC", PurePosixPath(name.strip()).name)
        exact = await self.shelf.named(grant, wanted)
        if not exact:
            known = await self.shelf.documents(grant)
            exact = [document for document in known if _stem(document.name) == wanted.casefold()]
        if exact:
            return sorted(exact, key=lambda document: document.owner != grant.client)
        hits = await self.search(grant, name, limit=MOST)
        return list({hit.document.document_id: hit.document for hit in hits}.values())[:MOST_NAMED]

    async def raw(self, grant: Grant, document: Document) -> bytes:
        raw = await self.shelf.raw(grant, document.document_id)
        if raw is None:
            raise NotFound
        return raw

    # ── one's own ─────────────────────────────────────────────────────────────────────────────────────────────────

    async def set_visibility(self, grant: Grant, document_id: str, visibility: Visibility) -> Document:
        """What the shelf says decides: every read path asks it, and the index can only narrow what a search finds. So
        the shelf is told first that a document is private, and last that it is global: whatever breaks in between,
        both must agree before it is shown to others. What the index missed it is told at `finish_interrupted`.

        Raises `NotFound` alike for what is absent and what is another's, before anything is waited for."""
        if visibility == "global":
            _may_publish(grant)
        await self._own(grant, document_id)
        async with self.shelf.hold(document_id), self._resumed():
            await self._own(grant, document_id)
            if visibility == "private":
                await self.shelf.set_visibility(grant, document_id, visibility)
            await self.passages.set_visibility(grant, document_id, visibility)
            if visibility == "global":
                await self.shelf.set_visibility(grant, document_id, visibility)
            return await self._own(grant, document_id)

    async def delete(self, grant: Grant, document_id: str) -> Document:
        """Off the shelf first: from then on no read path has it, and the shelf knows that it is leaving until its
        passages are gone, too. Deleting it again, or the next start, takes up what broke off."""
        await self._own(grant, document_id, leaving=True)
        async with self.shelf.hold(document_id), self._resumed():
            document = await self._own(grant, document_id, leaving=True)
            await self.shelf.delete(grant, document_id)
            try:
                await self._leave(grant, document_id)
            except Unavailable as error:
                raise Unavailable(
                    f"Nobody can see {document.name} any more. The last of it is cleared away in a few minutes.",
                    detail=error.detail,
                ) from error
        return document

    async def _own(self, grant: Grant, document_id: str, *, leaving: bool = False) -> Document:
        document = await self.shelf.own(grant, document_id, leaving=leaving)
        if document is None:
            raise NotFound
        return document

    async def _leave(self, grant: Grant, document_id: str) -> None:
        await self.passages.delete(grant, document_id)
        await self.shelf.gone(grant, document_id)

    @asynccontextmanager
    async def _resumed(self) -> AsyncIterator[None]:
        """What breaks off in the block is finished in the background."""
        try:
            yield
        except BaseException:
            self._interrupted.set()
            raise

    # ── in ────────────────────────────────────────────────────────────────────────────────────────────────────────

    async def ingest(
        self, grant: Grant, name: str, raw: bytes, *, owner: str = "", visibility: Visibility = "private"
    ) -> tuple[Document, Outcome]:
        name = clean_name(name)
        owner = _owner(grant, owner)
        if visibility == "global":
            _may_publish(grant)
        document_id = digest(owner, name)
        async with self.shelf.hold(document_id):
            before = await self.shelf.document(grant, document_id)
            sha256 = hashlib.sha256(raw).hexdigest()
            same = before and (before.sha256, before.visibility) == (sha256, visibility)
            if before and same and not await self._coming(grant, document_id):
                return before, "unchanged"
            async with self._parsing:
                parsed = await parse(name, raw)
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
            await self.shelf.put(grant, document, raw, complete=False)
            async with self._resumed():
                await self._complete(grant, document, raw, chunks)
        return document, "replaced" if before else "added"

    async def _coming(self, grant: Grant, document_id: str) -> bool:
        """A later version broke off: it must be overtaken, or it would be finished yet."""
        return any(document.document_id == document_id for document in await self.shelf.unfinished(grant))

    async def _complete(self, grant: Grant, document: Document, raw: bytes, chunks: Sequence[Chunk]) -> None:
        vectors: list[Vector] = []
        for start in range(0, len(chunks), EMBED_AT_ONCE):
            texts = [embedding_text(document.name, each) for each in chunks[start : start + EMBED_AT_ONCE]]
            vectors += [array("f", vector) for vector in await self.embedder.documents(texts)]
        await self.passages.put(grant, document, chunks, vectors)
        await self.shelf.put(grant, document, raw, complete=True)

    async def keep_finishing(self) -> None:
        """Finishes what a crash, a time-out or an unreachable store interrupted, now and whenever it happens."""
        self._interrupted.set()
        while True:
            await self._interrupted.wait()
            self._interrupted.clear()
            try:
                failed = not await self.finish_interrupted()
            except MeshError as error:
                log.warning("! resume failed code=%s detail=%r", error.code, error.detail)
                failed = True
            if failed:
                await asyncio.sleep(RETRY_AFTER)
                self._interrupted.set()

    async def finish_interrupted(self) -> bool:
        """Whether all could be finished: what broke off, and what the index has lost."""
        grant = upkeep()
        await self._delete_leaving(grant)
        done = await self._index_lost(grant)
        await self._agree(grant)
        for document in await self.shelf.unfinished(grant):
            async with self.shelf.hold(document.document_id):
                done &= await self._finish(grant, document.document_id)
        return done

    async def _delete_leaving(self, grant: Grant) -> None:
        for document in await self.shelf.leaving(grant):
            async with self.shelf.hold(document.document_id):
                if document in await self.shelf.leaving(grant):  # else it is gone, or was sent again
                    await self._leave(grant, document.document_id)

    async def _agree(self, grant: Grant) -> None:
        """The index is told who may see a document, where it has missed that."""
        shown: dict[Visibility, set[str]] = {
            "private": await self.passages.indexed(grant, visibility="global"),
            "global": await self.passages.indexed(grant, visibility="private"),
        }
        for differing in await self.shelf.documents(grant):
            if differing.document_id in shown[differing.visibility]:
                async with self.shelf.hold(differing.document_id):
                    for document in await self.shelf.documents(grant, only=[differing.document_id]):
                        await self.passages.set_visibility(grant, document.document_id, document.visibility)

    async def _index_lost(self, grant: Grant) -> bool:
        """Vectors are derived: a document whose passages are gone (a deleted collection, another model) gets them
        again from its file."""
        indexed = await self.passages.indexed(grant)
        done = True
        for lost in await self.shelf.documents(grant):
            if lost.document_id not in indexed:
                async with self.shelf.hold(lost.document_id):
                    done &= await self._index_again(grant, lost.document_id)
        return done

    async def _index_again(self, grant: Grant, document_id: str) -> bool:
        document = await self.shelf.document(grant, document_id)
        raw = await self.shelf.raw(grant, document_id) if document else None
        return raw is None or document is None or await self._completed(grant, document, raw)

    async def _finish(self, grant: Grant, document_id: str) -> bool:
        raw = await self.shelf.raw(grant, document_id, unfinished=True)
        for document in await self.shelf.unfinished(grant):
            if document.document_id == document_id and raw is not None:
                return await self._completed(grant, document, raw)
        return True  # another process was first

    async def _completed(self, grant: Grant, document: Document, raw: bytes) -> bool:
        """False when it is worth trying again."""
        chunks = await asyncio.to_thread(chunk, document.name, document.parts)
        try:
            await self._complete(grant, document, raw, chunks)
        except MeshError as error:
            log.warning("! resume document=%s code=%s", document.document_id, error.code)
            return False
        except Exception:  # the boundary: a defect that one document meets must not keep the others waiting
            log.exception("! resume document=%s", document.document_id)
            return True
        log.info("→ indexed document=%s chunks=%d", document.document_id, len(chunks))
        return True


@asynccontextmanager
async def open_library(parts: Parts) -> AsyncIterator[Library]:
    library = Library(await parts.shelf(), await parts.passages(), parts.embedder())
    await library.embedder.probe()
    finishing = asyncio.create_task(library.keep_finishing())
    try:
        yield library
    finally:
        finishing.cancel()
        await asyncio.gather(finishing, return_exceptions=True)


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


def _may_publish(grant: Grant) -> None:
    if not grant.covers(PUBLISH):
        raise Denied(
            "Sharing a document with everyone isn't part of your plan. It stays visible to you alone.",
            detail=f"tier {grant.tier or 'unknown'} lacks {PUBLISH}",
        )


def _stem(name: str) -> str:
    return PurePosixPath(name).stem.casefold()


def _ranked(passages: Sequence[Passage]) -> list[tuple[int, float]]:
    return fuse(
        {place: passage.dense for place, passage in enumerate(passages) if passage.dense is not None},
        {place: passage.sparse for place, passage in enumerate(passages) if passage.sparse is not None},
    )


async def _chunked(name: str, parsed: Parsed) -> list[Chunk]:
    chunks = await asyncio.to_thread(chunk, name, parsed.parts)
    if not chunks:
        raise Unreadable(f"{name} has headings but nothing under them. Please check the file and send it again.")
    return chunks
