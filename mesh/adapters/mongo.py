"""Clients, tiers and agents in MongoDB, with an audit row for every change. What can't be read as it was meant grants
nothing: a malformed document denies, and a log line says which one."""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from typing import Any

from pymongo import AsyncMongoClient, ReturnDocument, WriteConcern
from pymongo.asynchronous.collection import AsyncCollection
from pymongo.errors import ConfigurationError, DuplicateKeyError, InvalidURI, OperationFailure, PyMongoError

from mesh.envelope import pseudonym
from mesh.errors import Malformed, Misconfigured, NotFound, Unavailable
from mesh.ports import Client, Tier
from mesh.settings import IDENTITY

log = logging.getLogger(__name__)

TIMEOUT_MS = 5_000
"""For finding a server, and for one operation with all its retries."""

_Document = dict[str, Any]


class MongoRoster:
    """The directory and the roster. Names and identities are the documents' `_id`, so that there is one of each."""

    def __init__(self, client: AsyncMongoClient[_Document], database: str) -> None:
        self._client = client
        self._database = client.get_database(
            database, write_concern=WriteConcern(w="majority", j=True, wtimeout=TIMEOUT_MS)
        )

    @classmethod
    async def open(cls, uri: str, database: str) -> MongoRoster:
        """Raises `Misconfigured` for an address that is none, `Unavailable` when nothing answers there."""
        try:
            client: AsyncMongoClient[_Document] = AsyncMongoClient(
                uri, serverSelectionTimeoutMS=TIMEOUT_MS, timeoutMS=TIMEOUT_MS, appname="adiyan", tz_aware=True
            )
        except (InvalidURI, ConfigurationError, ValueError) as error:
            raise Misconfigured(f"Setting mongodb_uri (MONGODB_URI) is not a MongoDB address: {error}") from error
        roster = cls(client, database)
        try:
            async with _reaching("ping"):
                await client.admin.command("ping")
        except BaseException:
            await client.close()
            raise
        return roster

    async def close(self) -> None:
        await self._client.close()

    # ── reading ───────────────────────────────────────────────────────────────────────────────────────────────────

    async def client(self, identity: str) -> Client | None:
        async with _reaching("client"):
            found = await self._clients.find_one({"_id": identity})
        return None if found is None else _client(found)

    async def tier(self, name: str) -> Tier | None:
        async with _reaching("tier"):
            found = await self._tiers.find_one({"_id": name})
        return None if found is None else _tier(found)

    async def clients(self) -> list[Client]:
        async with _reaching("clients"):
            return [_client(found) async for found in self._clients.find().sort("_id")]

    async def tiers(self) -> list[Tier]:
        async with _reaching("tiers"):
            return [_tier(found) async for found in self._tiers.find().sort("_id")]

    async def agents(self) -> list[dict[str, object]]:
        """By name."""
        async with _reaching("agents"):
            found = [entry async for entry in self._agents.find().sort("_id")]
        return [{key: value for key, value in entry.items() if key != "_id"} for entry in found]

    # ── changing ──────────────────────────────────────────────────────────────────────────────────────────────────

    async def register(self, client: Client, *, by: str = "command line") -> Client | None:
        if not IDENTITY.fullmatch(client.identity):
            raise Malformed(
                f"{client.identity!r} is not an identity: write a number with its country code, such as +15551230001, "
                "or whatsapp: and an id."
            )
        if await self.tier(client.tier) is None:
            names = ", ".join(tier.name for tier in await self.tiers()) or "none yet"
            raise NotFound(f"There is no tier called {client.tier!r}. There are: {names}.")
        after = {"name": client.name, "tier": client.tier, "blocked": client.blocked}
        async with _reaching("register"):
            before = await self._clients.find_one_and_replace(
                {"_id": client.identity}, after, upsert=True, return_document=ReturnDocument.BEFORE
            )
            if before is None or _without_id(before) != after:
                await self._note(by, "clients", client.identity, before, after)
        return None if before is None else _client(before)

    async def seed(self, tiers: Sequence[Tier], agents: Sequence[dict[str, object]], *, by: str = "config") -> None:
        for tier in tiers:
            entry = {"permissions": sorted(tier.permissions), "refusal": tier.refusal}
            await self._add_missing(self._tiers, tier.name, entry, by)
        for agent in agents:
            await self._add_missing(self._agents, str(agent["name"]), dict(agent), by)

    async def _add_missing(self, where: AsyncCollection[_Document], name: str, entry: _Document, by: str) -> None:
        async with _reaching("seed"):
            try:
                done = await where.update_one({"_id": name}, {"$setOnInsert": entry}, upsert=True)
            except DuplicateKeyError:  # another process added it between our look and our insert
                return
            if done.upserted_id is not None:
                await self._note(by, where.name, name, None, entry)

    async def _note(
        self, who: str, where: str, name: str, before: Mapping[str, Any] | None, after: Mapping[str, Any]
    ) -> None:
        await self._database["audit"].insert_one(
            {
                "when": datetime.now(UTC),
                "who": who,
                "what": {"in": where, "name": name},
                "before": None if before is None else _without_id(before),
                "after": dict(after),
            }
        )

    @property
    def _clients(self) -> AsyncCollection[_Document]:
        return self._database["clients"]

    @property
    def _tiers(self) -> AsyncCollection[_Document]:
        return self._database["tiers"]

    @property
    def _agents(self) -> AsyncCollection[_Document]:
        return self._database["agents"]


@asynccontextmanager
async def _reaching(what: str) -> AsyncIterator[None]:
    try:
        yield
    except OperationFailure as error:
        raise Unavailable(detail=f"mongodb: {what}: code {error.code}") from error
    except PyMongoError as error:
        raise Unavailable(detail=f"mongodb: {what}: {type(error).__name__}") from error


def _without_id(found: Mapping[str, Any]) -> _Document:
    return {key: value for key, value in found.items() if key != "_id"}


def _client(found: Mapping[str, Any]) -> Client:
    """A client that can't be read is blocked: it must not fall back to the tier of strangers either."""
    identity, name, tier = found.get("_id"), found.get("name", ""), found.get("tier")
    blocked = found.get("blocked", False)
    if isinstance(identity, str) and isinstance(name, str) and isinstance(tier, str) and isinstance(blocked, bool):
        return Client(identity, name, tier, blocked)
    log.error("! directory=malformed in=clients client=%s", pseudonym(str(identity)))
    return Client(str(identity), name if isinstance(name, str) else "", "", blocked=True)


def _tier(found: Mapping[str, Any]) -> Tier:
    name, permissions, refusal = found.get("_id"), found.get("permissions"), found.get("refusal", "")
    if not (isinstance(permissions, list) and all(isinstance(each, str) for each in permissions)):
        log.error("! directory=malformed in=tiers tier=%s field=permissions", name)
        permissions = []
    return Tier(str(name), frozenset(permissions), refusal if isinstance(refusal, str) else "")
