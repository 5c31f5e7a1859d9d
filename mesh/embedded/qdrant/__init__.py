"""Qdrant's own engine behind the part of Qdrant's REST form that its Python client uses.

For a machine that has nothing but the package index: `python -m mesh.embedded.qdrant --data DIR --port N`.

    fields    a JSON object, read strictly: what is not understood is refused, never dropped
    filters   JSON → the engine's filter; fails closed
    points    JSON ↔ ids, vectors, payloads, records
    queries   JSON → the engine's query
    schema    what a collection was created with, and how it is described
    collection, store    the shards, their records on disk, and the lock that owns them
    handlers, server     the routes
    upkeep    flushing, and index building in a child process
"""
