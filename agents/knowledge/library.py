"""Documents, in and out: the shelf holds them, the passages find them, and both are asked with the caller's grant."""

from __future__ import annotations

import asyncio
import unicodedata
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import PurePosixPath
from typing import TYPE_CHECKING

from agents.knowledge.following import Following
from agents.knowledge.ingesting import Ingesting, may_publish
from agents.knowledge.noting import Noting
from agents.knowledge.parsing import installed
from agents.knowledge.ranking import loaded
from agents.knowledge.searching import MOST, Searching
from agents.knowledge.stores import Stores
from agents.knowledge.transforming import Transforming
from mesh.access import Grant
from mesh.errors import NotFound, Unavailable
from mesh.ports.documents import Document, Visibility

if TYPE_CHECKING:
    from mesh.wiring import Parts

MOST_NAMED = 5


@dataclass
class Library:
    stores: Stores
    searching: Searching = field(init=False, repr=False)
    ingesting: Ingesting = field(init=False, repr=False)
    noting: Noting = field(init=False, repr=False)
    following: Following = field(init=False, repr=False)

    def __post_init__(self) -> None:
        self.searching = Searching(self.stores)
        self.ingesting = Ingesting(self.stores)
        self.noting = Noting(self.stores, self.ingesting)
        self.following = Following(self)

    # ── out ───────────────────────────────────────────────────────────────────────────────────────────────────────

    async def document(self, grant: Grant, document_id: str) -> Document:
        """Without its text. Raises `NotFound`, in the same words for what is absent and for what is another's."""
        found = await self.stores.shelf.documents(grant, only=[document_id])
        if not found:
            raise NotFound
        return found[0]

    async def text(self, grant: Grant, document_id: str) -> Document:
        found = await self.stores.shelf.document(grant, document_id)
        if found is None:
            raise NotFound
        return found

    async def find(self, grant: Grant, name: str) -> list[Document]:
        """By file name, with or without its extension; if there is none, by content."""
        wanted = unicodedata.normalize("NFC", PurePosixPath(name.strip()).name)
        exact = await self.stores.shelf.named(grant, wanted)
        if not exact:
            known = await self.stores.shelf.documents(grant)
            exact = [document for document in known if _stem(document.name) == wanted.casefold()]
        if exact:
            return sorted(exact, key=lambda document: document.owner != grant.client)
        found = await self.searching.search(grant, name, limit=MOST)
        return list({hit.document.document_id: hit.document for hit in found.hits}.values())[:MOST_NAMED]

    async def raw(self, grant: Grant, document: Document) -> bytes:
        raw = await self.stores.shelf.raw(grant, document.document_id)
        if raw is None:
            raise NotFound
        return raw

    # ── one's own ─────────────────────────────────────────────────────────────────────────────────────────────────

    async def set_visibility(self, grant: Grant, document_id: str, visibility: Visibility) -> Document:
        """What the shelf says decides: every read path asks it, and the index can only narrow what a search finds. The
        shelf keeps the wish, and from then on the stricter of the two holds, until the index and then the shelf itself
        have what was wished for. What breaks off in between is done at `finish_interrupted`.

        Raises `NotFound` alike for what is absent and what is another's, before anything is waited for."""
        if visibility == "global":
            may_publish(grant)
        await self._own(grant, document_id)
        async with self.stores.shelf.hold(document_id), self.ingesting.resumed():
            document = await self._own(grant, document_id)
            await self.stores.shelf.wish(grant, document_id, visibility)
            try:
                await self.ingesting.settle(grant, document_id, visibility)
            except Unavailable as error:
                whose = "you" if document.owner == grant.client else "its owner"
                seen = f"is visible to {whose} alone" if visibility == "private" else "will be visible to everyone"
                raise Unavailable(
                    f"{document.name} {seen}. The rest of that is done in a few minutes.",
                    detail=error.detail,
                ) from error
            return await self._own(grant, document_id)

    async def delete(self, grant: Grant, document_id: str) -> Document:
        """Off the shelf first: from then on no read path has it, and the shelf knows that it is leaving until its
        passages are gone, too. Deleting it again, or the next start, takes up what broke off."""
        await self._own(grant, document_id, leaving=True)
        async with self.stores.shelf.hold(document_id), self.ingesting.resumed():
            document = await self._own(grant, document_id, leaving=True)
            await self.stores.shelf.delete(grant, document_id)
            try:
                await self.ingesting.leave(grant, document_id)
            except Unavailable as error:
                raise Unavailable(
                    f"Nobody can see {document.name} any more. The last of it is cleared away in a few minutes.",
                    detail=error.detail,
                ) from error
        return document

    async def _own(self, grant: Grant, document_id: str, *, leaving: bool = False) -> Document:
        document = await self.stores.shelf.own(grant, document_id, leaving=leaving)
        if document is None:
            raise NotFound
        return document


@asynccontextmanager
async def open_library(parts: Parts) -> AsyncIterator[Library]:
    library = Library(
        Stores(
            await parts.shelf(),
            await parts.passages(),
            parts.embedder(),
            parts.embedding_cache(),
            parts.ingestions(),
            calibrations=parts.calibrations(),
            mode=parts.settings.search_mode,
            reranker=loaded(parts.settings.search_reranker),
            reader=installed(parts.settings.document_reader),
            transforming=Transforming(frozenset(parts.settings.question_transforms.split()), parts.chat_model()),
        )
    )
    await library.stores.embedder.probe()
    library.following = Following(library, parts.settings.watched, parts.settings.adiyan_home)
    finishing = asyncio.create_task(library.ingesting.keep_finishing())
    try:
        yield library
    finally:
        finishing.cancel()
        await asyncio.gather(finishing, return_exceptions=True)


def _stem(name: str) -> str:
    return PurePosixPath(name).stem.casefold()
