"""What a search finds: passages of documents that the grant may see, best first."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from agents.knowledge.ranking import fuse
from agents.knowledge.stores import Stores
from mesh.access import Grant
from mesh.ports import Document, Passage, Vector

PER_LEG = 40
MOST = 20
LONGEST_QUERY = 2_000


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


@dataclass(frozen=True, slots=True)
class Searching:
    _stores: Stores

    async def search(self, grant: Grant, text: str, *, limit: int, within: str | None = None) -> list[Hit]:
        _, hits = await self.evidence(grant, text, within=within)
        return hits[: max(1, min(limit, MOST))]

    async def evidence(self, grant: Grant, text: str, *, within: str | None = None) -> tuple[Vector, list[Hit]]:
        """The question's vector and all that was found, best first. What the shelf does not show to the grant is left
        out, whatever the index says."""
        text = text.strip()[:LONGEST_QUERY]
        if not text:
            return (), []
        (vector,) = await self._stores.embedder.queries([text])
        passages = await self._stores.passages.search(grant, text, vector, limit=PER_LEG, within=within)
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
        return {found.document_id: found for found in await self._stores.shelf.documents(grant, only=ids)}


def _ranked(passages: Sequence[Passage]) -> list[tuple[int, float]]:
    return fuse(
        {place: passage.dense for place, passage in enumerate(passages) if passage.dense is not None},
        {place: passage.sparse for place, passage in enumerate(passages) if passage.sparse is not None},
    )
