"""Facts through mem0, each person's apart. mem0 stores, embeds and searches; what is a fact, what replaces what, and in
which order they are told is the memory agent's (docs/decisions/0005-mem0.md)."""

from __future__ import annotations

import asyncio
import logging
import os
import sqlite3
import uuid
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, TypeVar

import httpx
import ollama
from qdrant_client import QdrantClient, models
from qdrant_client.http.exceptions import ResponseHandlingException, UnexpectedResponse

from mesh.access import Grant
from mesh.envelope import pseudonym
from mesh.errors import Crashed, Misconfigured, NotFound, Unavailable
from mesh.ports.memory import Fact
from mesh.settings import IDENTITY
from mesh.versions import check

log = logging.getLogger(__name__)

COLLECTION = "memories"
SCHEMA = 1
"""Of the facts in Qdrant and of mem0's history beside them; what has none was written before there was one."""
HISTORY = "history.db"
LIVE = "live"  # a word: mem0 compares for equality only
SUPERSEDED = "superseded"
WITHIN_S = 15.0
"""One call of mem0 with all that it asks of Qdrant and the model server."""
MOST = 5_000
"""Facts of one person that are listed."""
LISTED = 1_000

_T = TypeVar("_T")


class Mem0Facts:
    def __init__(self, memory: Any, qdrant: QdrantClient, collection: str) -> None:
        self._memory = memory
        self._qdrant = qdrant
        self._collection = collection

    @classmethod
    async def open(
        cls, *, qdrant_url: str, ollama_host: str, model: str, dims: int, folder: Path, collection: str = COLLECTION
    ) -> Mem0Facts:
        """Raises `Misconfigured` when the model or its vectors are not those that the collection was made for."""
        await _reached(_probe, ollama_host, model, dims)
        qdrant = QdrantClient(url=qdrant_url, timeout=int(WITHIN_S), check_compatibility=False)
        try:
            await _reached(_make, qdrant, collection, model, dims)
            memory = await _reached(_mem0, qdrant, collection, ollama_host, model, dims, folder, within=60.0)
        except BaseException:
            qdrant.close()
            raise
        return cls(memory, qdrant, collection)

    async def close(self) -> None:
        await asyncio.to_thread(self._memory.close)  # its history, and nothing else
        self._memory.embedding_model.client.close()
        self._qdrant.close()

    # ── writing ───────────────────────────────────────────────────────────────────────────────────────────────────

    async def add(self, grant: Grant, text: str, *, told_at: datetime, message_id: str) -> Fact:
        told = told_at.astimezone(UTC).isoformat()
        kept = {"told_at": told, "valid_from": told, "message_id": message_id, "state": LIVE}
        stored = await _reached(self._memory.add, text, user_id=_person(grant), metadata=kept, infer=False)
        results = stored.get("results") or []
        if len(results) != 1:
            raise Unavailable(detail=f"mem0 stored {len(results)} facts for one")
        return Fact(str(results[0]["id"]), text, told_at, message_id)

    async def supersede(self, grant: Grant, fact_id: str, *, by: str, at: datetime) -> None:
        """Not mem0's `update`, which looks for no person, embeds again, and makes an old fact young."""
        only = self._one(grant, fact_id)
        found = await _reached(self._qdrant.count, self._collection, count_filter=only, exact=True)
        if found.count != 1:
            raise NotFound("I don't remember that.", detail="no such fact of this person")
        ended = {"state": SUPERSEDED, "valid_to": at.astimezone(UTC).isoformat(), "superseded_by": by}
        await _reached(self._qdrant.set_payload, self._collection, ended, points=only, wait=True)

    async def erase(self, grant: Grant, fact_ids: Sequence[str] | None = None) -> None:
        """Not mem0's `delete`, which looks for no person and writes the text into its history once more. The history
        goes first: what breaks off in between is found again among the facts."""
        which = self._of(grant) if fact_ids is None else self._these(grant, fact_ids)
        found = await _reached(self._ids, which)
        if found:
            await _reached(_forget_history, Path(self._memory.db.db_path), found)
            await _reached(self._qdrant.delete, self._collection, models.FilterSelector(filter=which), wait=True)

    def _ids(self, which: models.Filter) -> list[str]:
        ids: list[str] = []
        offset: Any = None
        while True:
            points, offset = self._qdrant.scroll(
                self._collection, which, limit=LISTED, offset=offset, with_payload=False, with_vectors=False
            )
            ids += [str(point.id) for point in points]
            if offset is None:
                return ids

    # ── reading ───────────────────────────────────────────────────────────────────────────────────────────────────

    async def nearest(self, grant: Grant, about: str, *, limit: int) -> list[Fact]:
        if not about.strip() or limit < 1:
            return []
        filters = {"user_id": _person(grant), "state": LIVE}
        found = await _reached(self._memory.search, about, filters=filters, top_k=limit, threshold=0.0, explain=True)
        return self._facts(grant, found)

    async def all(self, grant: Grant, *, superseded: bool = False) -> list[Fact]:
        return await self._listed(grant, {} if superseded else {"state": LIVE})

    async def told_in(self, grant: Grant, message_id: str) -> list[Fact]:
        if not message_id or message_id == "*":  # mem0 would take the star for every message
            return []
        return await self._listed(grant, {"message_id": message_id})

    async def _listed(self, grant: Grant, where: Mapping[str, str]) -> list[Fact]:
        filters = {"user_id": _person(grant), **where}
        found = await _reached(self._memory.get_all, filters=filters, top_k=MOST)
        return sorted(self._facts(grant, found), key=lambda fact: fact.told_at)

    def _facts(self, grant: Grant, found: Mapping[str, Any]) -> list[Fact]:
        """Whatever mem0 made of the filter, nothing of another person leaves here."""
        results = found.get("results") or []
        person = _person(grant)
        if any(result.get("user_id") != person for result in results):
            log.critical("! memory=foreign client=%s", pseudonym(person))
            raise Crashed(detail="mem0 returned another person's fact")
        return [_fact(result) for result in results]

    def _one(self, grant: Grant, fact_id: str) -> models.Filter:
        return self._these(grant, [fact_id])

    def _these(self, grant: Grant, fact_ids: Sequence[str]) -> models.Filter:
        try:
            known = [str(uuid.UUID(fact_id)) for fact_id in fact_ids]
        except ValueError as error:
            raise NotFound("I don't remember that.", detail="not a fact's id") from error
        return models.Filter(must=[models.HasIdCondition(has_id=list(known)), self._of(grant)])

    def _of(self, grant: Grant) -> models.Filter:
        owner = models.FieldCondition(key="user_id", match=models.MatchValue(value=_person(grant)))
        return models.Filter(must=[owner])


