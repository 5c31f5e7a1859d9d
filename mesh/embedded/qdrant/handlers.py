"""What each route does: plain functions from a collection and a JSON body to the result. They run in a thread."""

from __future__ import annotations

from collections.abc import Callable

import qdrant_edge as edge

from mesh.embedded.qdrant.collection import Collection
from mesh.embedded.qdrant.fields import Fields, Refused, malformed, object_of, wrong
from mesh.embedded.qdrant.filters import optional_filter, required_filter
from mesh.embedded.qdrant.indexes import index_schema
from mesh.embedded.qdrant.points import (
    id_out,
    payload_of,
    point_id,
    point_ids,
    record,
    scored,
    vectors_for,
    with_payload,
    with_vector,
)
from mesh.embedded.qdrant.queries import DEFAULT_LIMIT, Reader, order_by

Handler = Callable[[Collection, object], object]
Update = edge.UpdateOperation

_UPDATE_MODES = {
    None: None,
    "upsert": edge.UpdateMode.Upsert,
    "insert_only": edge.UpdateMode.InsertOnly,
    "update_only": edge.UpdateMode.UpdateOnly,
}


def _write(collection: Collection, operation: edge.UpdateOperation, points: int = 1) -> dict[str, object]:
    return {"operation_id": collection.update(operation, points), "status": "completed"}


def _erase(collection: Collection, operation: edge.UpdateOperation, points: int = 1) -> dict[str, object]:
    return {"operation_id": collection.erase(operation, points), "status": "completed"}


def upsert(collection: Collection, body: object) -> object:
    fields = Fields(body, "upsert request", "points", "batch", "shard_key", "update_filter", "update_mode")
    fields.unsupported("shard_key")
    if ("points" in fields) == ("batch" in fields):
        raise malformed("an upsert takes either `points` or `batch`")
    points = _points(collection, fields) if "points" in fields else _batch(collection, fields.get("batch"))
    mode = fields.some_text("update_mode")
    if mode not in _UPDATE_MODES:
        raise malformed(f"unknown update mode `{mode}`")
    condition = optional_filter(fields.get("update_filter"))
    return _write(collection, Update.upsert_points(points, condition, _UPDATE_MODES[mode]), len(points))


def _points(collection: Collection, fields: Fields) -> list[edge.Point]:
    return [_point(collection, item) for item in fields.items("points")]


def _point(collection: Collection, value: object) -> edge.Point:
    point = Fields(value, "point", "id", "vector", "payload")
    vectors = vectors_for(point.need("vector"), collection.schema)
    return edge.Point(point_id(point.need("id")), vectors, payload_of(point.get("payload")))


def _batch(collection: Collection, value: object) -> list[edge.Point]:
    batch = Fields(value, "`batch`", "ids", "vectors", "payloads")
    ids = batch.items("ids")
    payloads = batch.items("payloads") if "payloads" in batch else [None] * len(ids)
    vectors = _batch_vectors(batch.need("vectors"))
    if not len(ids) == len(payloads) == len(vectors):
        raise wrong("`batch` needs as many vectors and payloads as ids")
    return [
        edge.Point(point_id(asked), vectors_for(vector, collection.schema), payload_of(payload))
        for asked, vector, payload in zip(ids, vectors, payloads, strict=True)
    ]


def _batch_vectors(value: object) -> list[object]:
    """Columns to rows: `{"dense": [a, b]}` is `[{"dense": a}, {"dense": b}]`."""
    if not isinstance(value, dict):
        return value if isinstance(value, list) else [value]
    columns = Fields(value, "`vectors`", *value)
    rows = {name: columns.items(name) for name in value}
    if len({len(column) for column in rows.values()}) > 1:
        raise wrong("the vectors of a batch must be equally many for each name")
    return [dict(zip(rows, row, strict=True)) for row in zip(*rows.values(), strict=True)]


def delete_points(collection: Collection, body: object) -> object:
    fields = Fields(body, "delete request", "points", "filter", "shard_key")
    fields.unsupported("shard_key")
    if (ids := _selected(fields)) is not None:
        return _erase(collection, Update.delete_points(ids), len(ids))
    return _erase(collection, Update.delete_points_by_filter(required_filter(fields.get("filter"))))


def _selected(fields: Fields) -> list[edge.PointId] | None:
    """The ids, or None where the points are selected by a filter."""
    if ("points" in fields) == ("filter" in fields):
        raise wrong(f"{fields.where} takes either `points` or `filter`")
    return point_ids(fields.items("points")) if "points" in fields else None


