"""Ids, vectors, payloads and records: JSON to the engine's form and back.

Everything is checked before the engine sees it, because the engine logs a write before it looks at it (measured with
0.9): a batch with one wrong vector is half applied, a sparse vector of unequal lengths panics, now and at every later
start, and a payload nested deeper than its JSON reader goes makes every later write fail.
"""

from __future__ import annotations

import uuid

import qdrant_edge as edge

from mesh.embedded.qdrant.fields import Fields, malformed, texts_of, wrong
from mesh.embedded.qdrant.schema import Schema

F32_MAX = 3.4028234e38
U32_MAX = 2**32 - 1
U64_MAX = 2**64 - 1
PAYLOAD_DEPTH = 64


def point_id(value: object) -> edge.PointId:
    if isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= U64_MAX:
        return value
    if isinstance(value, str):
        try:
            return uuid.UUID(value)
        except ValueError:
            pass
    raise malformed(f"value {value!r} is not a valid point ID, valid values are either an unsigned integer or a UUID")


def point_ids(values: list[object]) -> list[edge.PointId]:
    return [point_id(value) for value in values]


def vector_for(name: str, value: object, schema: Schema) -> edge.NamedVector:
    """One vector for the vector slot `name`, of its size and kind."""
    if name in schema.sparse:
        return _sparse(value)
    if name not in schema.dense:
        raise wrong(f"Not existing vector name error: {name}")
    return _dense(value, schema.dense[name])


def vectors_for(value: object, schema: Schema) -> dict[str, edge.NamedVector]:
    """The vectors of a point: a list for the unnamed slot, or an object from name to vector."""
    named = value if isinstance(value, dict) else {"": value}
    return {name: vector_for(name, vector, schema) for name, vector in named.items()}


def _dense(value: object, size: int) -> list[float]:
    if not isinstance(value, list):
        raise malformed("a dense vector must be a list of numbers; texts are not embedded here")
    if len(value) != size:
        raise wrong(f"Vector dimension error: expected dim: {size}, got {len(value)}")
    try:
        fits = min(value) >= -F32_MAX and max(value) <= F32_MAX
    except TypeError as error:
        raise malformed("a dense vector must be a list of numbers") from error
    if not fits:
        raise wrong("a vector holds a number that is too large for 32 bits")
    return value


def _sparse(value: object) -> edge.SparseVector:
    fields = Fields(value, "sparse vector", "indices", "values")
    indices = [item for item in fields.items("indices") if isinstance(item, int) and 0 <= item <= U32_MAX]
    values = _dense(fields.items("values"), len(indices)) if indices else []
    if len(indices) != len(fields.items("indices")) or len(values) != len(fields.items("values")):
        raise wrong("a sparse vector needs as many values as indices, and indices that fit 32 bits")
    if len(set(indices)) != len(indices):
        raise wrong("the indices of a sparse vector must be unique")
    return edge.SparseVector(indices, values)


def payload_of(value: object) -> dict[str, object]:
    if value is None:
        return {}
    if not isinstance(value, dict):
        raise malformed("a payload must be an object")
    if _deeper_than(PAYLOAD_DEPTH, value):
        raise wrong(f"a payload may be nested {PAYLOAD_DEPTH} deep at most")
    return value


def _deeper_than(limit: int, value: object) -> bool:
    level: list[object] = [value]
    for _ in range(limit):
        level = [
            child
            for item in level
            if isinstance(item, dict | list)
            for child in (item.values() if isinstance(item, dict) else item)
            if isinstance(child, dict | list)
        ]
        if not level:
            return False
    return True


def with_payload(value: object, default: bool) -> bool | list[str] | edge.PayloadSelector:
    if value is None or isinstance(value, bool):
        return default if value is None else value
    if isinstance(value, list):
        return texts_of(value, "`with_payload`")
    fields = Fields(value, "`with_payload`", "include", "exclude")
    if ("include" in fields) == ("exclude" in fields):
        raise wrong("`with_payload` takes either `include` or `exclude`")
    if "include" in fields:
        return edge.PayloadSelector.Include(fields.texts("include"))
    return edge.PayloadSelector.Exclude(fields.texts("exclude"))


def with_vector(value: object) -> bool | list[str]:
    if value is None or isinstance(value, bool):
        return bool(value)
    return texts_of(value, "`with_vector`")


def scored(point: edge.ScoredPoint) -> dict[str, object]:
    return {**_shown(point), "version": point.version, "score": point.score}


def record(point: edge.Record) -> dict[str, object]:
    return _shown(point)


def _shown(point: edge.ScoredPoint | edge.Record) -> dict[str, object]:
    shown: dict[str, object] = {"id": id_out(point.id), "payload": point.payload}
    if point.vector is not None:
        shown["vector"] = _vector_out(point.vector)
    if point.order_value is not None:
        shown["order_value"] = point.order_value
    return shown


def id_out(value: edge.PointId) -> int | str:
    return value if isinstance(value, int) else str(value)


def _vector_out(value: object) -> object:
    if isinstance(value, edge.SparseVector):
        return {"indices": list(value.indices), "values": list(value.values)}
    if isinstance(value, dict):
        return {name: _vector_out(vector) for name, vector in value.items()}
    return value
