"""Passages in Qdrant, a real one or the embedded one: dense and sparse vectors, and who may see them."""

from __future__ import annotations

import asyncio
import logging
import uuid
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import PurePosixPath
from typing import Any

from qdrant_client import AsyncQdrantClient, models
from qdrant_client.http.exceptions import ResponseHandlingException, UnexpectedResponse

from mesh.access import Grant
from mesh.envelope import pseudonym
from mesh.errors import Denied, Misconfigured, Unavailable
from mesh.ports import Chunk, Document, Passage, Vector, Visibility
from mesh.text import sparse_document, sparse_query

log = logging.getLogger(__name__)

COLLECTION = "knowledge"
SCHEMA = 1
DENSE = "dense"
SPARSE = "sparse"
LIVE = "live"  # a word, because the embedded engine never matches a boolean
COMING = "coming"
BATCH = 64
WITHIN = 10
MOST_DOCUMENTS = 1_000_000
"""Seconds that one call may take."""

_POINTS = uuid.UUID("6c2f8a54-6d0b-4b0e-9a83-6a3c2f0f7c11")
_INDEXES: dict[str, models.PayloadFieldSchema] = {
    "owner_identity": models.KeywordIndexParams(type=models.KeywordIndexType.KEYWORD, is_tenant=True),
    "visibility": models.PayloadSchemaType.KEYWORD,
    "document_id": models.PayloadSchemaType.KEYWORD,
    "content_sha256": models.PayloadSchemaType.KEYWORD,
    "chunk_index": models.PayloadSchemaType.INTEGER,
    "state": models.PayloadSchemaType.KEYWORD,
}


def scope(grant: Grant) -> models.Filter:
    """What the grant may see, never empty. Raises `ValueError` for a client who is nobody."""
    owner = grant.limited_to()
    if owner is None:
        log.info("◦ read=passages sees_all=true client=%s", pseudonym(grant.client))
        return models.Filter(must=[_is("state", LIVE)])
    may_see = models.Filter(should=[_is("visibility", "global"), _is("owner_identity", owner)])
    return models.Filter(must=[_is("state", LIVE), may_see])


def _of(grant: Grant, document_id: str) -> models.Filter:
    """Every passage of a document that the grant may change, live or not."""
    owner = grant.limited_to()
    owned = [] if owner is None else [_is("owner_identity", owner)]
    return models.Filter(must=[_is("document_id", document_id), *owned])


