"""What is asked for every hour: at the start, once for all processes, and by the system owner."""

from __future__ import annotations

from contextlib import AsyncExitStack
from typing import cast

import pytest

from mesh import crons
from mesh.bus import Bus
from mesh.dispatch import Agent
from mesh.envelope import Request
from mesh.errors import Unavailable
from tests.people import OWNER
from tests.redis.stage import ECHO, Stage, Word, request, until, working


def hourly(stage: Stage) -> Agent[None]:
    stage.agent.hourly[ECHO.name] = Word(text="again")
    return stage.agent


async def test_it_is_done_at_the_start_once_for_three_processes(redis_url: str) -> None:
    stage = Stage()
    agent = hourly(stage)
    async with Bus(redis_url) as bus, AsyncExitStack() as processes:
        await processes.enter_async_context(working(stage.worker(bus, redis_url)))
        for _ in range(3):
            await processes.enter_async_context(crons.hourly(agent, bus, client=OWNER))
        await until(lambda: f"{OWNER}:again" in stage.ran)
        for text in ("a", "b", "c"):  # what a second process asked for would have come before these
            await bus.ask(request(ECHO, text))
        assert stage.ran.count(f"{OWNER}:again") == 1


async def test_it_is_done_again_in_the_next_hour(redis_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    stage = Stage()
    agent = hourly(stage)
    monkeypatch.setattr(crons, "HOUR_S", 0.5)
    async with Bus(redis_url) as bus, working(stage.worker(bus, redis_url)), crons.hourly(agent, bus, client=OWNER):
        await until(lambda: len(stage.ran) >= 3)


async def test_a_redis_that_was_away_at_the_hour_is_asked_again(
    redis_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    stage = Stage()
    agent = hourly(stage)
    monkeypatch.setattr(crons, "AGAIN_S", 0.05)
    async with Bus(redis_url) as bus, working(stage.worker(bus, redis_url)):
        away = Away(bus, times=2)
        async with crons.hourly(agent, cast(Bus, away), client=OWNER):
            await until(lambda: len(stage.ran) == 1)
        assert away.times == 0


class Away:
    """A bus whose Redis can't be reached for a while."""

    def __init__(self, bus: Bus, times: int) -> None:
        self._bus = bus
        self.times = times

    async def tell(self, request: Request) -> None:
        if self.times:
            self.times -= 1
            raise Unavailable
        await self._bus.tell(request)
