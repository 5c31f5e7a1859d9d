"""What happens to work when a worker stops, dies, hangs or comes back late."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator

import pytest
from arq.constants import in_progress_key_prefix

from mesh import bus as bus_module
from mesh import worker as module
from mesh.bus import Bus
from mesh.connections import answer
from mesh.envelope import Failed, Ok
from tests.people import ASHA
from tests.redis.stage import ECHO, SLOW, Stage, request, until, working


@pytest.fixture
async def bus(redis_url: str) -> AsyncIterator[Bus]:
    async with Bus(redis_url) as opened:
        yield opened


async def test_a_lost_bell_delays_work_by_the_poll_at_most(bus: Bus, redis_url: str) -> None:
    stage = Stage()
    async with working(stage.worker(bus, redis_url)):
        await bus.ask(request(ECHO, "warm"))
        await bus.tell(request(ECHO, "unheard"))
        await bus.redis.delete("mesh:stage:bell")
        await until(lambda: len(stage.ran) == 2, within_s=module.POLL_S + 3)


async def test_a_stopping_worker_puts_its_unfinished_work_back(bus: Bus, redis_url: str) -> None:
    first, second = Stage(), Stage()
    second.go.set()
    asked = asyncio.create_task(bus.ask(request(SLOW, "long", seconds=30)))
    stopping = first.worker(bus, redis_url)
    stopping.grace_s = 0.05
    async with working(stopping):
        await until(lambda: first.ran)
    async with working(second.worker(bus, redis_url)):
        assert await asked == Ok(value={"text": "long"})
    assert second.ran == ["long"]


async def test_the_work_of_a_dead_worker_is_taken_over_when_its_claim_runs_out(bus: Bus, redis_url: str) -> None:
    stage = Stage()
    asked = request(ECHO, "orphan", seconds=30)
    await bus.redis.set(in_progress_key_prefix + asked.job_id, "dead:worker", px=300)
    async with working(stage.worker(bus, redis_url)):
        assert await bus.ask(asked) == Ok(value={"text": "orphan"})


async def test_a_job_that_was_handed_to_a_worker_that_died_is_taken_over(
    bus: Bus, redis_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bus_module, "HANDED_MS", 300)
    stage = Stage()
    asked = asyncio.create_task(bus.ask(request(ECHO, "handed", seconds=30)))
    await until(lambda: bus.redis.llen("mesh:stage:bell"))
    carried = await answer(bus.redis.lpop("mesh:stage:bell"))  # heard by a worker that then dies
    assert isinstance(carried, bytes)
    assert b"\n" in carried
    async with working(stage.worker(bus, redis_url)):
        assert await asked == Ok(value={"text": "handed"})
    assert stage.ran == [f"{ASHA}:handed"]


async def test_a_job_that_was_rung_out_while_nobody_listened_is_begun_by_the_next_worker(
    bus: Bus, redis_url: str
) -> None:
    stage = Stage()
    asked = asyncio.create_task(bus.ask(request(ECHO, "early", seconds=4)))
    await until(lambda: bus.redis.llen("mesh:stage:bell"))
    async with working(stage.worker(bus, redis_url)):
        assert await asked == Ok(value={"text": "early"}), "without waiting for the hand-over to run out"


async def test_a_full_bell_does_not_lose_the_job_that_it_carries(bus: Bus, redis_url: str) -> None:
    stage = Stage()
    jobs = [request(ECHO, f"job {number}", seconds=60) for number in range(100)]
    for job in jobs:
        await bus.tell(job)
    async with working(stage.worker(bus, redis_url)):
        await until(lambda: len(stage.ran) == 100, within_s=4)


async def test_steady_work_does_not_keep_orphans_waiting(bus: Bus, redis_url: str) -> None:
    stage = Stage()
    orphan = request(ECHO, "orphan", seconds=60)
    async with working(stage.worker(bus, redis_url)):
        await bus.ask(request(ECHO, "warm"))
        await bus.redis.set(in_progress_key_prefix + orphan.job_id, "dead:worker", px=200)
        await bus.tell(orphan)
        async with asyncio.timeout(10):
            number = 0
            while f"{ASHA}:orphan" not in stage.ran:
                number += 1
                await bus.ask(request(ECHO, f"steady {number}"))


async def test_a_hundred_and_fifty_orphans_at_the_head_do_not_starve_the_queue(bus: Bus, redis_url: str) -> None:
    stage = Stage()
    for number in range(150):
        orphan = request(ECHO, f"orphan {number}")
        await bus.tell(orphan)
        await bus.redis.set(in_progress_key_prefix + orphan.job_id, "dead:worker", px=60_000)
    async with working(stage.worker(bus, redis_url)):
        assert await bus.ask(request(ECHO, "behind them")) == Ok(value={"text": "behind them"})


async def test_a_claim_is_renewed_while_the_work_goes_on(
    bus: Bus, redis_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "CLAIM_MS", 300)
    monkeypatch.setattr(module, "BEAT_S", 0.1)
    holder, thief = Stage(), Stage()
    asked = request(SLOW, "held", seconds=30)
    async with working(holder.worker(bus, redis_url)):
        waiting = asyncio.create_task(bus.ask(asked))
        await until(lambda: holder.ran)
        async with working(thief.worker(bus, redis_url)) as idle:
            await asyncio.wait([waiting], timeout=1.0)  # three claims long
            assert idle.job_counter == 0
            holder.go.set()
            assert await waiting == Ok(value={"text": "held"})
    assert thief.ran == []


async def test_a_worker_does_not_claim_again_what_it_has_finished(
    bus: Bus, redis_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The same job may have been handed to another worker since: its result would be refused, and nobody answered."""
    monkeypatch.setattr(module, "BEAT_S", 0.02)
    asked = request(ECHO, "done")
    async with working(Stage().worker(bus, redis_url)):
        await bus.ask(asked)
        key = in_progress_key_prefix + asked.job_id
        await bus.redis.set(key, bus_module.HANDED, px=60_000)
        beats = await bus.redis.info("commandstats")
        await until(lambda: _has_beaten(bus, beats["cmdstat_set"]["calls"] + 10))
        assert await bus.redis.get(key) == bus_module.HANDED