def _person(grant: Grant) -> str:
    """The only place where mem0's `user_id` comes from. mem0 reads a star as everyone, and a list as several."""
    if not isinstance(grant.client, str) or not IDENTITY.fullmatch(grant.client):
        raise ValueError("memory was asked on behalf of nobody")
    return grant.client


def _fact(result: Mapping[str, Any]) -> Fact:
    kept = result.get("metadata") or {}
    told_at = datetime.fromisoformat(kept.get("told_at") or result["created_at"])
    details = result.get("score_details") or {}
    return Fact(
        fact_id=str(result["id"]),
        text=result["memory"],
        told_at=told_at,
        message_id=kept.get("message_id", ""),
        similarity=float(details.get("semantic_score", 1.0)),
        superseded_by=kept.get("superseded_by", ""),
    )


def _forget_history(file: Path, fact_ids: Sequence[str]) -> None:
    """mem0 keeps each text in its history as well. VACUUM writes the file anew, so that no free page keeps one."""
    with closing(sqlite3.connect(file, timeout=WITHIN_S)) as database:
        database.execute("PRAGMA secure_delete = ON")
        database.execute("PRAGMA temp_store = MEMORY")
        with database:
            database.executemany("DELETE FROM history WHERE memory_id = ?", [(each,) for each in fact_ids])
        database.execute("VACUUM")


# ── opening ───────────────────────────────────────────────────────────────────────────────────────────────────────


def _probe(host: str, model: str, dims: int) -> None:
    """Before mem0, which would pull a missing model without a word, and never looks at the size."""
    try:
        with ollama.Client(host=host, timeout=httpx.Timeout(WITHIN_S, connect=5)) as client:
            (vector,) = client.embed(model=model, input=["probe"]).embeddings
    except ollama.ResponseError as error:
        if error.status_code == 404:
            raise Misconfigured(
                f"The model server has no model {model}: pull it, or set embedding_model (EMBEDDING_MODEL)."
            ) from error
        raise
    if len(vector) != dims:
        raise Misconfigured(
            f"Setting embedding_dims (EMBEDDING_DIMS) is {dims}, but {model} makes vectors of {len(vector)} numbers: "
            f"set it to {len(vector)}."
        )


def _make(qdrant: QdrantClient, collection: str, model: str, dims: int) -> None:
    """As mem0 would make it, but without losing a race to another process, and with the model's name."""
    if not qdrant.collection_exists(collection):
        try:
            qdrant.create_collection(
                collection,
                vectors_config=models.VectorParams(size=dims, distance=models.Distance.COSINE),
                sparse_vectors_config={"bm25": models.SparseVectorParams(modifier=models.Modifier.IDF)},
                metadata={"embedding_model": model, "embedding_dims": dims, "schema": SCHEMA},
            )
        except UnexpectedResponse:
            if not qdrant.collection_exists(collection):
                raise
    kept = qdrant.get_collection(collection)
    _check(kept, collection, model, dims)
    if "schema" not in (kept.config.metadata or {}):
        qdrant.update_collection(collection, metadata={"schema": SCHEMA})
    for field in ("user_id", "state", "message_id"):
        qdrant.create_payload_index(collection, field, models.PayloadSchemaType.KEYWORD)


