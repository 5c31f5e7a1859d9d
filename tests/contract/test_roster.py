"""The roster against a real server of MongoDB's protocol, and what a broken document does: it denies."""

from __future__ import annotations

import asyncio
import gc
import logging
import os
import subprocess
import time
import uuid
from collections.abc import AsyncIterator, Iterator
from typing import Any

import pytest
from pymongo import AsyncMongoClient, MongoClient
from pymongo.errors import PyMongoError

from mesh.access import Gate
from mesh.adapters.mongo import MongoRoster
from mesh.embedded import parts
from mesh.errors import Denied, Malformed, Misconfigured, NotFound, Unavailable
from mesh.ports.people import Client, Tier
from tests.people import ASHA, BEN, OWNER
from tests.processes import free_port

GOLD = Tier("gold", frozenset({"chat:converse", "knowledge:search"}))
STRANGER = Tier("stranger", frozenset(), refusal="Please register first.")
# pymongo's monitor leaves a socket to the collector when its client is closed while it connects
pytestmark = pytest.mark.filterwarnings("ignore:Exception ignored in. <socket:pytest.PytestUnraisableExceptionWarning")
AGENTS: list[dict[str, object]] = [{"name": "memory", "module": "agents.memory", "copies": 1}]


@pytest.fixture(scope="module")
def uri(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    if configured := os.environ.get("MONGODB_URI"):
        yield configured
        return
    folder, port = tmp_path_factory.mktemp("mongodb"), free_port()
    with (folder / "log").open("wb") as out:
        process = subprocess.Popen(parts.mongodb(port, folder / "data").command, stdout=out, stderr=out)
    try:
        address = f"mongodb://127.0.0.1:{port}/?directConnection=true"
        _wait(address, process)
        yield address
    finally:
        process.kill()
        process.wait()
        gc.collect()  # here, where the warning is expected


def _wait(address: str, process: subprocess.Popen[bytes]) -> None:
    until = time.monotonic() + 30
    with MongoClient[dict[str, object]](address, serverSelectionTimeoutMS=500) as client:
        while True:
            try:
                client.admin.command("ping")
                return
            except PyMongoError:
                if time.monotonic() > until or process.poll() is not None:
                    raise


@pytest.fixture
def database() -> str:
    return f"adiyan_test_{uuid.uuid4().hex[:12]}"


@pytest.fixture
async def roster(uri: str, database: str) -> AsyncIterator[MongoRoster]:
    opened = await MongoRoster.open(uri, database)
    await opened.seed([GOLD, STRANGER], AGENTS)
    yield opened
    await opened._client.drop_database(database)
    await opened.close()


@pytest.fixture
async def raw(uri: str, database: str) -> AsyncIterator[AsyncMongoClient[dict[str, object]]]:
    async with AsyncMongoClient[dict[str, object]](uri) as client:
        yield client


async def test_a_client_is_registered_and_found_again(roster: MongoRoster) -> None:
    assert await roster.client(ASHA) is None
    assert await roster.register(Client(ASHA, "Asha", "gold")) is None
    assert await roster.client(ASHA) == Client(ASHA, "Asha", "gold")
    assert await roster.register(Client(ASHA, "Asha", "stranger", blocked=True)) == Client(ASHA, "Asha", "gold")
    assert await roster.clients() == [Client(ASHA, "Asha", "stranger", blocked=True)]


async def test_an_unknown_tier_is_refused_and_those_that_exist_are_named(roster: MongoRoster) -> None:
    with pytest.raises(NotFound, match=r"'platinum'.*gold, stranger"):
        await roster.register(Client(ASHA, "Asha", "platinum"))
    assert await roster.clients() == []


@pytest.mark.parametrize("identity", ["", "*", "15551230001", "+0123456789", "asha", "whatsapp:a", "+1555 123"])
async def test_what_is_no_identity_is_not_registered(roster: MongoRoster, identity: str) -> None:
    with pytest.raises(Malformed, match="country code"):
        await roster.register(Client(identity, "Asha", "gold"))


async def test_seeding_again_keeps_what_the_owner_changed_since(
    roster: MongoRoster, raw: AsyncMongoClient[dict[str, object]], database: str
) -> None:
    await raw[database]["tiers"].update_one({"_id": "gold"}, {"$set": {"permissions": ["chat:converse"]}})
    await roster.seed([GOLD, STRANGER, Tier("new", frozenset({"a:b"}))], AGENTS)
    assert await roster.tier("gold") == Tier("gold", frozenset({"chat:converse"}))
    assert [tier.name for tier in await roster.tiers()] == ["gold", "new", "stranger"]
    assert await roster.agents() == AGENTS


async def test_what_the_owner_deleted_is_not_brought_back_by_seeding(
    roster: MongoRoster, raw: AsyncMongoClient[dict[str, object]], database: str
) -> None:
    await roster.seed([], [{"name": "guide", "module": "agents.guide", "copies": 2}])
    await raw[database]["tiers"].delete_one({"_id": "gold"})
    await raw[database]["agents"].delete_one({"_id": "memory"})
    await roster.seed([GOLD, STRANGER], AGENTS)
    assert await roster.tier("gold") is None
    assert [agent["name"] for agent in await roster.agents()] == ["guide"]
    await roster.seed([GOLD], AGENTS, again=True)
    assert await roster.tier("gold") == GOLD
    assert [agent["name"] for agent in await roster.agents()] == ["guide", "memory"]


async def test_an_emptied_collection_is_seeded_anew(
    roster: MongoRoster, raw: AsyncMongoClient[dict[str, object]], database: str
) -> None:
    await raw[database]["tiers"].delete_many({})
    await roster.seed([GOLD, STRANGER], AGENTS)
    assert await roster.tiers() == [GOLD, STRANGER]


async def test_a_permission_is_granted_and_revoked_once_with_an_audit_row_each(
    roster: MongoRoster, raw: AsyncMongoClient[dict[str, object]], database: str
) -> None:
    assert await roster.grant("gold", ["documents:add", "chat:converse"]) == GOLD
    await roster.grant("gold", ["documents:add"])
    assert (await roster.revoke("gold", ["chat:converse", "never:had"])).permissions == GOLD.permissions | {
        "documents:add"
    }
    assert await roster.tier("gold") == Tier("gold", frozenset({"documents:add", "knowledge:search"}))
    rows: list[dict[str, Any]] = [
        row async for row in raw[database]["audit"].find({"what.name": "gold", "who": "command line"})
    ]
    assert [row["after"]["permissions"] for row in rows] == [
        ["chat:converse", "documents:add", "knowledge:search"],
        ["documents:add", "knowledge:search"],
    ]


async def test_permissions_that_are_no_list_are_told_instead_of_replaced(
    roster: MongoRoster, raw: AsyncMongoClient[dict[str, object]], database: str
) -> None:
    await raw[database]["tiers"].update_one({"_id": "gold"}, {"$set": {"permissions": "chat:converse"}})
    with pytest.raises(Misconfigured, match="gold: permissions is no list"):
        await roster.grant("gold", ["chat:converse"])
    with pytest.raises(NotFound, match="platinum"):
        await roster.grant("platinum", ["chat:converse"])


async def test_an_agent_is_scaled_under_its_name_wherever_that_is_written(
    roster: MongoRoster, raw: AsyncMongoClient[dict[str, object]], database: str
) -> None:
    await raw[database]["agents"].insert_many(
        [{"_id": "guide", "module": "m", "copies": 1}, {"name": "weather", "module": "m", "copies": 1}]
    )
    for name in ("guide", "memory", "weather"):
        assert (await roster.scale(name, 3))["copies"] == 1
    assert [(each["name"], each["copies"]) for each in await roster.agents()] == [
        ("guide", 3),
        ("memory", 3),
        ("weather", 3),
    ]
    assert await raw[database]["audit"].count_documents({"what.in": "agents", "who": "command line"}) == 3
    with pytest.raises(NotFound, match="astrologer"):
        await roster.scale("astrologer", 1)


async def test_ten_processes_that_seed_at_once_make_one_of_each(uri: str, roster: MongoRoster) -> None:
    more = [Tier(f"t{number}", frozenset({"a:b"})) for number in range(5)]
    await asyncio.gather(*(roster.seed(more, []) for _ in range(10)))
    assert len(await roster.tiers()) == 7


async def test_every_change_leaves_who_and_what_before_and_after(
    roster: MongoRoster, raw: AsyncMongoClient[dict[str, object]], database: str
) -> None:
    await roster.register(Client(ASHA, "Asha", "gold"))
    await roster.register(Client(ASHA, "Asha", "stranger"), by=OWNER)
    await roster.register(Client(ASHA, "Asha", "stranger"), by=OWNER)  # no change, no row
    rows = [row async for row in raw[database]["audit"].find({"what.in": "clients"}).sort("when")]
    assert [(row["who"], row["before"], row["after"]) for row in rows] == [
        ("command line", None, _row("gold")),
        (OWNER, _row("gold"), _row("stranger")),
    ]
    assert await raw[database]["audit"].count_documents({"who": "config"}) == 3


@pytest.mark.parametrize(
    "permissions",
    [None, "chat:converse", {"chat:converse": True}, 7, ["chat:converse", 7], [["chat:converse"]], True],
)
async def test_malformed_permissions_grant_nothing(
    roster: MongoRoster,
    raw: AsyncMongoClient[dict[str, object]],
    database: str,
    permissions: object,
    caplog: pytest.LogCaptureFixture,
) -> None:
    await roster.register(Client(ASHA, "Asha", "gold"))
    await raw[database]["tiers"].replace_one({"_id": "gold"}, {"permissions": permissions})
    with caplog.at_level(logging.ERROR):
        assert await roster.tier("gold") == Tier("gold", frozenset())
    assert "malformed in=tiers tier=gold" in caplog.text
    with pytest.raises(Denied):
        await _gate(roster).admit(ASHA, "chat:converse")


@pytest.mark.parametrize(
    "document",
    [
        {},
        {"name": "Asha"},
        {"name": "Asha", "tier": ["gold"]},
        {"name": 7, "tier": "gold"},
        {"name": "Asha", "tier": "gold", "blocked": "yes"},
        {"name": "Asha", "tier": None, "blocked": False},
    ],
)
async def test_a_malformed_client_is_let_in_nowhere(
    roster: MongoRoster, raw: AsyncMongoClient[dict[str, object]], database: str, document: dict[str, object]
) -> None:
    await raw[database]["clients"].insert_one({"_id": ASHA, **document})
    await raw[database]["tiers"].insert_one({"_id": "", "permissions": ["chat:converse"]})
    with pytest.raises(Denied):
        await _gate(roster, unknown_tier="gold").admit(ASHA, "chat:converse")
    assert len(await roster.clients()) == 1


async def test_a_tier_without_a_refusal_or_with_a_wrong_one_still_reads(
    roster: MongoRoster, raw: AsyncMongoClient[dict[str, object]], database: str
) -> None:
    await raw[database]["tiers"].insert_many(
        [{"_id": "a", "permissions": ["a:b"]}, {"_id": "b", "permissions": ["a:b"], "refusal": 7}]
    )
    assert await roster.tier("a") == Tier("a", frozenset({"a:b"}))
    assert await roster.tier("b") == Tier("b", frozenset({"a:b"}))


async def test_an_operator_in_place_of_a_name_finds_nobody(roster: MongoRoster) -> None:
    await roster.register(Client(BEN, "Ben", "gold"))
    assert await roster.client('{"$ne": null}') is None


async def test_what_is_cancelled_ends_wherever_it_is(roster: MongoRoster) -> None:
    """Else Ctrl-C would meet the end of an exchange now and then, and be forgotten."""

    async def look_for_ever() -> None:
        while True:
            await roster.agents()

    for number in range(400):
        task = asyncio.create_task(look_for_ever())
        await asyncio.sleep(number % 40 / 10_000)
        task.cancel()
        done, _ = await asyncio.wait({task}, timeout=2)
        assert done, f"lost at try {number}"


async def test_a_server_that_is_gone_is_unavailable_and_lets_nobody_in(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("mesh.adapters.mongo.TIMEOUT_MS", 300)
    with pytest.raises(Unavailable):
        await MongoRoster.open(f"mongodb://127.0.0.1:{free_port()}/?directConnection=true", "adiyan")


async def test_an_address_that_is_none_is_named_as_the_setting(database: str) -> None:
    with pytest.raises(Misconfigured, match="MONGODB_URI"):
        await MongoRoster.open("mongodb://[not an address", database)


def _row(tier: str) -> dict[str, object]:
    return {"name": "Asha", "tier": tier, "blocked": False}


def _gate(roster: MongoRoster, unknown_tier: str = "stranger") -> Gate:
    return Gate(roster, system_owner=OWNER, unknown_tier=unknown_tier, fresh_for=0)