def set_payload(collection: Collection, body: object) -> object:
    fields = Fields(body, "payload request", "payload", "points", "filter", "shard_key", "key")
    fields.unsupported("shard_key")
    payload, key = payload_of(fields.need("payload")), fields.some_text("key")
    if (ids := _selected(fields)) is not None:
        return _write(collection, Update.set_payload(ids, payload, key))
    return _write(collection, Update.set_payload_by_filter(required_filter(fields.get("filter")), payload, key))


def overwrite_payload(collection: Collection, body: object) -> object:
    fields = Fields(body, "payload request", "payload", "points", "filter", "shard_key", "key")
    fields.unsupported("shard_key", "key")
    payload = payload_of(fields.need("payload"))
    if (ids := _selected(fields)) is not None:
        return _write(collection, Update.overwrite_payload(ids, payload))
    return _write(collection, Update.overwrite_payload_by_filter(required_filter(fields.get("filter")), payload))


def delete_payload(collection: Collection, body: object) -> object:
    fields = Fields(body, "payload request", "keys", "points", "filter", "shard_key")
    fields.unsupported("shard_key")
    keys = fields.texts("keys")
    if (ids := _selected(fields)) is not None:
        return _write(collection, Update.delete_payload(ids, keys))
    return _write(collection, Update.delete_payload_by_filter(required_filter(fields.get("filter")), keys))


def clear_payload(collection: Collection, body: object) -> object:
    fields = Fields(body, "payload request", "points", "filter", "shard_key")
    fields.unsupported("shard_key")
    if (ids := _selected(fields)) is not None:
        return _write(collection, Update.clear_payload(ids))
    return _write(collection, Update.clear_payload_by_filter(required_filter(fields.get("filter"))))


def update_vectors(collection: Collection, body: object) -> object:
    fields = Fields(body, "vectors request", "points", "shard_key", "update_filter")
    fields.unsupported("shard_key")
    points = [_point_vectors(collection, item) for item in fields.items("points")]
    condition = optional_filter(fields.get("update_filter"))
    return _write(collection, Update.update_vectors(points, condition), len(points))


def _point_vectors(collection: Collection, value: object) -> edge.PointVectors:
    point = Fields(value, "point", "id", "vector")
    return edge.PointVectors(point_id(point.need("id")), vectors_for(point.need("vector"), collection.schema))


def delete_vectors(collection: Collection, body: object) -> object:
    fields = Fields(body, "vectors request", "points", "filter", "vector", "shard_key")
    fields.unsupported("shard_key")
    names = fields.texts("vector")
    for name in names:
        if name not in collection.schema.dense and name not in collection.schema.sparse:
            raise wrong(f"Not existing vector name error: {name}")
    if (ids := _selected(fields)) is not None:
        return _write(collection, Update.delete_vectors(ids, names))
    return _write(collection, Update.delete_vectors_by_filter(required_filter(fields.get("filter")), names))


_BATCHED: dict[str, Handler] = {
    "upsert": upsert,
    "delete": delete_points,
    "set_payload": set_payload,
    "overwrite_payload": overwrite_payload,
    "delete_payload": delete_payload,
    "clear_payload": clear_payload,
    "update_vectors": update_vectors,
    "delete_vectors": delete_vectors,
}


def batch_update(collection: Collection, body: object) -> object:
    """One after another; those before one that fails stay done."""
    done = []
    for item in Fields(body, "batch request", "operations").items("operations"):
        fields = Fields(item, "operation", *_BATCHED)
        kinds = [kind for kind in _BATCHED if kind in fields]
        if len(kinds) != 1:
            raise malformed("an operation must hold exactly one kind of update")
        done.append(_BATCHED[kinds[0]](collection, fields.need(kinds[0])))
    return done


def query(collection: Collection, body: object) -> object:
    shard = collection.shard
    found = shard.query(Reader(shard, collection.schema).request(body))
    return {"points": [scored(point) for point in found]}


def query_batch(collection: Collection, body: object) -> object:
    shard = collection.shard
    reader = Reader(shard, collection.schema)
    asked = [reader.request(item) for item in Fields(body, "batch request", "searches").items("searches")]
    answers = shard.query_batch(edge.QueryBatchRequest(asked))
    return [{"points": [scored(point) for point in found]} for found in answers]


