"""Every store says which form its data is in. What an earlier release wrote opens; what a newer one wrote is refused in
a sentence, and is left as it is."""

from __future__ import annotations

import json
import sqlite3
import uuid
from collections.abc import Awaitable, Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from pymongo import MongoClient
from qdrant_client import AsyncQdrantClient, models

from mesh.access import Grant
from mesh.adapters import mem0, mongo, shelf_tables
from mesh.adapters.mem0 import Mem0Facts
from mesh.adapters.mongo import MongoRoster
from mesh.adapters.qdrant import QdrantPassages
from mesh.adapters.shelf import DiskShelf
from mesh.connections import connect
from mesh.embedded.qdrant.collection import Collection
from mesh.embedded.qdrant.schema import schema_of
from mesh.errors import Misconfigured
from mesh.ledger import Ledger
from mesh.ports.people import Client
from mesh.versions import REDIS, REDIS_KEY, claim_redis, redis_version
from tests.boundary import old_shelves
from tests.boundary.stage import DIMS
from tests.people import ASHA, BEN
from tests.stores import QUIET, mongodb

pytestmark = QUIET

MODEL = "multilingual-e5-small"
NEWER = "Install the newer Adiyan"
REX = "My dog is called Rex."
OLD_HISTORY = """
CREATE TABLE history (
    id TEXT PRIMARY KEY, memory_id TEXT, old_memory TEXT, new_memory TEXT, event TEXT, created_at DATETIME,
    updated_at DATETIME, is_deleted INTEGER DEFAULT 0, actor_id TEXT, role TEXT
)
"""


def fresh() -> str:
    return f"versions-{uuid.uuid4().hex[:12]}"


# ── the documents folder ──────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("version", old_shelves.VERSIONS)
async def test_a_documents_folder_of_an_earlier_release_opens_and_is_of_this_one(tmp_path: Path, version: int) -> None:
    old_shelves.write(tmp_path, version)
    opened = await DiskShelf.open(tmp_path)
    owner = Grant(old_shelves.OWNER, frozenset(), tier="")
    assert [each.name for each in await opened.documents(owner)] == [old_shelves.NAME]
    with closing(sqlite3.connect(tmp_path / "index.sqlite")) as database:
        assert database.execute("PRAGMA user_version").fetchone() == (shelf_tables.SCHEMA,)


async def test_a_documents_folder_of_a_newer_release_is_refused_and_left_alone(tmp_path: Path) -> None:
    old_shelves.write(tmp_path, 3)
    with closing(sqlite3.connect(tmp_path / "index.sqlite")) as database, database:
        database.execute("PRAGMA user_version = 99")
    with pytest.raises(Misconfigured, match=NEWER):
        await DiskShelf.open(tmp_path)
    with closing(sqlite3.connect(tmp_path / "index.sqlite")) as database:
        assert database.execute("PRAGMA user_version").fetchone() == (99,)
        assert database.execute("SELECT count(*) FROM documents").fetchone() == (1,)


# ── Redis ─────────────────────────────────────────────────────────────────────────────────────────────────────────


async def test_redis_without_a_version_is_taken_over_and_a_newer_one_is_refused(redis_url: str) -> None:
    redis = connect(redis_url)
    ledger = Ledger(redis)
    assert await redis_version(redis) is None
    assert await ledger.ready()
    for _ in range(2):
        await claim_redis(redis)
    assert await redis_version(redis) == REDIS
    assert await ledger.ready()
    for newer in (str(REDIS + 1), "x"):
        await redis.set(REDIS_KEY, newer)
        with pytest.raises(Misconfigured, match=NEWER):
            await claim_redis(redis)
        assert not await ledger.ready(), "and the gateway takes no message into it"
    await ledger.close()
    await redis.aclose()


