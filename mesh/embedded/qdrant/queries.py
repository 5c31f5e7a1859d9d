"""Queries: JSON to the engine's form. A kind of query that is not supported is refused by its name."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import cast

import qdrant_edge as edge

from mesh.embedded.qdrant.fields import Fields, Refused, malformed, one_or_many, wrong
from mesh.embedded.qdrant.filters import optional_filter, required_filter, without
from mesh.embedded.qdrant.points import id_out, point_id, vector_for, with_payload, with_vector
from mesh.embedded.qdrant.schema import Schema

DEFAULT_LIMIT = 10
RRF_K = 2
"""Qdrant's own default."""
MAX_DEPTH = 8
MMR_DIVERSITY = 0.5

_PREFETCH_FIELDS = (
    "prefetch",
    "query",
    "using",
    "filter",
    "params",
    "score_threshold",
    "limit",
    "lookup_from",
)
_QUERY_FIELDS = (*_PREFETCH_FIELDS, "offset", "with_vector", "with_payload", "shard_key")
_PARAMS = ("hnsw_ef", "exact", "indexed_only", "quantization", "acorn", "idf")
_KINDS = ("nearest", "fusion", "rrf", "order_by", "sample")
_OTHER_KINDS = (
    "recommend",
    "discover",
    "context",
    "formula",
    "relevance_feedback",
    "text",
    "image",
    "object",
)


@dataclass(frozen=True)
class _Asked:
    """What to score by, and the points that were themselves the question: they are not part of the answer."""

    scoring: edge.ScoringQueryType | None = None
    but: list[edge.PointId] = field(default_factory=list)


@dataclass(frozen=True)
class Reader:
    """Reads the queries of one collection; needs its shard to look up a query by id."""

    shard: edge.EdgeShard
    schema: Schema

    def request(self, value: object) -> edge.QueryRequest:
        fields = Fields(value, "query request", *_QUERY_FIELDS)
        fields.unsupported("lookup_from", "shard_key")
        asked = self._asked(fields)
        return edge.QueryRequest(
            limit=_limit(fields),
            offset=fields.some_whole("offset"),
            query=asked.scoring,
            prefetches=self._prefetches(fields, 0),
            with_vector=with_vector(fields.get("with_vector")),
            with_payload=with_payload(fields.get("with_payload"), default=False),
            filter=without(optional_filter(fields.get("filter")), asked.but),
            score_threshold=fields.some_number("score_threshold"),
            params=_params(fields.get("params")),
        )

    def _prefetches(self, fields: Fields, depth: int) -> list[edge.Prefetch]:
        if "prefetch" not in fields:
            return []
        if depth >= MAX_DEPTH:
            raise wrong(f"prefetches may be nested {MAX_DEPTH} deep at most")
        return [self._prefetch(item, depth + 1) for item in one_or_many(fields.get("prefetch"))]

    def _prefetch(self, value: object, depth: int) -> edge.Prefetch:
        fields = Fields(value, "prefetch", *_PREFETCH_FIELDS)
        fields.unsupported("lookup_from")
        asked = self._asked(fields)
        return edge.Prefetch(
            limit=_limit(fields),
            query=asked.scoring,
            prefetches=self._prefetches(fields, depth),
            params=_params(fields.get("params")),
            filter=without(optional_filter(fields.get("filter")), asked.but),
            score_threshold=fields.some_number("score_threshold"),
        )

    def _asked(self, fields: Fields) -> _Asked:
        value, using = fields.get("query"), fields.some_text("using") or ""
        if value is None:
            return _Asked()
        if not isinstance(value, dict) or "indices" in value:
            return self._nearest(value, using)
        for kind in _OTHER_KINDS:
            if kind in value:
                raise wrong(f"the query kind `{kind}` is not supported by the embedded Qdrant")
        kinds = [kind for kind in _KINDS if kind in value]
        if len(kinds) != 1:
            raise malformed(f"a query must be one of {', '.join(_KINDS)}, not an object of {sorted(value)}")
        return self._of_kind(kinds[0], value, using, _limit(fields))

    def _of_kind(self, kind: str, value: dict[str, object], using: str, limit: int) -> _Asked:
        if kind == "nearest":
            fields = Fields(value, "nearest query", "nearest", "mmr")
            nearest = self._nearest(fields.need("nearest"), using)
            return self._diverse(fields, using, limit) if "mmr" in fields else nearest
        fields = Fields(value, f"{kind} query", kind)
        if kind == "fusion":
            return _Asked(_fusion(fields.text("fusion")))
        if kind == "rrf":
            return _Asked(_rrf(fields.need("rrf")))
        if kind == "order_by":
            return _Asked(order_by(fields.need("order_by")))
        if fields.text("sample") != "random":
            raise malformed(f"unknown sample {fields.text('sample')!r}, expected `random`")
        return _Asked(edge.Sample.Random)

    def _nearest(self, value: object, using: str) -> _Asked:
        vector, but = self._vector(value, using)
        return _Asked(edge.Query.Nearest(vector, using=using or None), but)

    def _diverse(self, fields: Fields, using: str, limit: int) -> _Asked:
        vector, but = self._vector(fields.need("nearest"), using)
        mmr = Fields(fields.need("mmr"), "`mmr`", "diversity", "candidates_limit")
        diversity = mmr.some_number("diversity")
        candidates = mmr.some_whole("candidates_limit", least=1) or limit
        weight = 1 - (MMR_DIVERSITY if diversity is None else diversity)
        return _Asked(edge.Mmr(vector, weight, candidates, using or None), but)

    def _vector(self, value: object, using: str) -> tuple[edge.NamedVector, list[edge.PointId]]:
        if isinstance(value, int | str):
            asked = point_id(value)
            return self._stored(asked, using), [asked]
        return vector_for(using, value, self.schema), []

    def _stored(self, asked: edge.PointId, using: str) -> edge.NamedVector:
        if using not in self.schema.dense and using not in self.schema.sparse:
            raise wrong(f"Not existing vector name error: {using}")
        found = self.shard.retrieve([asked], False, True)
        if not found:
            raise Refused(404, f"Not found: No point with id {id_out(asked)} found")
        vectors: object = found[0].vector
        named = vectors if isinstance(vectors, dict) else {"": vectors}
        if named.get(using) is None:
            raise wrong(f"the point {id_out(asked)} has no vector `{using}`")
        return cast("edge.NamedVector", named[using])