class QdrantPassages:
    def __init__(self, client: AsyncQdrantClient, collection: str) -> None:
        self._client = client
        self._collection = collection

    @classmethod
    async def open(cls, url: str, *, model: str, dims: int, collection: str = COLLECTION) -> QdrantPassages:
        """Makes the collection when there is none. Raises `Misconfigured` when it was made for another model."""
        client = AsyncQdrantClient(url=url, timeout=WITHIN, check_compatibility=False)
        try:
            with _reaching():
                await _make(client, collection, model, dims)
                found = await client.get_collection(collection)
                _check(found, collection, model, dims)
                for field in _INDEXES.keys() - found.payload_schema.keys():
                    await client.create_payload_index(collection, field, _INDEXES[field])
        except BaseException:
            await client.close()
            raise
        return cls(client, collection)

    async def close(self) -> None:
        await self._client.close()

    # ── reading ───────────────────────────────────────────────────────────────────────────────────────────────────

    async def search(
        self, grant: Grant, text: str, vector: Vector, *, limit: int, within: str | None = None
    ) -> list[Passage]:
        allowed = scope(grant)
        if within is not None:
            allowed = models.Filter(must=[allowed, _is("document_id", within)])
        with _reaching():
            answers = await self._client.query_batch_points(
                self._collection, requests=_legs(allowed, text, list(vector), limit)
            )
        return _union(*(answer.points for answer in answers))

    async def indexed(self, grant: Grant, *, visibility: Visibility | None = None) -> set[str]:
        which = scope(grant)
        if visibility is not None:
            which = models.Filter(must=[which, _is("visibility", visibility)])
        with _reaching():
            facet = await self._client.facet(
                self._collection, "document_id", facet_filter=which, limit=MOST_DOCUMENTS, exact=True
            )
        return {str(hit.value) for hit in facet.hits}

    # ── writing ───────────────────────────────────────────────────────────────────────────────────────────────────

    async def put(self, grant: Grant, document: Document, chunks: Sequence[Chunk], vectors: Sequence[Vector]) -> None:
        if not grant.sees_all and document.owner != grant.client:
            raise Denied(grant.refusal, detail="a document of another owner")
        version = [_is("document_id", document.document_id), _is("content_sha256", document.sha256)]
        with _reaching():
            # The same content again is replaced where it stands: hiding it first would be a gap.
            live = bool(await self._count(models.Filter(must=[*version, _is("state", LIVE)])))
            for pairs in _batches(list(zip(chunks, vectors, strict=True))):
                points = await asyncio.to_thread(_points, document, pairs, live)
                await self._client.upsert(self._collection, points)
            written = models.Filter(must=[*version, _index(lt=len(chunks))])
            if chunks and not live:
                await self._client.set_payload(self._collection, {"state": LIVE}, points=written)
            await self._client.delete(
                self._collection,
                models.FilterSelector(
                    filter=models.Filter(must=[_is("document_id", document.document_id)], must_not=[written])
                ),
            )

    async def set_visibility(self, grant: Grant, document_id: str, visibility: Visibility) -> None:
        with _reaching():
            await self._client.set_payload(
                self._collection, {"visibility": visibility}, points=_of(grant, document_id), wait=True
            )

    async def delete(self, grant: Grant, document_id: str) -> None:
        with _reaching():
            await self._client.delete(
                self._collection, models.FilterSelector(filter=_of(grant, document_id)), wait=True
            )

    async def _count(self, which: models.Filter) -> int:
        return (await self._client.count(self._collection, count_filter=which, exact=True)).count


# ── the collection ────────────────────────────────────────────────────────────────────────────────────────────────


async def _make(client: AsyncQdrantClient, collection: str, model: str, dims: int) -> None:
    if await client.collection_exists(collection):
        return
    try:
        await client.create_collection(
            collection,
            vectors_config={DENSE: models.VectorParams(size=dims, distance=models.Distance.COSINE)},
            sparse_vectors_config={SPARSE: models.SparseVectorParams(modifier=models.Modifier.IDF)},
            metadata={"embedding_model": model, "embedding_dims": dims, "schema": SCHEMA},
        )
    except UnexpectedResponse:
        if not await client.collection_exists(collection):  # else another process was first
            raise


def _check(found: models.CollectionInfo, collection: str, model: str, dims: int) -> None:
    kept: Mapping[str, Any] = found.config.metadata or {}
    schema, made_for = kept.get("schema"), kept.get("embedding_model")
    if schema is None:
        raise Misconfigured(
            f"The Qdrant collection {collection!r} was not made by Adiyan, or Qdrant is older than 1.16. Delete the "
            "collection (or update Qdrant): all documents are embedded again from their files at the next start."
        )
    if schema != SCHEMA:
        raise Misconfigured(
            f"The Qdrant collection {collection!r} is of version {schema}, and this Adiyan knows version {SCHEMA}. "
            "Install the matching version, or delete the collection: all documents are embedded again from their files "
            "at the next start."
        )
    size = _dims(found)
    if made_for != model or size != dims:
        raise Misconfigured(
            f"The Qdrant collection {collection!r} holds vectors of {made_for} ({size} dimensions), but the settings "
            f"name {model} ({dims}). Set embedding_model and embedding_dims back, or delete the collection: all "
            "documents are embedded again from their files at the next start."
        )


def _dims(found: models.CollectionInfo) -> int | None:
    vectors = found.config.params.vectors
    dense = vectors.get(DENSE) if isinstance(vectors, dict) else None
    return dense.size if dense else None


# ── queries and points ────────────────────────────────────────────────────────────────────────────────────────────


