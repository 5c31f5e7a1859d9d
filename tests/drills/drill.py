"""What a drill is, and how one is run."""

from __future__ import annotations

import asyncio
import contextlib
import os
import platform
import random
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

from httpx import HTTPError
from redis.exceptions import RedisError

from mesh.errors import MeshError
from tests.drills.play import Play, Tell
from tests.drills.stage import SMALL, Stage, Wanted
from tests.drills.verdict import Verdict

FAILS = ("lost", "duplicated", "order_inversions", "silent")


@dataclass(frozen=True)
class Drill:
    """`messages` by default, and in its `short` form, which the test suite runs."""

    name: str
    about: str
    play: Callable[[Play], Awaitable[None]]
    messages: int
    short: int
    wanted: Wanted = SMALL
    alone: bool = False
    """It needs a mesh that nothing else has used."""
    flaky: bool = False
    """Sends go wrong; when none did, it has shown nothing."""
    slow: bool = False
    """Its short form is not part of CI: `./run test -m slow`."""
    drain_s: float = 90.0
    grace_s: float = 15.0
    """How long to look for a reply too many: longer than a lease."""


@dataclass(frozen=True)
class Result:
    drill: Drill
    play: Play
    verdict: Verdict
    kills: int
    took_s: float

    @property
    def complaints(self) -> list[str]:
        wrong = [f"{what}: {' '.join(tokens[:8])}" for what, tokens in self.verdict.which.items() if tokens]
        return [*self.play.complaints, *wrong]

    def figures(self) -> dict[str, Any]:
        verdict = self.verdict
        return {
            "messages": verdict.messages,
            "acknowledged": verdict.acknowledged,
            "lost": verdict.lost,
            "duplicated": verdict.duplicated,
            "order_inversions": verdict.order_inversions,
            "silent": verdict.silent,
            "p50_s": verdict.p50_s,
            "p95_s": verdict.p95_s,
            "kills": self.kills,
            "sends_gone_wrong": verdict.gone_wrong,
            **self.play.extra,
            "passed": not self.complaints,
            "complaints": self.complaints,
            "took_s": round(self.took_s, 1),
            "machine": f"{platform.machine()}, {os.cpu_count()} cores, Python {platform.python_version()}",
            "load_1m": round(os.getloadavg()[0], 2),
        }


async def run(
    drill: Drill, stage: Stage, *, messages: int = 0, seed: int = 0, short: bool = False, tell: Tell = lambda _: None
) -> Result:
    """What a drill trips over is a complaint."""
    count = messages or (drill.short if short else drill.messages)
    play = Play(stage, count, random.Random(f"{drill.name} {seed}"), short=short, tell=tell)
    before, began = stage.kills, time.monotonic()
    await stage.phone.script()
    try:
        await drill.play(play)
    except (TimeoutError, ValueError, OSError, MeshError, HTTPError, RedisError) as error:
        play.complaints.append(f"{type(error).__name__}: {error}")
    await play.drain(drill.drain_s, 1.0 if short else drill.grace_s)
    verdict = await play.verdict()
    play.expect(verdict.gone_wrong > 0 or not drill.flaky, "no send went wrong")
    return Result(drill, play, verdict, stage.kills - before, time.monotonic() - began)


@asynccontextmanager
async def killing(play: Play, every: float, *names: str) -> AsyncIterator[None]:
    """Kills one of the processes that live, over and over, until the block ends."""
    stage = play.stage

    async def kills() -> None:
        while True:
            await asyncio.sleep(every)
            alive = [pid for name in names for pid in stage.alive(name)]
            if alive:
                stage.kill_process(play.random.choice(alive))

    task = asyncio.create_task(kills(), name="kills")
    try:
        yield
    finally:
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task
