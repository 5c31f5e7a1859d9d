"""What is told about queues and workers, over a real Redis and real workers."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator

import pytest
from redis.asyncio import Redis

from mesh import queues as module
from mesh.bus import Bus
from mesh.cards import announce
from mesh.contracts.memory import NOTE
from mesh.errors import Unavailable
from mesh.queues import QueueState, queues, workers
from mesh.worker import MeshWorker
from tests.people import STRANGER
from tests.processes import free_port
from tests.redis.stage import AWAY, BREAK, ECHO, SHORT, SLOW, Stage, request, until, working


@pytest.fixture
async def bus(redis_url: str) -> AsyncIterator[Bus]:
    async with Bus(redis_url) as opened:
        yield opened


async def state(bus: Bus) -> QueueState:
    (found,) = [each for each in await queues(bus.redis, ["stage"]) if each.agent == "stage"]
    return found


async def test_a_queue_that_nobody_used_is_empty(bus: Bus) -> None:
    assert await queues(bus.redis, ["stage"]) == [QueueState("stage", 0, 0, 0, None, 0)]


async def test_what_nobody_took_waits_and_its_age_is_told(bus: Bus) -> None:
    for text in ("a", "b", "c"):
        await bus.tell(request(ECHO, text))
    first = await state(bus)
    assert (first.waiting, first.running, first.workers) == (3, 0, 0), "the one that the bell carries waits, too"
    assert first.oldest_s is not None
    await until(lambda: older(bus, 0.05))


async def older(bus: Bus, seconds: float) -> bool:
    return ((await state(bus)).oldest_s or 0) > seconds


async def test_what_runs_is_not_counted_as_waiting(bus: Bus, redis_url: str) -> None:
    stage = Stage()
    async with working(stage.worker(bus, redis_url, max_jobs=2)):
        for text in ("a", "b", "c", "d", "e"):
            await bus.tell(request(SLOW, text))
        await until(lambda: len(stage.ran) == 2)
        stuck = await state(bus)
        assert (stuck.waiting, stuck.running) == (3, 2)
        stage.go.set()
        await until(lambda: len(stage.ran) == 5)
        await until(lambda: is_empty(bus))


async def is_empty(bus: Bus) -> bool:
    found = await state(bus)
    return (found.waiting, found.running, found.oldest_s) == (0, 0, None)


async def test_a_job_that_was_heard_but_not_yet_claimed_by_name_runs(bus: Bus, redis_url: str) -> None:
    """For up to two seconds its claim says `handed`, as that of a job that still lies in the bell does."""
    stage = Stage()
    async with working(stage.worker(bus, redis_url)):
        await until(lambda: has_worker(bus))
        await bus.tell(request(SLOW, "a"))
        await until(lambda: stage.ran == ["a"])
        found = await state(bus)
        assert (found.waiting, found.running, found.oldest_s) == (0, 1, None)
        stage.go.set()


async def has_worker(bus: Bus) -> bool:
    return bool(await workers(bus.redis))


async def test_jobs_that_failed_are_counted_and_stay_counted_when_their_worker_ends(bus: Bus, redis_url: str) -> None:
    await bus.redis.set("arq:job:broken", b"this is no job")
    await bus.redis.zadd("mesh:stage", {"broken": 1})
    async with working(Stage().worker(bus, redis_url)):
        for number, skill in enumerate((BREAK, SHORT, AWAY)):
            await bus.ask(request(skill, f"{number}"))
        await bus.ask(request(ECHO, "fine"))
        await bus.ask(request(ECHO, "not allowed", client=STRANGER))
        await until(lambda: has_failed(bus, 4))
    assert (await state(bus)).failed == 4


async def has_failed(bus: Bus, number: int) -> bool:
    return (await state(bus)).failed == number


async def test_a_worker_is_listed_while_it_lives(bus: Bus, redis_url: str) -> None:
    stage = Stage()
    async with working(stage.worker(bus, redis_url)) as one, working(stage.worker(bus, redis_url)) as other:
        await until(lambda: counts(bus, 2))
        found = await workers(bus.redis)
        assert {each.id for each in found} == {one.id, other.id}
        assert {each.agent for each in found} == {"stage"}
        assert all(each.pid == pid_of(one) for each in found)
        assert (await state(bus)).workers == 2
    assert await workers(bus.redis) == []


async def counts(bus: Bus, number: int) -> bool:
    return len(await workers(bus.redis)) == number


def pid_of(worker: MeshWorker) -> int:
    return int(worker.id.split(":")[1])


async def test_an_agent_that_was_taken_away_is_shown_for_as_long_as_it_has_work(bus: Bus) -> None:
    await announce(bus.redis, [NOTE])
    assert [each.agent for each in await queues(bus.redis, ["stage"])] == ["stage"]
    await bus.redis.zadd("mesh:memory", {"left over": 1})
    assert [each.agent for each in await queues(bus.redis, ["stage"])] == ["stage", "memory"]


async def test_an_unknown_worker_has_a_queue_too(bus: Bus) -> None:
    sign = {"agent": "guest", "pid": 1, "since": 5.5, "running": 0, "done": 7, "failed": 2}
    await bus.redis.set("mesh:worker:guest:host:1:abc", json.dumps(sign), px=5000)
    assert await queues(bus.redis, []) == [QueueState("guest", 0, 0, 0, None, 1)]
    (guest,) = await workers(bus.redis)
    assert (guest.id, guest.since, guest.done) == ("host:1:abc", 5.5, 7)


async def test_a_long_backlog_is_counted_whole(bus: Bus) -> None:
    await bus.redis.zadd("mesh:stage", {f"job {number}": number for number in range(2 * module.LOOKED_AT)})
    await bus.redis.set("arq:in-progress:job 0", "somebody")
    found = await state(bus)
    assert (found.waiting, found.running) == (2 * module.LOOKED_AT - 1, 1)


async def test_an_unreachable_redis_is_an_error_of_ours() -> None:
    redis = Redis(port=free_port())
    with pytest.raises(Unavailable):
        await workers(redis)
    await redis.aclose()