# ── MongoDB ───────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.fixture(scope="module")
def uri(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with mongodb(tmp_path_factory.mktemp("versions-mongodb")) as address:
        yield address


async def test_clients_of_an_earlier_release_are_kept_and_those_of_a_newer_one_are_refused(uri: str) -> None:
    database = fresh()
    with MongoClient[dict[str, Any]](uri) as client:
        client[database]["tiers"].insert_one({"_id": "gold", "permissions": ["chat:converse"], "refusal": ""})
        client[database]["clients"].insert_one({"_id": ASHA, "name": "Asha", "tier": "gold", "blocked": False})
        assert await mongo.version_of(uri, database) == 0
        assert await mongo.version_of(uri, fresh()) is None
        opened = await MongoRoster.open(uri, database)
        assert await opened.client(ASHA) == Client(ASHA, "Asha", "gold")
        await opened.close()
        assert await mongo.version_of(uri, database) == mongo.SCHEMA
        for newer in (mongo.SCHEMA + 1, "1", True):
            client[database]["mesh"].update_one({"_id": "schema"}, {"$set": {"version": newer}})
            with pytest.raises(Misconfigured, match=NEWER):
                await MongoRoster.open(uri, database)
        client.drop_database(database)


# ── Qdrant ────────────────────────────────────────────────────────────────────────────────────────────────────────


async def open_passages(url: str, _: str, __: Path, collection: str) -> None:
    await (await QdrantPassages.open(url, model=MODEL, dims=DIMS, collection=collection)).close()


async def open_memories(url: str, model_url: str, folder: Path, collection: str) -> None:
    opened = await Mem0Facts.open(
        qdrant_url=url, ollama_host=model_url, model=MODEL, dims=DIMS, folder=folder, collection=collection
    )
    await opened.close()


Open = Callable[[str, str, Path, str], Awaitable[None]]


@pytest.mark.parametrize("open_it", [open_passages, open_memories])
async def test_a_collection_of_a_newer_release_is_refused(
    index_url: str, scripted_url: str, tmp_path: Path, open_it: Open
) -> None:
    collection = fresh()
    await open_it(index_url, scripted_url, tmp_path, collection)
    client = AsyncQdrantClient(index_url, check_compatibility=False)
    await client.update_collection(collection, metadata={"schema": 99})
    with pytest.raises(Misconfigured, match="version 99"):
        await open_it(index_url, scripted_url, tmp_path, collection)
    await client.delete_collection(collection)
    await client.close()


async def test_memories_that_were_told_to_an_earlier_release_are_recalled(
    index_url: str, scripted_url: str, tmp_path: Path
) -> None:
    """It wrote no version, neither into the collection nor into the history: both are made by hand here."""
    collection, fact_id = fresh(), str(uuid.uuid4())
    client = AsyncQdrantClient(index_url, check_compatibility=False)
    await client.create_collection(
        collection,
        vectors_config=models.VectorParams(size=DIMS, distance=models.Distance.COSINE),
        sparse_vectors_config={"bm25": models.SparseVectorParams(modifier=models.Modifier.IDF)},
        metadata={"embedding_model": MODEL, "embedding_dims": DIMS},
    )
    at = "2026-01-02T00:00:00+00:00"
    told = {"told_at": at, "valid_from": at, "message_id": "m", "state": "live"}
    payload = {"data": REX, "hash": "h", "created_at": at, "updated_at": at, "user_id": ASHA, **told}
    vector = [1.0] + [0.0] * (DIMS - 1)
    await client.upsert(collection, [models.PointStruct(id=fact_id, vector={"": vector}, payload=payload)])
    with closing(sqlite3.connect(tmp_path / mem0.HISTORY)) as history, history:
        history.execute(OLD_HISTORY)
        history.execute(
            "INSERT INTO history (id, memory_id, new_memory, event) VALUES ('1', ?, ?, 'ADD')", (fact_id, REX)
        )

    for _ in range(2):
        opened = await Mem0Facts.open(
            qdrant_url=index_url,
            ollama_host=scripted_url,
            model=MODEL,
            dims=DIMS,
            folder=tmp_path,
            collection=collection,
        )
        assert [each.text for each in await opened.all(Grant(ASHA, frozenset(), tier=""))] == [REX]
        assert await opened.all(Grant(BEN, frozenset(), tier="")) == []
        await opened.close()
    kept = (await client.get_collection(collection)).config.metadata or {}
    assert kept == {"embedding_model": MODEL, "embedding_dims": DIMS, "schema": mem0.SCHEMA}
    with closing(sqlite3.connect(tmp_path / mem0.HISTORY)) as history:
        assert history.execute("PRAGMA user_version").fetchone() == (mem0.SCHEMA,)
        assert history.execute("SELECT new_memory FROM history").fetchall() == [(REX,)]
    await client.delete_collection(collection)
    await client.close()


def test_a_history_of_a_newer_release_is_refused(tmp_path: Path) -> None:
    with closing(sqlite3.connect(tmp_path / "history.db")) as history:
        history.execute("PRAGMA user_version = 99")
    with pytest.raises(Misconfigured, match=NEWER):
        mem0.take_over_history(tmp_path / "history.db")


def test_the_embedded_index_opens_what_had_no_version_and_refuses_what_is_newer(tmp_path: Path) -> None:
    folder = tmp_path / "notes"
    Collection.create(folder, "notes", schema_of({"vectors": {"size": 4, "distance": "Cosine"}})).shard.close()
    record = json.loads((folder / "collection.json").read_text())
    del record["version"]
    (folder / "collection.json").write_text(json.dumps(record))
    Collection.load(folder).shard.close()
    (folder / "collection.json").write_text(json.dumps({**record, "version": 99}))
    with pytest.raises(ValueError, match="version 99"):
        Collection.load(folder)
