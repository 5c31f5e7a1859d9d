"""A document's chunks as the points that Qdrant keeps: vectors, words, and who may see them."""

from __future__ import annotations

import uuid
from collections.abc import AsyncIterable, AsyncIterator, Sequence
from typing import Any

from qdrant_client import models

from mesh.adapters.qdrant_queries import DENSE, SPARSE
from mesh.adapters.qdrant_scope import COMING, LIVE
from mesh.adapters.qdrant_words import sparse_of
from mesh.envelope import digest
from mesh.names import names_of
from mesh.ports.documents import Chunk, Document
from mesh.ports.models import Vector

BATCH = 64
SCHEMA = 2

_POINTS = uuid.UUID("6c2f8a54-6d0b-4b0e-9a83-6a3c2f0f7c11")


def version_of_passages(document: Document, chunks: Sequence[Chunk]) -> str:
    """Of the bytes, and of how they were read and cut: another reader may make other passages of them."""
    said = (f"{each.part}\n{each.start}\n{each.heading_path}\n{each.text}" for each in chunks)
    return digest(document.sha256, *said)


def points(
    document: Document, version: str, pairs: Sequence[tuple[Chunk, Vector]], live: bool
) -> list[models.PointStruct]:
    return [_point(document, version, chunk, vector, live) for chunk, vector in pairs]


def _point(document: Document, version: str, chunk: Chunk, vector: Vector, live: bool) -> models.PointStruct:
    vectors: dict[str, Any] = {DENSE: list(vector)}
    if sparse := sparse_of(document.name, chunk.heading_path, chunk.text):
        vectors[SPARSE] = sparse
    return models.PointStruct(
        id=str(uuid.uuid5(_POINTS, f"{document.document_id}/{version}/{chunk.index}")),
        vector=vectors,
        payload={
            "schema": SCHEMA,
            "state": LIVE if live else COMING,
            "source_filename": f"{document.owner}/{document.name}",
            "document_id": document.document_id,
            "content_sha256": document.sha256,
            "version": version,
            "owner_identity": document.owner,
            "visibility": document.visibility,
            "ingested_at": document.ingested_at.isoformat(),
            "chunk_index": chunk.index,
            "heading_path": list(chunk.heading_path),
            "names": list(names_of(document.name, chunk)),
            "part": chunk.part,
            "start": chunk.start,
            "text": chunk.text,
        },
    )


async def batches(
    chunks: Sequence[Chunk], vectors: Sequence[Vector] | AsyncIterable[Vector]
) -> AsyncIterator[list[tuple[Chunk, Vector]]]:
    """As soon as their vectors are there. Raises `ValueError` when there are more or fewer vectors than chunks."""
    left = iter(chunks)
    pairs: list[tuple[Chunk, Vector]] = []
    async for vector in _each(vectors):
        chunk = next(left, None)
        if chunk is None:
            raise ValueError("more vectors than chunks")
        pairs.append((chunk, vector))
        if len(pairs) == BATCH:
            yield pairs
            pairs = []
    if next(left, None) is not None:
        raise ValueError("fewer vectors than chunks")
    if pairs:
        yield pairs


async def _each(vectors: Sequence[Vector] | AsyncIterable[Vector]) -> AsyncIterator[Vector]:
    if isinstance(vectors, Sequence):
        for vector in vectors:
            yield vector
    else:
        async for vector in vectors:
            yield vector
