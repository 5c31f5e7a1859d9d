"""A search's questions to Qdrant, and the passages in its answers.

Through the client's own connection and in Qdrant's REST form, but without the client's models: to build, copy and check
those took longer than Qdrant's answer (docs/benchmarks.md).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

from pydantic_core import to_json
from qdrant_client import AsyncQdrantClient, models

from mesh.errors import Unavailable
from mesh.ports.documents import Chunk
from mesh.ports.models import Vector
from mesh.ports.passages import Passage
from mesh.text import sparse_query

DENSE = "dense"
SPARSE = "sparse"
PAYLOAD = (
    *("document_id", "source_filename", "owner_identity", "ingested_at"),
    *("chunk_index", "heading_path", "part", "start", "text"),
)
"""What a passage is made of."""

Query = dict[str, Any]
Point = Mapping[str, Any]

_LONG_AGO = datetime.fromtimestamp(0, UTC)


def by_meaning(vector: Vector, allowed: models.Filter, limit: int) -> Query:
    return {"query": list(vector), "using": DENSE, "with_payload": PAYLOAD, **_scoped(allowed, limit)}


def by_words(text: str, allowed: models.Filter, limit: int, among: models.Filter | None = None) -> Query | None:
    """None where the text has no words. How rare a word is counts `among` these passages, else among all: whoever may
    not see a passage must not learn from an order or a figure that it holds a word. Takes Qdrant 1.19."""
    indices, values = sparse_query(text)
    if not indices:
        return None
    terms = {"indices": indices, "values": values}
    rarity = {"params": {"idf": {"corpus": among.model_dump(mode="json", exclude_none=True)}}} if among else {}
    return {"query": terms, "using": SPARSE, "with_payload": PAYLOAD, **rarity, **_scoped(allowed, limit)}


def cosines(vector: Vector, allowed: models.Filter, points: Sequence[int | str]) -> Query:
    """Of what was found by its words."""
    these = models.Filter(must=[allowed, models.HasIdCondition(has_id=list(points))])
    return {"query": list(vector), "using": DENSE, **_scoped(these, len(points))}


def _scoped(allowed: models.Filter, limit: int) -> Query:
    """Raises `ValueError` for a filter that holds nothing: to Qdrant that is every passage of everyone."""
    if not allowed.must:
        raise ValueError("a search that is held to nobody")
    return {"filter": allowed.model_dump(mode="json", exclude_none=True), "limit": limit}


async def ask(client: AsyncQdrantClient, collection: str, queries: Sequence[Query]) -> list[list[Point]]:
    """All at once; the answers in the order of the queries."""
    answer = await client.http.client.request(
        type_=dict[str, Any],
        method="POST",
        url="/collections/{collection_name}/points/query/batch",
        path_params={"collection_name": collection},
        headers={"Content-Type": "application/json"},
        content=to_json({"searches": queries}),
    )
    try:
        return [found["points"] for found in answer["result"]]
    except (KeyError, TypeError) as error:
        raise Unavailable(detail="qdrant: an answer of another form") from error


def found_by_words(points: Sequence[Point]) -> list[Passage]:
    return [_passage(point, None, point["score"]) for point in points if _has_text(point)]


def union(words: Sequence[Passage], dense: Sequence[Point], rescored: Sequence[Point]) -> list[Passage]:
    """Of both legs; `rescored` are the cosines of what was found by words."""
    near = {point["id"]: point["score"] for point in (*rescored, *dense)}
    both = {passage.point: replace(passage, dense=near.get(passage.point)) for passage in words}
    alone = {point["id"]: point for point in dense if point["id"] not in both and _has_text(point)}
    return [*both.values(), *(_passage(point, point["score"], None) for point in alone.values())]


def _has_text(point: Point) -> bool:
    return "text" in (point.get("payload") or {})


def _passage(point: Point, dense: float | None, sparse: float | None) -> Passage:
    kept = point["payload"]
    at = kept.get("ingested_at")
    return Passage(
        document_id=kept.get("document_id") or str(point["id"]),
        source_filename=kept.get("source_filename", ""),
        chunk=Chunk(
            index=kept.get("chunk_index", 0),
            text=kept["text"],
            heading_path=tuple(kept.get("heading_path", ())),
            part=kept.get("part", ""),
            start=kept.get("start", 0),
        ),
        dense=dense,
        sparse=sparse,
        ingested_at=datetime.fromisoformat(at) if at else _LONG_AGO,
        owner=kept.get("owner_identity") or "",
        point=point["id"],
    )
