"""What a collection was created with, and how it is described to those who ask."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import qdrant_edge as edge

from mesh.embedded.qdrant.fields import Fields, malformed, object_of, wrong

_DISTANCES = {
    "Cosine": edge.Distance.Cosine,
    "Dot": edge.Distance.Dot,
    "Euclid": edge.Distance.Euclid,
    "Manhattan": edge.Distance.Manhattan,
}
_HNSW = {"m": 16, "ef_construct": 100, "full_scan_threshold": 10_000}
_OPTIMIZERS = {"deleted_threshold": 0.2, "vacuum_min_vector_number": 1000, "default_segment_number": 0}
_INDEXING_THRESHOLD_KB = 10_000

_VECTOR_FIELDS = (
    *("size", "distance", "hnsw_config", "quantization_config", "on_disk", "memory", "datatype"),
    "multivector_config",
)
_HNSW_FIELDS = (*_HNSW, "max_indexing_threads", "on_disk", "payload_m", "inline_storage", "memory")
_OPTIMIZER_FIELDS = (
    *(*_OPTIMIZERS, "indexing_threshold", "max_segment_size", "memmap_threshold", "flush_interval_sec"),
    *("max_optimization_threads", "prevent_unoptimized"),
)
_CREATE_FIELDS = (
    *("vectors", "sparse_vectors", "metadata", "hnsw_config", "optimizers_config"),
    # accepted and without effect: they change speed and placement, never a result
    *("on_disk_payload", "payload", "id_tracker", "wal_config", "quantization_config"),
    *("shard_number", "replication_factor", "write_consistency_factor"),
    *("sharding_method", "strict_mode_config"),
)


@dataclass(frozen=True)
class Schema:
    """The vector slots of a collection; `params` keeps them as they were sent."""

    dense: dict[str, int]
    sparse: frozenset[str]
    params: dict[str, object]
    metadata: dict[str, object] = field(default_factory=dict)


def schema_of(body: object) -> Schema:
    """From the body of a create request, or from the record on disk, which has the same form."""
    fields = Fields(body, "collection", *_CREATE_FIELDS)
    fields.unsupported("sharding_method", "strict_mode_config")
    params = {key: fields.get(key) for key in _CREATE_FIELDS if key in fields and key != "metadata"}
    dense = {name: _dense(vector).whole("size", least=1) for name, vector in _named(fields).items()}
    sparse = object_of(fields.get("sparse_vectors"), "`sparse_vectors`")
    for vector in sparse.values():
        _sparse(vector)
    if not dense and not sparse:
        raise wrong("a collection needs at least one vector")
    if overlap := dense.keys() & sparse.keys():
        raise wrong(f"`{min(overlap)}` is both a dense and a sparse vector")
    return Schema(dense, frozenset(sparse), params, object_of(fields.get("metadata"), "`metadata`"))


def engine_config(schema: Schema) -> edge.EdgeConfig:
    fields = Fields(schema.params, "collection", *_CREATE_FIELDS)
    sparse = object_of(fields.get("sparse_vectors"), "`sparse_vectors`")
    return edge.EdgeConfig(
        vectors={name: _dense_params(_dense(vector)) for name, vector in _named(fields).items()} or None,
        sparse_vectors={name: _sparse_params(_sparse(vector)) for name, vector in sparse.items()} or None,
        hnsw_config=_hnsw(Fields(fields.get("hnsw_config") or {}, "`hnsw_config`", *_HNSW_FIELDS)),
        optimizers=_optimizers(_optimizer_fields(fields)),
    )


def describe(schema: Schema, shard: edge.EdgeShard, indexes: Mapping[str, object]) -> dict[str, object]:
    """As Qdrant describes a collection; `indexes` maps a payload field to the index as it was asked for."""
    info = shard.info()
    params = schema.params
    return {
        "status": "green",
        "optimizer_status": "ok",
        "indexed_vectors_count": info.indexed_vectors_count,
        "points_count": info.points_count,
        "segments_count": info.segments_count,
        "config": {
            "params": {
                "vectors": params.get("vectors") or {},
                "sparse_vectors": params.get("sparse_vectors"),
                "shard_number": 1,
                "replication_factor": 1,
                "write_consistency_factor": 1,
                "on_disk_payload": True,
            },
            "hnsw_config": {
                "max_indexing_threads": 1,
                "on_disk": False,
                **_HNSW,
                **_given(params.get("hnsw_config")),
            },
            "optimizer_config": {
                "flush_interval_sec": 5,
                "indexing_threshold": _INDEXING_THRESHOLD_KB,
                **_OPTIMIZERS,
                **_given(params.get("optimizers_config")),
            },
            "wal_config": {"wal_capacity_mb": 32, "wal_segments_ahead": 0},
            "quantization_config": None,
            "metadata": schema.metadata or None,
        },
        "payload_schema": {
            name: {
                "data_type": index["type"] if isinstance(index := indexes.get(name), dict) else index,
                "params": index if isinstance(index, dict) else None,
                "points": found.points,
            }
            for name, found in info.payload_schema.items()
            if name in indexes
        },
    }


def _given(value: object) -> dict[str, object]:
    return {key: item for key, item in object_of(value, "settings").items() if item is not None}


def _named(fields: Fields) -> dict[str, object]:
    vectors = object_of(fields.get("vectors"), "`vectors`")
    return {"": vectors} if isinstance(vectors.get("size"), int) else vectors


def _dense(value: object) -> Fields:
    vector = Fields(value, "vector", *_VECTOR_FIELDS)
    vector.unsupported("multivector_config")
    if vector.get("datatype") not in (None, "float32"):
        vector.unsupported("datatype")
    if vector.text("distance") not in _DISTANCES:
        raise malformed(f"unknown distance `{vector.text('distance')}`, expected one of {', '.join(_DISTANCES)}")
    return vector


def _dense_params(vector: Fields) -> edge.EdgeVectorParams:
    return edge.EdgeVectorParams(size=vector.whole("size", least=1), distance=_DISTANCES[vector.text("distance")])


def _sparse(value: object) -> Fields:
    vector = Fields({} if value is None else value, "sparse vector", "index", "modifier")
    if vector.get("modifier") not in (None, "none", "idf"):
        raise malformed(f"unknown modifier {vector.get('modifier')!r}, expected `none` or `idf`")
    Fields(vector.get("index") or {}, "`index`", "full_scan_threshold", "on_disk", "memory", "datatype")
    return vector


def _sparse_params(vector: Fields) -> edge.EdgeSparseVectorParams:
    return edge.EdgeSparseVectorParams(modifier=edge.Modifier.Idf if vector.get("modifier") == "idf" else None)


def _hnsw(fields: Fields) -> edge.HnswIndexConfig:
    """One thread: the index is built in the background of a small machine."""
    m, ef_construct, full_scan = (fields.whole(key) if key in fields else _HNSW[key] for key in _HNSW)
    payload_m = fields.some_whole("payload_m")
    return edge.HnswIndexConfig(m, ef_construct, full_scan, max_indexing_threads=1, payload_m=payload_m)


def _optimizer_fields(fields: Fields) -> Fields:
    return Fields(fields.get("optimizers_config") or {}, "`optimizers_config`", *_OPTIMIZER_FIELDS)


def _optimizers(fields: Fields) -> edge.EdgeOptimizersConfig:
    threshold = fields.some_whole("indexing_threshold")
    return edge.EdgeOptimizersConfig(
        deleted_threshold=fields.some_number("deleted_threshold"),
        vacuum_min_vector_number=fields.some_whole("vacuum_min_vector_number"),
        default_segment_number=fields.some_whole("default_segment_number"),
        max_segment_size=fields.some_whole("max_segment_size"),
        indexing_threshold=_INDEXING_THRESHOLD_KB if threshold is None else threshold,
    )
