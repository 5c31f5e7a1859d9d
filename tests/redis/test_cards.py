"""What the orchestrator may ask for: what is announced in a real Redis, of agents that a real MongoDB has."""

from __future__ import annotations

import time
import uuid
from collections.abc import AsyncIterator, Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from pymongo import AsyncMongoClient
from pymongo.asynchronous.collection import AsyncCollection
from redis.asyncio import Redis

from mesh.adapters.mongo import MongoRoster
from mesh.cards import KEY, Cards, announce
from mesh.connections import answer, connect
from mesh.contracts.answers import Answer, Ask
from mesh.contracts.memory import RECALL
from mesh.errors import Unavailable
from mesh.skills import Card, Skill
from tests.redis.stage import until
from tests.stores import QUIET, mongodb

pytestmark = QUIET

WITHIN_S = 2.0


def skill(name: str) -> Skill[Ask, Answer]:
    card = Card(summary=f"Does {name}.", examples=("Please do.",))
    return Skill(name=name, takes=Ask, returns=Answer, needs="a:b", within=timedelta(seconds=5), card=card)


TELL, SING, GUIDE = skill("memory.tell"), skill("memory.sing"), skill("guide.lead")
ENTRIES = [{"_id": name, "name": name, "module": f"agents.{name}", "copies": 1} for name in ("guide", "memory")]


@pytest.fixture(scope="module")
def uri(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with mongodb(tmp_path_factory.mktemp("mongodb")) as address:
        yield address


@pytest.fixture
async def agents(uri: str) -> AsyncIterator[AsyncCollection[dict[str, Any]]]:
    """The collection, as a shell of MongoDB would change it."""
    async with AsyncMongoClient[dict[str, Any]](uri) as client:
        database = client[f"adiyan_test_{uuid.uuid4().hex[:12]}"]
        await database["agents"].insert_many(ENTRIES)
        yield database["agents"]
        await client.drop_database(database)


@pytest.fixture
async def roster(uri: str, agents: AsyncCollection[dict[str, Any]]) -> AsyncIterator[MongoRoster]:
    opened = await MongoRoster.open(uri, agents.database.name)
    yield opened
    await opened.close()


@pytest.fixture
async def redis(redis_url: str) -> AsyncIterator[Redis]:
    client = connect(redis_url)
    await announce(client, [TELL])
    await announce(client, [GUIDE])
    yield client
    await client.aclose()


@pytest.fixture
def cards(redis: Redis, roster: MongoRoster) -> Cards:
    return Cards(redis, roster.agents)


async def names(cards: Cards) -> list[str]:
    return [each.skill.name for each in await cards.current()]


async def are(cards: Cards, *wanted: str) -> float:
    """How long it took, in seconds, until these were the current ones."""
    began = time.monotonic()

    async def reached() -> bool:
        return await names(cards) == list(wanted)

    await until(reached)
    return time.monotonic() - began


async def test_what_configured_agents_announced_can_be_asked_for(cards: Cards) -> None:
    (lead, tell) = await cards.current()
    assert (lead.skill.name, tell.skill.name) == ("guide.lead", "memory.tell")
    assert (tell.skill.needs, tell.skill.within, tell.card) == ("a:b", TELL.within, TELL.card)


async def test_an_agent_that_is_switched_off_is_asked_for_nothing_within_two_seconds(
    cards: Cards, agents: AsyncCollection[dict[str, Any]]
) -> None:
    assert await names(cards) == ["guide.lead", "memory.tell"]
    await agents.update_one({"_id": "memory"}, {"$set": {"copies": 0}})
    assert await are(cards, "guide.lead") < WITHIN_S
    assert not await cards.serves(RECALL)
    assert [each.skill.name for each in await cards.switched_off()] == ["memory.tell"]
    await agents.update_one({"_id": "memory"}, {"$set": {"copies": 2}})
    assert await are(cards, "guide.lead", "memory.tell") < WITHIN_S
    assert await cards.serves(RECALL)


async def test_an_agent_that_is_removed_is_asked_for_nothing_though_its_cards_stay(
    cards: Cards, agents: AsyncCollection[dict[str, Any]], redis: Redis
) -> None:
    assert await names(cards) == ["guide.lead", "memory.tell"]
    await agents.delete_one({"_id": "memory"})
    assert await are(cards, "guide.lead") < WITHIN_S
    assert await answer(redis.hexists(KEY, "memory.tell"))
    assert await cards.switched_off() == []


async def test_an_entry_that_cannot_be_read_is_asked_for_nothing_and_is_named(
    cards: Cards, agents: AsyncCollection[dict[str, Any]], caplog: pytest.LogCaptureFixture
) -> None:
    await agents.update_one({"_id": "memory"}, {"$set": {"copies": "many"}})
    assert await names(cards) == ["guide.lead"]
    assert "agent=memory" in caplog.text
    assert "copies" in caplog.text


async def test_two_entries_of_one_name_are_a_trouble_and_no_choice(
    cards: Cards, agents: AsyncCollection[dict[str, Any]]
) -> None:
    await agents.insert_one({"name": "memory", "module": "agents.memory", "copies": 1})
    assert await names(cards) == ["guide.lead"]


async def test_mongodb_is_asked_once_a_second_at_most(redis: Redis, roster: MongoRoster) -> None:
    looked = 0

    async def counting() -> list[dict[str, object]]:
        nonlocal looked
        looked += 1
        return await roster.agents()

    cards = Cards(redis, counting)
    began = time.monotonic()
    while time.monotonic() - began < 0.5:
        await cards.current()
        await cards.serves(RECALL)
    assert looked == 1


async def test_without_mongodb_nothing_can_be_asked_for(
    redis: Redis, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("mesh.adapters.mongo.TIMEOUT_MS", 300)
    with mongodb(tmp_path) as address:
        roster = await MongoRoster.open(address, "adiyan")
        await roster.seed([], [{"name": "memory", "module": "agents.memory", "copies": 1}])
        cards = Cards(redis, roster.agents)
        assert await names(cards) == ["memory.tell"]

    async def away() -> bool:
        try:
            await cards.current()
        except Unavailable:
            return True
        return False

    await until(away)
    with pytest.raises(Unavailable):
        await cards.serves(RECALL)
    await roster.close()


async def test_what_an_agent_announces_takes_the_place_of_what_it_announced_before(cards: Cards, redis: Redis) -> None:
    await announce(redis, [SING])
    assert await names(cards) == ["guide.lead", "memory.sing"]


async def test_a_card_that_cannot_be_read_does_not_take_the_others_along(cards: Cards, redis: Redis) -> None:
    await answer(redis.hset(KEY, "memory.odd", '{"from": "another version"}'))
    assert await names(cards) == ["guide.lead", "memory.tell"]