def scroll(collection: Collection, body: object) -> object:
    known = ("offset", "limit", "filter", "with_payload", "with_vector", "order_by", "shard_key")
    fields = Fields(body, "scroll request", *known)
    fields.unsupported("shard_key")
    found, following = collection.shard.scroll(
        edge.ScrollRequest(
            offset=point_id(fields.get("offset")) if "offset" in fields else None,
            limit=fields.some_whole("limit", least=1) or DEFAULT_LIMIT,
            filter=optional_filter(fields.get("filter")),
            with_payload=with_payload(fields.get("with_payload"), default=True),
            with_vector=with_vector(fields.get("with_vector")),
            order_by=order_by(fields.get("order_by")) if "order_by" in fields else None,
        )
    )
    return {
        "points": [record(point) for point in found],
        "next_page_offset": None if following is None else id_out(following),
    }


def retrieve(collection: Collection, body: object) -> object:
    fields = Fields(body, "retrieve request", "ids", "with_payload", "with_vector", "shard_key")
    fields.unsupported("shard_key")
    found = collection.shard.retrieve(
        point_ids(fields.items("ids")),
        with_payload(fields.get("with_payload"), default=True),
        with_vector(fields.get("with_vector")),
    )
    return [record(point) for point in found]


def retrieve_one(collection: Collection, wanted: str) -> object:
    asked = point_id(int(wanted) if wanted.isdecimal() else wanted)
    found = collection.shard.retrieve([asked], True, True)
    if not found:
        raise Refused(404, f"Not found: Point with id {wanted} does not exists!")
    return record(found[0])


def count(collection: Collection, body: object) -> object:
    fields = Fields(object_of(body, "count request"), "count request", "filter", "exact", "shard_key")
    fields.unsupported("shard_key")
    exact = fields.some_flag("exact") is not False
    condition = optional_filter(fields.get("filter"))
    return {"count": collection.shard.count(edge.CountRequest(exact=exact, filter=condition))}


def facet(collection: Collection, body: object) -> object:
    fields = Fields(body, "facet request", "key", "limit", "filter", "exact", "shard_key")
    fields.unsupported("shard_key")
    found = collection.shard.facet(
        edge.FacetRequest(
            key=fields.text("key"),
            limit=fields.some_whole("limit", least=1) or DEFAULT_LIMIT,
            exact=bool(fields.some_flag("exact")),
            filter=optional_filter(fields.get("filter")),
        )
    )
    return {"hits": [{"value": hit.value, "count": hit.count} for hit in found.hits]}


def create_index(collection: Collection, body: object) -> object:
    fields = Fields(body, "index request", "field_name", "field_schema")
    asked = fields.need("field_schema")
    done = collection.create_index(fields.text("field_name"), asked, index_schema(asked))
    return {"operation_id": done, "status": "completed"}


def amend(collection: Collection, body: object) -> object:
    fields = Fields(
        body,
        "collection changes",
        *("metadata", "vectors", "optimizers_config", "params", "hnsw_config"),
        *("quantization_config", "sparse_vectors", "strict_mode_config"),
    )
    fields.unsupported(
        *("vectors", "optimizers_config", "params", "hnsw_config"),
        *("quantization_config", "sparse_vectors", "strict_mode_config"),
    )
    collection.amend(object_of(fields.get("metadata"), "`metadata`"))
    return True


HANDLERS: dict[tuple[str, str], Handler] = {
    ("GET", ""): lambda collection, _: collection.describe(),
    ("PATCH", ""): amend,
    ("GET", "/aliases"): lambda _, __: {"aliases": []},
    ("PUT", "/index"): create_index,
    ("PUT", "/points"): upsert,
    ("POST", "/points"): retrieve,
    ("POST", "/points/delete"): delete_points,
    ("POST", "/points/payload"): set_payload,
    ("PUT", "/points/payload"): overwrite_payload,
    ("POST", "/points/payload/delete"): delete_payload,
    ("POST", "/points/payload/clear"): clear_payload,
    ("PUT", "/points/vectors"): update_vectors,
    ("POST", "/points/vectors/delete"): delete_vectors,
    ("POST", "/points/batch"): batch_update,
    ("POST", "/points/query"): query,
    ("POST", "/points/query/batch"): query_batch,
    ("POST", "/points/scroll"): scroll,
    ("POST", "/points/count"): count,
    ("POST", "/facet"): facet,
}
"""Method and path below `/collections/NAME`."""