def _check(found: models.CollectionInfo, collection: str, model: str, dims: int) -> None:
    vectors = found.config.params.vectors
    size = vectors.size if isinstance(vectors, models.VectorParams) else None
    kept = found.config.metadata or {}
    check(f"The Qdrant collection {collection!r}", kept.get("schema", SCHEMA), SCHEMA)
    made_for = kept.get("embedding_model", model)
    if size != dims or made_for != model:
        raise Misconfigured(
            f"The Qdrant collection {collection!r} holds memories embedded by {made_for} ({size} dimensions), but the "
            f"settings name {model} ({dims}). Set embedding_model and embedding_dims back: memories of two models "
            "can't be compared."
        )


def _mem0(qdrant: QdrantClient, collection: str, host: str, model: str, dims: int, folder: Path) -> Any:
    memory_class = _imported(folder)
    take_over_history(folder / HISTORY)
    memory = memory_class.from_config(
        {
            "vector_store": {
                "provider": "qdrant",
                "config": {"collection_name": collection, "embedding_model_dims": dims, "client": qdrant},
            },
            "embedder": {
                "provider": "ollama",
                "config": {"model": model, "ollama_base_url": host, "embedding_dims": dims},
            },
            # mem0 wants one; with infer=False it is never called, and its constructor reaches for nothing
            "llm": {"provider": "ollama", "config": {"model": "none", "ollama_base_url": host}},
            "history_db_path": str(folder / HISTORY),
        }
    )
    memory.embedding_model.client.close()
    memory.llm.client.close()
    memory.embedding_model.client = ollama.Client(host=host, timeout=httpx.Timeout(WITHIN_S, connect=5))
    memory.vector_store._has_bm25_slot = False  # else fastembed, where it is installed, goes for a model
    return memory


def take_over_collection(url: str, model: str, dims: int, collection: str = COLLECTION) -> None:
    """Gives the memories of an earlier release their version, where there are any."""
    qdrant = QdrantClient(url=url, timeout=int(WITHIN_S), check_compatibility=False)
    try:
        if qdrant.collection_exists(collection):
            _make(qdrant, collection, model, dims)
    except (ResponseHandlingException, UnexpectedResponse) as error:
        raise Unavailable(detail=f"memory: qdrant {type(error).__name__}") from error
    finally:
        qdrant.close()


def take_over_history(file: Path) -> None:
    """mem0 gives its history no version."""
    with closing(sqlite3.connect(file, timeout=WITHIN_S)) as database:
        (version,) = database.execute("PRAGMA user_version").fetchone()
        check("mem0's history", version or SCHEMA, SCHEMA)
        if version != SCHEMA:
            database.execute(f"PRAGMA user_version = {SCHEMA}")


def _imported(folder: Path) -> Any:
    """mem0 reads these once, at its import."""
    folder.mkdir(parents=True, exist_ok=True)
    os.environ["MEM0_TELEMETRY"] = "False"
    os.environ["MEM0_DIR"] = str(folder / "mem0")
    from mem0 import Memory
    from mem0.memory import telemetry
    from mem0.utils import spacy_models

    if telemetry.MEM0_TELEMETRY:
        raise Misconfigured("mem0 was imported before its telemetry was switched off: set MEM0_TELEMETRY=False.")
    spacy_models._load_failed_full = spacy_models._load_failed_lemma = True  # else spaCy downloads a model
    logging.getLogger("mem0").setLevel(logging.WARNING)  # below that it logs what people said
    return Memory


async def _reached(call: Callable[..., _T], *args: Any, within: float = WITHIN_S, **named: Any) -> _T:
    """mem0 is synchronous. A thread that is too late is left to its clients' own time limits."""
    what = getattr(call, "__name__", "call")
    try:
        async with asyncio.timeout(within):
            return await asyncio.to_thread(call, *args, **named)
    except TimeoutError as error:
        raise Unavailable(detail=f"memory: {what}: no answer in {within:g} s") from error
    except UnexpectedResponse as error:
        raise Unavailable(detail=f"memory: {what}: qdrant status {error.status_code}") from error
    except ResponseHandlingException as error:
        raise Unavailable(detail=f"memory: {what}: qdrant {type(error.source).__name__}") from error
    except ollama.ResponseError as error:
        raise Unavailable(detail=f"memory: {what}: models status {error.status_code}") from error
    except (httpx.HTTPError, ConnectionError, sqlite3.Error) as error:
        raise Unavailable(detail=f"memory: {what}: {type(error).__name__}") from error