def order_by(value: object) -> edge.OrderBy:
    if isinstance(value, str):
        return edge.OrderBy(value)
    fields = Fields(value, "`order_by`", "key", "direction", "start_from")
    directions = {None: None, "asc": edge.Direction.Asc, "desc": edge.Direction.Desc}
    direction = fields.some_text("direction")
    if direction not in directions:
        raise malformed(f"unknown direction {direction!r}, expected `asc` or `desc`")
    start = fields.get("start_from")
    if isinstance(start, str):
        return edge.OrderBy(fields.text("key"), directions[direction], start)
    return edge.OrderBy(fields.text("key"), directions[direction], fields.some_number("start_from"))


def _limit(fields: Fields) -> int:
    return fields.some_whole("limit", least=1) or DEFAULT_LIMIT


def _fusion(name: str) -> edge.ScoringQueryType:
    fusions: dict[str, object] = {"rrf": edge.Fusion.Rrf(k=RRF_K), "dbsf": edge.Fusion.Dbsf()}
    if name in fusions:
        return cast("edge.Fusion", fusions[name])  # the stubs do not say that one is the other
    raise malformed(f"unknown fusion `{name}`, expected `rrf` or `dbsf`")


def _rrf(value: object) -> edge.ScoringQueryType:
    fields = Fields(value, "`rrf`", "k", "weights")
    weights = [_weight(item) for item in fields.items("weights")] if "weights" in fields else None
    return cast("edge.Fusion", edge.Fusion.Rrf(k=fields.some_whole("k", least=1) or RRF_K, weights=weights))


def _weight(value: object) -> float:
    return Fields({"weight": value}, "`weights`", "weight").number("weight")


def _params(value: object) -> edge.SearchParams | None:
    if value is None:
        return None
    fields = Fields(value, "`params`", *_PARAMS)
    fields.unsupported("acorn")
    return edge.SearchParams(
        hnsw_ef=fields.some_whole("hnsw_ef"),
        exact=bool(fields.some_flag("exact")),
        indexed_only=bool(fields.some_flag("indexed_only")),
        idf=_idf(fields.get("idf")),
    )


def _idf(value: object) -> edge.IdfParams | None:
    """Over which points the rarity of a word is counted."""
    if value is None or value == "global":
        return None
    return edge.IdfParams(required_filter(Fields(value, "`idf`", "corpus").need("corpus")))
