"""A shard written anew from what it holds. The engine leaves what was deleted in its log and on its pages; a fresh one
has never seen it."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import qdrant_edge as edge

from mesh.embedded.qdrant.collection import RECORD
from mesh.embedded.qdrant.indexes import index_schema
from mesh.embedded.qdrant.schema import engine_config, schema_of

AT_ONCE = 500


def write_anew(shard: Path) -> None:
    """Takes the place of the shard, which nobody else has open."""
    record = json.loads((shard.parent / RECORD).read_text("utf-8"))
    fresh = shard.with_name(f"{shard.name}-anew")
    shutil.rmtree(fresh, ignore_errors=True)
    fresh.mkdir()
    old = edge.EdgeShard.load(str(shard))
    new = edge.EdgeShard.create(str(fresh), engine_config(schema_of(record["schema"])))
    for name, asked in record["indexes"].items():
        new.update(edge.UpdateOperation.create_field_index(name, index_schema(asked)))
    following: edge.PointId | None = None
    while True:
        wanted = edge.ScrollRequest(offset=following, limit=AT_ONCE, with_payload=True, with_vector=True)
        found, following = old.scroll(wanted)
        points = [edge.Point(point.id, point.vector or {}, point.payload) for point in found]
        if points:
            new.update(edge.UpdateOperation.upsert_points(points))
        if following is None:
            break
    new.flush()
    for opened in (new, old):
        opened.close()
    shutil.rmtree(shard)
    fresh.rename(shard)
