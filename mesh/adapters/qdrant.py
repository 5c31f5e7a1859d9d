"""Passages in Qdrant, a real one or the embedded one: dense and sparse vectors, and who may see them."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import httpx
from qdrant_client import AsyncQdrantClient, models
from qdrant_client.http.exceptions import ResponseHandlingException, UnexpectedResponse

from mesh.access import Grant
from mesh.adapters import qdrant_queries as queries
from mesh.adapters.qdrant_points import SCHEMA, batches, points, version_of_passages
from mesh.adapters.qdrant_queries import DENSE, SPARSE
from mesh.adapters.qdrant_scope import (
    LIVE,
    counted,
    equals,
    held_to,
    index_below,
    is_nothing,
    owned,
    scope,
    without_tags,
)
from mesh.adapters.qdrant_words import tell_anew
from mesh.errors import Denied, Misconfigured, Unavailable
from mesh.ports.documents import Chunk, Document, Visibility
from mesh.ports.models import Vector
from mesh.ports.passages import Passage, Untagged

log = logging.getLogger(__name__)

COLLECTION = "knowledge"
TOLD_ANEW = (1,)
"""Of these the words and names are told anew: Spanish endings are levelled since, and passages have names."""
TAGGED_AT_ONCE = 500
KEPT_OPEN, KEPT_OPEN_S = 8, 3.0
"""Connections, and for how many seconds: less than Qdrant does, so that none is used that it just closed."""
WITHIN = 10
"""Seconds that one call may take."""
WRITTEN_WITHIN = 60
"""The same where nobody waits: while it builds the graph of 20,000 points, a Qdrant may write nothing for a while."""
MOST_DOCUMENTS = 1_000_000

_INDEXES: dict[str, models.PayloadFieldSchema] = {
    "owner_identity": models.KeywordIndexParams(type=models.KeywordIndexType.KEYWORD, is_tenant=True),
    "visibility": models.PayloadSchemaType.KEYWORD,
    "document_id": models.PayloadSchemaType.KEYWORD,
    "version": models.PayloadSchemaType.KEYWORD,
    "chunk_index": models.PayloadSchemaType.INTEGER,
    "state": models.PayloadSchemaType.KEYWORD,
    "names": models.PayloadSchemaType.KEYWORD,
}


class QdrantPassages:
    def __init__(
        self,
        client: AsyncQdrantClient,
        collection: str,
        *,
        model: str,
        dims: int,
        writer: AsyncQdrantClient | None = None,
    ) -> None:
        self._client = client
        self._writer = writer or client
        self._collection = collection
        self._model = model
        self._dims = dims

    @classmethod
    async def open(cls, url: str, *, model: str, dims: int, collection: str = COLLECTION) -> QdrantPassages:
        """Makes the collection when there is none. Raises `Misconfigured` when it was made for another model."""
        # Told nothing, the client makes a new connection to a Qdrant on this machine for every call.
        limits = httpx.Limits(max_keepalive_connections=KEPT_OPEN, keepalive_expiry=KEPT_OPEN_S)
        client = AsyncQdrantClient(url=url, timeout=WITHIN, check_compatibility=False, limits=limits)
        writer = AsyncQdrantClient(url=url, timeout=WRITTEN_WITHIN, check_compatibility=False, limits=limits)
        passages = cls(client, collection, model=model, dims=dims, writer=writer)
        try:
            await passages.prepare()
        except BaseException:
            await passages.close()
            raise
        return passages

    async def prepare(self) -> None:
        with _reaching():
            await _make(self._client, self._collection, self._model, self._dims)
            found = await self._client.get_collection(self._collection)
            if (found.config.metadata or {}).get("schema") in TOLD_ANEW:
                await tell_anew(self._client, self._collection, SCHEMA)
                found = await self._client.get_collection(self._collection)
            _check(found, self._collection, self._model, self._dims)
            for field in _INDEXES.keys() - found.payload_schema.keys():
                await self._client.create_payload_index(self._collection, field, _INDEXES[field])

    async def close(self) -> None:
        await self._client.close()
        await self._writer.close()

    # ── reading ───────────────────────────────────────────────────────────────────────────────────────────────────

    async def search(
        self, grant: Grant, text: str, vector: Vector, *, limit: int, within: str | Sequence[str] | None = None
    ) -> list[Passage]:
        words = await self.by_words(grant, text, limit=limit, within=within)
        return await self.by_meaning(grant, vector, limit=limit, within=within, besides=words)

    async def by_words(
        self, grant: Grant, text: str, *, limit: int, within: str | Sequence[str] | None = None
    ) -> list[Passage]:
        query = queries.by_words(text, held_to(scope(grant), within), limit, counted(grant))
        if query is None or is_nothing(within):
            return []
        with _reading():
            (found,) = await queries.ask(self._client, self._collection, [query])
        return queries.found_by_words(found)

    async def by_meaning(
        self,
        grant: Grant,
        vector: Vector,
        *,
        limit: int,
        within: str | Sequence[str] | None = None,
        besides: Sequence[Passage] = (),
    ) -> list[Passage]:
        if is_nothing(within):
            return []
        allowed = held_to(scope(grant), within)
        wanted = [queries.by_meaning(vector, allowed, limit)]
        if points := [passage.point for passage in besides]:
            wanted.append(queries.cosines(vector, allowed, points))
        with _reading():
            dense, *rescored = await queries.ask(self._client, self._collection, wanted)
        return queries.union(besides, dense, rescored[0] if rescored else ())

    async def called(
        self, grant: Grant, names: Sequence[str], text: str, vector: Vector, *, limit: int
    ) -> list[Passage]:
        if not names:
            return []
        so_called = models.FieldCondition(key="names", match=models.MatchAny(any=list(names)))
        allowed = models.Filter(must=[scope(grant), so_called])
        words = queries.by_words(text, allowed, limit, counted(grant))
        wanted = [queries.by_meaning(vector, allowed, limit), *([words] if words else ())]
        with _reading():
            dense, *sparse = await queries.ask(self._client, self._collection, wanted)
        return queries.union(queries.found_by_words(sparse[0]) if sparse else (), dense, ())

    async def indexed(self, grant: Grant, *, visibility: Visibility | None = None) -> set[str]:
        which = scope(grant)
        if visibility is not None:
            which = models.Filter(must=[which, equals("visibility", visibility)])
        with _reaching():
            facet = await self._client.facet(
                self._collection, "document_id", facet_filter=which, limit=MOST_DOCUMENTS, exact=True
            )
        return {str(hit.value) for hit in facet.hits}

    # ── writing ───────────────────────────────────────────────────────────────────────────────────────────────────

    async def put(
        self,
        grant: Grant,
        document: Document,
        chunks: Sequence[Chunk],
        vectors: Sequence[Vector] | AsyncIterable[Vector],
    ) -> None:
        if not grant.sees_all and document.owner != grant.client:
            raise Denied(grant.refusal, detail="a document of another owner")
        read_as = version_of_passages(document, chunks)
        version = [equals("document_id", document.document_id), equals("version", read_as)]
        with _reaching():
            # The same passages again are replaced where they stand: hiding them first would be a gap.
            live = bool(await self._count(models.Filter(must=[*version, equals("state", LIVE)])))
            async for pairs in batches(chunks, vectors):
                written = await asyncio.to_thread(points, document, read_as, pairs, live)
                await self._writer.upsert(self._collection, written)
            whole = models.Filter(must=[*version, index_below(lt=len(chunks))])
            if chunks and not live:
                await self._writer.set_payload(self._collection, {"state": LIVE}, points=whole)
            await self._writer.delete(
                self._collection,
                models.FilterSelector(
                    filter=models.Filter(must=[equals("document_id", document.document_id)], must_not=[whole])
                ),
            )

    async def set_visibility(self, grant: Grant, document_id: str, visibility: Visibility) -> None:
        with _reaching():
            await self._client.set_payload(
                self._collection, {"visibility": visibility}, points=owned(grant, document_id), wait=True
            )

    async def delete(self, grant: Grant, document_id: str) -> None:
        with _reaching():
            await self._client.delete(
                self._collection, models.FilterSelector(filter=owned(grant, document_id)), wait=True
            )

    # ── chunks of an earlier version ──────────────────────────────────────────────────────────────────────────────

    async def untagged(
        self, grant: Grant, *, after: int | str | None = None
    ) -> tuple[int, list[Untagged], int | str | None]:
        which = models.Filter(must=[without_tags(grant)])
        with _reaching():
            count = await self._count(which)
            points, following = await self._client.scroll(
                self._collection, which, limit=TAGGED_AT_ONCE, offset=after, with_vectors=False
            )
        found = [_as_untagged(point.id, point.payload or {}) for point in points]
        return count, found, following if isinstance(following, int | str) else None

    async def tag(self, grant: Grant, chunks: Sequence[Untagged], *, document_id: str, owner: str, name: str) -> None:
        these = models.HasIdCondition(has_id=[chunk.point for chunk in chunks])
        tags = {
            "owner_identity": owner,
            "visibility": "private",
            "state": LIVE,
            "document_id": document_id,
            "source_filename": f"{owner}/{name}",
        }
        with _reaching():
            await self._client.set_payload(
                self._collection, tags, points=models.Filter(must=[these, without_tags(grant)]), wait=True
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


async def version_of(url: str, collection: str) -> object:
    """None where there is no such collection, 0 where none is written."""
    client = AsyncQdrantClient(url=url, timeout=WITHIN, check_compatibility=False)
    try:
        with _reaching():
            if not await client.collection_exists(collection):
                return None
            kept = (await client.get_collection(collection)).config.metadata or {}
    finally:
        await client.close()
    if "embedding_model" not in kept:
        raise _strange(collection)
    return kept.get("schema", 0)


def _check(found: models.CollectionInfo, collection: str, model: str, dims: int) -> None:
    kept: Mapping[str, Any] = found.config.metadata or {}
    schema, made_for = kept.get("schema"), kept.get("embedding_model")
    if schema is None:
        raise _strange(collection)
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


def _strange(collection: str) -> Misconfigured:
    return Misconfigured(
        f"The Qdrant collection {collection!r} was not made by Adiyan, or Qdrant is older than 1.16. Delete the "
        "collection (or update Qdrant): all documents are embedded again from their files at the next start."
    )


def _dims(found: models.CollectionInfo) -> int | None:
    vectors = found.config.params.vectors
    dense = vectors.get(DENSE) if isinstance(vectors, dict) else None
    return dense.size if dense else None


# ── queries and points ────────────────────────────────────────────────────────────────────────────────────────────


def _as_untagged(point: models.ExtendedPointId, payload: Mapping[str, Any]) -> Untagged:
    def told(name: str) -> str:
        value = payload.get(name)
        return value if isinstance(value, str) else ""

    return Untagged(
        point=point if isinstance(point, int) else str(point),
        document_id=told("document_id") or str(point),
        source_filename=told("source_filename"),
        owner=told("owner_identity"),
    )


@contextmanager
def _reading() -> Iterator[None]:
    """As `_reaching`; and a collection that is not there, or lacks a vector, can't be read now."""
    try:
        with _reaching():
            yield
    except UnexpectedResponse as error:
        log.error("! qdrant refused a search status=%s", error.status_code)
        raise Unavailable(detail=f"qdrant: status {error.status_code}") from error


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
