"""Documents in: read, cut, embedded, and put in the old version's place when all of it is there."""

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
from typing import Literal

from agents.knowledge.chunking import chunk, embedding_text
from agents.knowledge.parsing import Parsed, parse
from agents.knowledge.stores import Stores
from mesh.access import Grant, upkeep
from mesh.envelope import digest
from mesh.errors import Denied, Malformed, MeshError, Unreadable
from mesh.files import readable
from mesh.ports import Chunk, Document, Vector, Visibility
from mesh.settings import IDENTITY

log = logging.getLogger(__name__)

PUBLISH = "documents:publish"
LONGEST_NAME = 200
EMBED_AT_ONCE = 16
PARSERS = 2
RETRY_AFTER = 30.0
"""Seconds, before an interrupted ingestion that failed again is tried again."""

Outcome = Literal["added", "replaced", "unchanged"]


@dataclass
class Ingesting:
    _stores: Stores
    _parsing: asyncio.Semaphore = field(default_factory=lambda: asyncio.Semaphore(PARSERS), repr=False)
    _interrupted: asyncio.Event = field(default_factory=asyncio.Event, repr=False)

    async def ingest(
        self, grant: Grant, name: str, raw: bytes, *, owner: str = "", visibility: Visibility = "private"
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
            await self._stores.shelf.put(grant, document, raw, complete=False)
            async with self.resumed():
                await self._complete(grant, document, raw, chunks)
        return document, "replaced" if before else "added"

    async def _coming(self, grant: Grant, document_id: str) -> bool:
        """A later version broke off: it must be overtaken, or it would be finished yet."""
        return any(document.document_id == document_id for document in await self._stores.shelf.unfinished(grant))

    async def _complete(self, grant: Grant, document: Document, raw: bytes, chunks: Sequence[Chunk]) -> None:
        vectors: list[Vector] = []
        for start in range(0, len(chunks), EMBED_AT_ONCE):
            texts = [embedding_text(document.name, each) for each in chunks[start : start + EMBED_AT_ONCE]]
            vectors += [array("f", vector) for vector in await self._stores.embedder.documents(texts)]
        await self._stores.passages.put(grant, document, chunks, vectors)
        await self._stores.shelf.put(grant, document, raw, complete=True)

    async def leave(self, grant: Grant, document_id: str) -> None:
        await self._stores.passages.delete(grant, document_id)
        await self._stores.shelf.gone(grant, document_id)

    @asynccontextmanager
    async def resumed(self) -> AsyncIterator[None]:
        """What breaks off in the block is finished in the background."""
        try:
            yield
        except BaseException:
            self._interrupted.set()
            raise

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
        for document in await self._stores.shelf.unfinished(grant):
            async with self._stores.shelf.hold(document.document_id):
                done &= await self._finish(grant, document.document_id)
        return done

    async def _delete_leaving(self, grant: Grant) -> None:
        for document in await self._stores.shelf.leaving(grant):
            async with self._stores.shelf.hold(document.document_id):
                if document in await self._stores.shelf.leaving(grant):  # else it is gone, or was sent again
                    await self.leave(grant, document.document_id)

    async def _agree(self, grant: Grant) -> None:
        """The index is told who may see a document, where it has missed that."""
        shown: dict[Visibility, set[str]] = {
            "private": await self._stores.passages.indexed(grant, visibility="global"),
            "global": await self._stores.passages.indexed(grant, visibility="private"),
        }
        for differing in await self._stores.shelf.documents(grant):
            if differing.document_id in shown[differing.visibility]:
                async with self._stores.shelf.hold(differing.document_id):
                    for document in await self._stores.shelf.documents(grant, only=[differing.document_id]):
                        await self._stores.passages.set_visibility(grant, document.document_id, document.visibility)

    async def _index_lost(self, grant: Grant) -> bool:
        """Vectors are derived: a document whose passages are gone (a deleted collection, another model) gets them
        again from its file."""
        indexed = await self._stores.passages.indexed(grant)
        done = True
        for lost in await self._stores.shelf.documents(grant):
            if lost.document_id not in indexed:
                async with self._stores.shelf.hold(lost.document_id):
                    done &= await self._index_again(grant, lost.document_id)
        return done

    async def _index_again(self, grant: Grant, document_id: str) -> bool:
        document = await self._stores.shelf.document(grant, document_id)
        raw = await self._stores.shelf.raw(grant, document_id) if document else None
        return raw is None or document is None or await self._completed(grant, document, raw)

    async def _finish(self, grant: Grant, document_id: str) -> bool:
        raw = await self._stores.shelf.raw(grant, document_id, unfinished=True)
        for document in await self._stores.shelf.unfinished(grant):
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
    chunks = await asyncio.to_thread(chunk, name, parsed.parts)
    if not chunks:
        raise Unreadable(f"{name} has headings but nothing under them. Please check the file and send it again.")
    return chunks
