"""Drills on the stores: killed, away, or full."""

from __future__ import annotations

import asyncio
from pathlib import Path

from tests.drills.drill import Drill, killing
from tests.drills.play import Play
from tests.drills.stage import WHOLE, Wanted, until

FROM_DOCUMENTS = "What does the price list say about the room {token}?"
"""Nearer to the documents than to the drills' own agent, which answers it when they have nothing."""
SMALL_DISK = Wanted(disk_mb=24)


async def redis_kill(play: Play) -> None:
    people = await play.stage.people(8)
    async with killing(play, 2.0, "redis"):
        await play.stream(people, play.messages, 4)


async def redis_full(play: Play) -> None:
    """No room for a single write, while one message is in the agent's hands and others come."""
    stage = play.stage
    people = await stage.people(4)
    held = await play.hold(people[0])
    await stage.redis.config_set("maxmemory", 1)
    try:
        stage.let_go(held.token)
        refused = [(await play.post(play.message(person))).status for person in people]
        await asyncio.sleep(3)
    finally:
        await stage.redis.config_set("maxmemory", 0)
    play.expect({*refused} == {503}, f"full, and the webhooks got {refused}")
    await play.stream(people, max(4, play.messages - len(play.said)), 5)
    play.extra["refused"] = len(refused)


async def disk_full(play: Play) -> None:
    """Redis can't append another byte to its file, while one message is in the agent's hands and others come."""
    stage = play.stage
    people = await stage.people(4)
    held = await play.hold(people[0])
    filler = stage.home / "redis" / "filler"
    _fill(filler)
    try:
        stage.let_go(held.token)
        said = [play.message(person) for person in people]
        refused = [(await play.post(each)).status for each in said]
        async with asyncio.timeout(15):
            while 503 not in refused:  # the first writes may still fit into the page that was begun
                refused.append((await play.post(play.message(people[1]))).status)
                await asyncio.sleep(0.1)
        await asyncio.sleep(2)
    finally:
        filler.unlink()
    await until(lambda: _takes(play, people[2]), "the gateway takes messages again")
    await play.stream(people, max(4, play.messages - len(play.said)), 5)
    play.extra["refused"] = refused.count(503)


async def mongodb_down(play: Play) -> None:
    """Nobody can be looked up, so nobody is let in, and everybody is told so; afterwards all is as before."""
    people = await play.stage.people(8)
    async with play.stage.down("mongodb"):
        await play.stream(people, play.messages // 2, 4, apology=True)
        await play.drain(40, 0)
    before = len(play.said)
    await asyncio.sleep(2)  # what was looked up is kept for a second
    await play.stream(people, play.messages - before, 4)


async def qdrant_down(play: Play) -> None:
    """Neither documents nor memories can be searched; whatever else can answer does."""
    people = await play.stage.people(4)
    async with play.stage.down("qdrant"):
        await play.stream(people, play.messages, 1, text=FROM_DOCUMENTS)
        await play.drain(60, 0)
    await play.stream(people, 4, 2, text=FROM_DOCUMENTS)


async def _takes(play: Play, person: str) -> bool:
    return (await play.post(play.message(person))).status == 200


def _fill(file: Path) -> None:
    """Until not a byte more fits."""
    with file.open("wb", buffering=0) as out:
        for size in (1 << 20, 1 << 12, 1):
            try:
                while out.write(b"\0" * size) == size:
                    pass
            except OSError:
                continue


DRILLS = (
    Drill("redis-kill", "killed every 2 s", redis_kill, messages=120, short=16),
    Drill("redis-full", "no room for a write (maxmemory), then there is", redis_full, messages=40, short=12),
    Drill(
        "disk-full",
        "no room on Redis's disk, then there is",
        disk_full,
        messages=40,
        short=12,
        wanted=SMALL_DISK,
        alone=True,
    ),
    Drill("mongodb-down", "killed and kept down for a while", mongodb_down, messages=80, short=16, slow=True),
    Drill("qdrant-down", "killed and kept down for a while", qdrant_down, messages=24, short=6, wanted=WHOLE),
)