def _legs(allowed: models.Filter, text: str, vector: list[float], limit: int) -> list[models.QueryRequest]:
    """By meaning; by words; and the cosines of what was found by words. Each under the same filter."""
    dense = models.QueryRequest(query=vector, using=DENSE, filter=allowed, limit=limit, with_payload=True)
    indices, values = sparse_query(text)
    if not indices:
        return [dense]
    terms = models.SparseVector(indices=indices, values=values)
    by_words = models.Prefetch(query=terms, using=SPARSE, filter=allowed, limit=limit)
    return [
        dense,
        models.QueryRequest(query=terms, using=SPARSE, filter=allowed, limit=limit, with_payload=True),
        models.QueryRequest(prefetch=by_words, query=vector, using=DENSE, filter=allowed, limit=limit),
    ]


def _union(
    dense: Sequence[models.ScoredPoint],
    sparse: Sequence[models.ScoredPoint] = (),
    rescored: Sequence[models.ScoredPoint] = (),
) -> list[Passage]:
    cosines = {point.id: point.score for point in (*rescored, *dense)}
    sums = {point.id: point.score for point in sparse}
    found = {point.id: point.payload or {} for point in (*dense, *sparse)}
    return [_passage(payload, cosines.get(key), sums.get(key)) for key, payload in found.items() if "text" in payload]


def _passage(payload: Mapping[str, Any], dense: float | None, sparse: float | None) -> Passage:
    chunk = Chunk(
        index=payload.get("chunk_index", 0),
        text=payload["text"],
        heading_path=tuple(payload.get("heading_path", ())),
        part=payload.get("part", ""),
        start=payload.get("start", 0),
    )
    return Passage(
        document_id=payload.get("document_id", ""),
        source_filename=payload.get("source_filename", ""),
        chunk=chunk,
        dense=dense,
        sparse=sparse,
        ingested_at=datetime.fromisoformat(payload.get("ingested_at", _LONG_AGO)),
    )


_LONG_AGO = datetime.fromtimestamp(0, UTC).isoformat()


def _points(document: Document, pairs: Sequence[tuple[Chunk, Vector]], live: bool) -> list[models.PointStruct]:
    return [_point(document, chunk, vector, live) for chunk, vector in pairs]


def _point(document: Document, chunk: Chunk, vector: Vector, live: bool) -> models.PointStruct:
    words = " ".join((PurePosixPath(document.name).stem, *chunk.heading_path))
    indices, values = sparse_document(f"{words}\n{chunk.text}")
    vectors: dict[str, Any] = {DENSE: list(vector)}
    if indices:
        vectors[SPARSE] = models.SparseVector(indices=indices, values=values)
    return models.PointStruct(
        id=str(uuid.uuid5(_POINTS, f"{document.document_id}/{document.sha256}/{chunk.index}")),
        vector=vectors,
        payload={
            "schema": SCHEMA,
            "state": LIVE if live else COMING,
            "source_filename": f"{document.owner}/{document.name}",
            "document_id": document.document_id,
            "content_sha256": document.sha256,
            "owner_identity": document.owner,
            "visibility": document.visibility,
            "ingested_at": document.ingested_at.isoformat(),
            "chunk_index": chunk.index,
            "heading_path": list(chunk.heading_path),
            "part": chunk.part,
            "start": chunk.start,
            "text": chunk.text,
        },
    )


def _is(key: str, value: str) -> models.FieldCondition:
    return models.FieldCondition(key=key, match=models.MatchValue(value=value))


def _index(*, lt: int) -> models.FieldCondition:
    return models.FieldCondition(key="chunk_index", range=models.Range(lt=lt))


def _batches(pairs: list[tuple[Chunk, Vector]]) -> Iterator[list[tuple[Chunk, Vector]]]:
    for start in range(0, len(pairs), BATCH):
        yield pairs[start : start + BATCH]


@contextmanager
def _reaching() -> Iterator[None]:
    """A Qdrant that is out of reach, too slow or failing is `Unavailable`; a request that it refuses is our defect."""
    try:
        yield
    except ResponseHandlingException as error:
        raise Unavailable(detail=f"qdrant: {type(error.source).__name__}") from error
    except UnexpectedResponse as error:
        if error.status_code is not None and error.status_code >= 500:
            raise Unavailable(detail=f"qdrant: status {error.status_code}") from error
        raise
