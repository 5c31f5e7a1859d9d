"""What is read in at this moment, for who may know it."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator

import pytest
from redis.asyncio import Redis

from mesh.access import Grant, upkeep
from mesh.connections import connect
from mesh.ingestions import FORGOTTEN_AFTER, KEY, SIGN_OF_LIFE, Ingestion, Ingestions, Progress
from tests.processes import free_port

ASHA = Grant("+15551230001", frozenset(), tier="default")
BELA = Grant("+15551230002", frozenset(), tier="default")
CANARY = "KANARIENVOGEL.pdf"


@pytest.fixture
async def redis(redis_url: str) -> AsyncIterator[Redis]:
    client = connect(redis_url)
    yield client
    await client.aclose()


async def seen(ingestions: Ingestions, grant: Grant, count: int) -> list[Ingestion]:
    async with asyncio.timeout(10):
        while len(found := await ingestions.running(grant)) != count:
            await asyncio.sleep(0.01)
    return found


async def test_an_ingestion_is_seen_while_it_runs_and_not_afterwards(redis: Redis) -> None:
    ingestions = Ingestions(redis)
    began = time.time()
    async with ingestions.noted("d1", ASHA.client, "prices.md") as report:
        (found,) = await seen(ingestions, ASHA, 1)
        assert (found.document_id, found.owner, found.name) == ("d1", ASHA.client, "prices.md")
        assert found.progress == Progress("reading")
        assert began - 1 < found.began_at < time.time() + 1
        report(Progress("embedding", 3, 40))
        async with asyncio.timeout(5):
            while (await ingestions.running(ASHA))[0].progress != Progress("embedding", 3, 40):
                await asyncio.sleep(0.01)
    assert await ingestions.running(ASHA) == []


async def test_an_ingestion_that_fails_is_not_seen_afterwards(redis: Redis) -> None:
    ingestions = Ingestions(redis)

    async def fail() -> None:
        async with ingestions.noted("d1", ASHA.client, "prices.md"):
            await seen(ingestions, ASHA, 1)
            raise ValueError("broken")

    with pytest.raises(ValueError, match="broken"):
        await fail()
    assert await ingestions.running(ASHA) == []


async def test_nobody_sees_what_another_sends_but_who_sees_all(redis: Redis) -> None:
    ingestions = Ingestions(redis)
    async with (
        ingestions.noted("d1", ASHA.client, CANARY),
        ingestions.noted("d2", BELA.client, "own.md"),
    ):
        everything = await seen(ingestions, upkeep(), 2)
        assert {each.name for each in everything} == {CANARY, "own.md"}
        assert [each.name for each in await ingestions.running(BELA)] == ["own.md"]
        with pytest.raises(ValueError, match="nobody"):
            await ingestions.running(Grant("*", frozenset(), tier="default"))
        assert CANARY not in repr(everything), "a name is not for the log"


async def test_what_was_killed_is_forgotten(redis: Redis) -> None:
    ingestions = Ingestions(redis)
    async with ingestions.noted("d1", ASHA.client, "prices.md"):
        await seen(ingestions, ASHA, 1)
        assert SIGN_OF_LIFE < await redis.ttl(f"{KEY}d1") <= FORGOTTEN_AFTER


async def test_it_is_noted_at_most_twice_a_second(redis: Redis) -> None:
    async def noted() -> int:
        stats = await redis.info("commandstats")
        return int(stats.get("cmdstat_hset", {}).get("calls", 0))

    ingestions, before = Ingestions(redis), await noted()
    began = time.monotonic()
    async with ingestions.noted("d1", ASHA.client, "prices.md") as report:
        while time.monotonic() - began < 1.2:
            report(Progress("embedding", 1, 2))
            await asyncio.sleep(0.005)
    assert 2 <= await noted() - before <= 2 * (time.monotonic() - began) + 1


async def test_a_redis_that_is_out_of_reach_holds_up_nothing() -> None:
    gone = Redis(port=free_port(), socket_connect_timeout=0.2)
    async with asyncio.timeout(10), Ingestions(gone).noted("d1", ASHA.client, "prices.md") as report:
        report(Progress("finishing", 1, 1))
        await asyncio.sleep(0.05)
    await gone.aclose()
