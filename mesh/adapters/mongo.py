"""Clients, tiers and agents in MongoDB, with an audit row for every change. What can't be read as it was meant grants
nothing: a malformed document denies, and a log line says which one."""

from __future__ import annotations

import asyncio
import contextlib
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
from mesh.ports.people import Client, Tier
from mesh.settings import IDENTITY
from mesh.versions import check

log = logging.getLogger(__name__)

TIMEOUT_MS = 5_000
"""For finding a server, and for one operation with all its retries."""

SCHEMA = 1
_SCHEMA = {"_id": "schema"}

_Document = dict[str, Any]


class MongoRoster:
    """The directory and the roster. Names and identities are the documents' `_id`, so that there is one of each."""

    def __init__(self, client: AsyncMongoClient[_Document], database: str) -> None:
        self._client = client
        self._database = client.get_database(
            database, write_concern=WriteConcern(w="majority", j=True, wtimeout=TIMEOUT_MS)
        )

    @classmethod
    async def open(cls, uri: str, database: str, *, take_over: bool = True) -> MongoRoster:
        """Raises `Misconfigured` for an address that is none and for what a newer version wrote, `Unavailable` when
        nothing answers there."""
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
            if take_over:
                await roster._take_over()
        except BaseException:
            await client.close()
            raise
        return roster

    async def close(self) -> None:
        await self._client.close()

    async def version(self) -> object:
        """None where none is written."""
        async with _reaching("version"):
            found = await self._database["mesh"].find_one(_SCHEMA)
        return None if found is None else found.get("version")

    async def _take_over(self) -> None:
        """Without a version it is new, or of the first one."""
        if (found := await self.version()) is None:
            async with _reaching("version"):
                with contextlib.suppress(DuplicateKeyError):  # another process was first
                    await self._database["mesh"].update_one(_SCHEMA, {"$setOnInsert": {"version": SCHEMA}}, upsert=True)
            found = await self.version()
        check(f"The database {self._database.name!r} in MongoDB", found, SCHEMA)

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
        """By name, which is the `_id` of an entry that does not say it."""
        async with _reaching("agents"):
            found = [{"name": entry["_id"], **_without_id(entry)} async for entry in self._agents.find()]
        return sorted(found, key=lambda entry: str(entry["name"]))

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

    async def grant(self, tier: str, permissions: Sequence[str], *, by: str = "command line") -> Tier:
        return await self._permit(tier, by, more=frozenset(permissions))

    async def revoke(self, tier: str, permissions: Sequence[str], *, by: str = "command line") -> Tier:
        return await self._permit(tier, by, less=frozenset(permissions))

    async def _permit(
        self, name: str, by: str, *, more: frozenset[str] = frozenset(), less: frozenset[str] = frozenset()
    ) -> Tier:
        change = (
            {"$addToSet": {"permissions": {"$each": sorted(more)}}} if more else {"$pullAll": {"permissions": [*less]}}
        )
        async with _reaching("permit"):
            found = await self._tiers.find_one_and_update(
                {"_id": name, "permissions": {"$type": "array"}}, change, return_document=ReturnDocument.BEFORE
            )
            if found is None and await self._tiers.find_one({"_id": name}):
                raise Misconfigured(f"MongoDB, tier {name}: permissions is no list; it must be one of names area:verb.")
            if found is None:
                raise NotFound(f"MongoDB has no tier called {name!r}.")
            before = _tier(found)
            after = (before.permissions | more) - less
            if after != before.permissions:
                await self._note(by, "tiers", name, found, {**_without_id(found), "permissions": sorted(after)})
        return before

    async def scale(self, agent: str, copies: int, *, by: str = "command line") -> _Document:
        named = {"$or": [{"name": agent}, {"_id": agent}]}
        async with _reaching("scale"):
            before = await self._agents.find_one_and_update(
                named, {"$set": {"copies": copies}}, return_document=ReturnDocument.BEFORE
            )
            if before is None:
                raise NotFound(f"MongoDB has no agent called {agent!r}.")
            if before.get("copies") != copies:
                await self._note(by, "agents", agent, before, {**_without_id(before), "copies": copies})
        return _without_id(before)

    async def seed(
        self,
        tiers: Sequence[Tier],
        agents: Sequence[dict[str, object]],
        *,
        again: bool = False,
        by: str = "config",
    ) -> None:
        rows = {each.name: {"permissions": sorted(each.permissions), "refusal": each.refusal} for each in tiers}
        await self._fill(self._tiers, rows, again, by)
        await self._fill(self._agents, {str(agent["name"]): dict(agent) for agent in agents}, again, by)

    async def _fill(
        self, where: AsyncCollection[_Document], entries: Mapping[str, _Document], again: bool, by: str
    ) -> None:
        async with _reaching("seed"):
            there = {str(name) async for found in where.find({}, {"name": 1}) for name in found.values()}
            missing = [name for name in entries if name not in there]
            was_there: set[str] = set()
            if there and missing and not again:
                seeded = {"who": by, "what.in": where.name, "what.name": {"$in": missing}}
                was_there = {row["what"]["name"] async for row in self._database["audit"].find(seeded)}
        for name in missing:
            if name not in was_there:
                await self._add(where, name, entries[name], by)

    async def _add(self, where: AsyncCollection[_Document], name: str, entry: _Document, by: str) -> None:
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


async def version_of(uri: str, database: str) -> object:
    """None where nothing is there, 0 where none is written."""
    roster = await MongoRoster.open(uri, database, take_over=False)
    try:
        found = await roster.version()
        return found if found is not None else 0 if await roster.tiers() else None
    finally:
        await roster.close()


@asynccontextmanager
async def _reaching(what: str) -> AsyncIterator[None]:
    """Also hands on a cancellation that meets the end of an exchange: pymongo waits with `asyncio.wait_for`, which
    before Python 3.12 loses it, and what was cancelled would go on for ever."""
    task = asyncio.current_task()
    before = task.cancelling() if task else 0
    try:
        yield
    except OperationFailure as error:
        raise Unavailable(detail=f"mongodb: {what}: code {error.code}") from error
    except PyMongoError as error:
        raise Unavailable(detail=f"mongodb: {what}: {type(error).__name__}") from error
    finally:
        if task and task.cancelling() > before:
            raise asyncio.CancelledError


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
