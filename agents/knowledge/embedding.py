"""Passages into vectors: from the cache where they are known, else from the model server, batch by batch."""

from __future__ import annotations

import asyncio
from array import array
from collections import deque
from collections.abc import AsyncGenerator, Sequence
from dataclasses import dataclass, field

from agents.knowledge.chunking import embedding_text
from agents.knowledge.stores import Stores
from mesh.access import Grant
from mesh.ports.documents import Chunk, Document
from mesh.ports.models import Vector

AT_ONCE = 16
"""Texts in one call: what is lost when it breaks off."""
CALLS = 2
"""Open at a time, of all documents together: one that is worked on, and one that waits, so that the model server
never does."""
AHEAD = CALLS + 1
"""Batches of one document that are held: its vectors are never in memory all at once."""


@dataclass
class Embedding:
    _stores: Stores
    _calls: asyncio.Semaphore = field(default_factory=lambda: asyncio.Semaphore(CALLS), repr=False)

    async def vectors(self, grant: Grant, document: Document, chunks: Sequence[Chunk]) -> AsyncGenerator[Vector, None]:
        """One for each chunk, in their order."""
        batches: deque[asyncio.Task[list[Vector]]] = deque()
        try:
            for start in range(0, len(chunks), AT_ONCE):
                texts = [embedding_text(document.name, each) for each in chunks[start : start + AT_ONCE]]
                batches.append(asyncio.create_task(self._batch(grant, document, texts)))
                if len(batches) == AHEAD:
                    for vector in await batches.popleft():
                        yield vector
            while batches:
                for vector in await batches.popleft():
                    yield vector
        finally:
            for batch in batches:
                batch.cancel()
            await asyncio.gather(*batches, return_exceptions=True)

    async def _batch(self, grant: Grant, document: Document, texts: list[str]) -> list[Vector]:
        cache = self._stores.cache
        found = await cache.known(grant, document, texts) if cache else {}
        missing = [text for text in dict.fromkeys(texts) if text not in found]
        if missing:
            async with self._calls:
                made = await self._stores.embedder.documents(missing)
            new: dict[str, Vector] = {text: array("f", vector) for text, vector in zip(missing, made, strict=True)}
            if cache:
                await cache.keep(grant, document, new)
            found |= new
        return [found[text] for text in texts]
