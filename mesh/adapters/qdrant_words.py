"""A passage's words and names as Qdrant is told them; and passages that an earlier version wrote, told theirs anew."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping, Sequence
from pathlib import PurePosixPath
from typing import Any

from qdrant_client import AsyncQdrantClient, models
from qdrant_client.http.exceptions import UnexpectedResponse

from mesh.adapters.qdrant_queries import SPARSE
from mesh.names import names_of
from mesh.ports.documents import Chunk
from mesh.text import sparse_document, under_names

log = logging.getLogger(__name__)

PAGE = 128
TRIES = 20
"""Of one page, where each time a passage of it has just been deleted."""


def sparse_of(file: str, heading_path: Sequence[str], text: str) -> models.SparseVector | None:
    """None where there are no words."""
    indices, values = sparse_document(under_names(file, heading_path, text))
    return models.SparseVector(indices=indices, values=values) if indices else None


async def tell_anew(client: AsyncQdrantClient, collection: str, schema: int) -> None:
    """From what each passage holds itself: nothing is embedded. Safe to break off, to repeat, and to do twice at once;
    whoever searches meanwhile finds by meaning, and by the words as far as they are told."""
    log.info("→ collection=%s becomes schema=%d", collection, schema)
    after: Any = None
    done = 0
    while True:
        count, after = await _page_told(client, collection, schema, after)
        done += count
        if after is None:
            break
    await client.update_collection(collection, metadata={"schema": schema})
    log.info("→ collection=%s schema=%d passages=%d", collection, schema, done)


async def _page_told(client: AsyncQdrantClient, collection: str, schema: int, after: Any) -> tuple[int, Any]:
    """How many, and after which the next page begins. Taken again where a passage of it was deleted meanwhile."""
    tried = 0
    while True:
        points, following = await client.scroll(collection, limit=PAGE, offset=after, with_vectors=False)
        try:
            if changes := await asyncio.to_thread(_changes, points, schema):
                await client.batch_update_points(collection, changes, wait=True)
        except UnexpectedResponse as error:
            tried += 1
            if error.status_code != 404 or tried == TRIES:
                raise
        else:
            return len(points), following


def _changes(points: Sequence[models.Record], schema: int) -> list[models.UpdateOperation]:
    vectors: list[models.PointVectors] = []
    payloads: list[models.UpdateOperation] = []
    for point in points:
        kept = point.payload or {}
        if not isinstance(kept.get("text"), str):
            continue
        chunk, file = _chunk(kept), PurePosixPath(str(kept.get("source_filename", ""))).name
        if sparse := sparse_of(file, chunk.heading_path, chunk.text):
            vectors.append(models.PointVectors(id=point.id, vector={SPARSE: sparse}))
        told = models.SetPayload(payload={"schema": schema, "names": list(names_of(file, chunk))}, points=[point.id])
        payloads.append(models.SetPayloadOperation(set_payload=told))
    if not vectors:
        return payloads
    return [models.UpdateVectorsOperation(update_vectors=models.UpdateVectors(points=vectors)), *payloads]


def _chunk(kept: Mapping[str, Any]) -> Chunk:
    return Chunk(
        index=kept.get("chunk_index", 0),
        text=kept["text"],
        heading_path=tuple(kept.get("heading_path", ())),
        part=kept.get("part", ""),
        start=kept.get("start", 0),
    )