async def test_a_worker_that_lost_its_claim_cannot_finish_the_job(bus: Bus, redis_url: str) -> None:
    late = Stage()
    asked = request(SLOW, "fenced", seconds=2)
    async with working(late.worker(bus, redis_url)):
        waiting = asyncio.create_task(bus.ask(asked))
        await until(lambda: late.ran)
        await bus.redis.set(in_progress_key_prefix + asked.job_id, "another:worker", px=60_000)
        late.go.set()
        assert await waiting is None


async def test_a_job_that_keeps_killing_its_worker_ends_in_an_apology(bus: Bus, redis_url: str) -> None:
    stage = Stage()
    poison = request(ECHO, "poison", seconds=30)
    await bus.redis.set(f"arq:retry:{poison.job_id}", 5)
    async with working(stage.worker(bus, redis_url)):
        outcome = await bus.ask(poison)
    assert isinstance(outcome, Failed)
    assert outcome.code == "crashed"
    assert stage.ran == []


@pytest.mark.parametrize("arguments", [[], [1, 2, 3], None, ["not a request"], [{"no": "skill"}]])
async def test_a_record_of_the_wrong_shape_is_given_up_and_the_worker_lives(
    bus: Bus, redis_url: str, arguments: object
) -> None:
    stage = Stage()
    record = {"t": None, "f": "dispatch", "a": arguments, "k": {}, "et": 1}
    await bus.redis.set("arq:job:odd", json.dumps(record))
    await bus.redis.zadd("mesh:stage", {"odd": 1})
    async with working(stage.worker(bus, redis_url)):
        assert await bus.ask(request(ECHO, "still here")) == Ok(value={"text": "still here"})
        await until(lambda: _gone(bus, "odd"))


async def test_a_worker_says_that_it_is_alive_and_stops_saying_so(bus: Bus, redis_url: str) -> None:
    async with working(Stage().worker(bus, redis_url)):
        await until(lambda: _alive(bus))
    assert not await _alive(bus)


async def _alive(bus: Bus) -> bool:
    return bool(await bus.redis.keys("mesh:worker:stage:*"))


async def _gone(bus: Bus, job_id: str) -> bool:
    return await bus.redis.zscore("mesh:stage", job_id) is None


async def _has_beaten(bus: Bus, sets: int) -> bool:
    return int((await bus.redis.info("commandstats"))["cmdstat_set"]["calls"]) >= sets
