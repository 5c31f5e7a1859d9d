"""A small agent, its worker and a bus, over a real Redis: what the bus and worker tests share."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import timedelta
from typing import Any

from mesh.access import Gate
from mesh.bus import Bus
from mesh.context import Context
from mesh.dispatch import Agent, Dispatcher
from mesh.envelope import Request, Wire
from mesh.errors import Unavailable
from mesh.skills import Skill
from mesh.worker import MeshWorker
from tests.people import ASHA, BEN, OWNER, Directory


class Word(Wire):
    text: str = ""


def skill(verb: str, within_s: float = 5.0, *, kept: bool = True) -> Skill[Word, Word]:
    within = timedelta(seconds=within_s)
    return Skill(name=f"stage.{verb}", takes=Word, returns=Word, needs="stage:act", within=within, kept=kept)


ECHO, SLOW, BREAK, SHORT, AWAY = skill("echo"), skill("slow"), skill("break"), skill("short", 0.1), skill("away")
READ = skill("read", kept=False)


class Stage:
    """Counts what was run, by text; `go` lets the slow skill end."""

    def __init__(self) -> None:
        self.ran: list[str] = []
        self.go = asyncio.Event()
        self.directory = Directory()
        for person in (ASHA, BEN):
            self.directory.allow(person, "stage:act")
        self.agent: Agent[None] = Agent("stage", opens=_nothing)

        @self.agent.handles(ECHO)
        async def echo(word: Word, ctx: Context[None]) -> Word:
            self.ran.append(f"{ctx.grant.client}:{word.text}")
            return word

        @self.agent.handles(READ)
        async def read(word: Word, ctx: Context[None]) -> Word:
            self.ran.append(f"{ctx.grant.client}:{word.text}")
            return word

        @self.agent.handles(SLOW)
        async def slow(word: Word, ctx: Context[None]) -> Word:
            self.ran.append(word.text)
            await self.go.wait()
            return word

        @self.agent.handles(BREAK)
        async def breaks(word: Word, ctx: Context[None]) -> Word:
            raise ZeroDivisionError(word.text)

        @self.agent.handles(SHORT)
        async def short(word: Word, ctx: Context[None]) -> Word:
            await asyncio.Event().wait()
            return word

        @self.agent.handles(AWAY)
        async def away(word: Word, ctx: Context[None]) -> Word:
            self.ran.append(word.text)
            raise Unavailable

    def dispatcher(self, bus: Bus) -> Dispatcher:
        gate = Gate(self.directory, system_owner=OWNER, unknown_tier="none", fresh_for=0)
        return Dispatcher(self.agent, None, gate, bus)

    def worker(self, bus: Bus, redis_url: str, **options: Any) -> MeshWorker:
        return MeshWorker("stage", self.dispatcher(bus), redis_url, **options)


@asynccontextmanager
async def _nothing(_: Any) -> AsyncIterator[None]:
    yield None


@asynccontextmanager
async def working(worker: MeshWorker) -> AsyncIterator[MeshWorker]:
    task = asyncio.create_task(worker.serve())
    try:
        yield worker
    finally:
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task


def request(
    skill: Skill[Word, Word], text: str, *, client: str = ASHA, key: str = "", seconds: float = 10.0
) -> Request:
    return Request(
        client=client,
        skill=skill.name,
        payload={"text": text},
        trace="trace",
        key=key or text,
        deadline=time.time() + seconds,
    )


async def until(condition: Any, within_s: float = 10.0) -> None:
    """Waits for a condition, plain or awaitable."""
    async with asyncio.timeout(within_s):
        while True:
            result = condition()
            if asyncio.iscoroutine(result):
                result = await result
            if result:
                return
            await asyncio.sleep(0.01)
