"""The queues as they are now, once or every second."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager, nullcontext
from dataclasses import asdict
from typing import Any

from redis.asyncio import Redis
from rich.console import Console, RenderableType
from rich.live import Live
from rich.markup import escape

from mesh.cli.listing import lasting, open_redis, open_tables, told
from mesh.cli.printing import Row, show, table
from mesh.configuration import Agents, read_agents
from mesh.errors import MeshError
from mesh.ports.people import Roster
from mesh.queues import QueueState, queues
from mesh.settings import Settings
from mesh.up import STORES

LOOK_EVERY_S = 1.0
HEADS = ("agent", "waiting", "running", "failed today", "oldest", "workers")


class Queues:
    """Those of the agents that MongoDB has, and of any other that works or has work."""

    def __init__(self, roster: Roster, redis: Redis, settings: Settings) -> None:
        self._roster = roster
        self._redis = redis
        self._settings = settings

    async def now(self) -> tuple[list[QueueState], Agents]:
        with told(self._settings):
            known = read_agents(await self._roster.agents())
            names = sorted({*known.good, *known.bad})
            states = await queues(self._redis, names)
        return [each for each in states if each.agent in names or each.waiting or each.running or each.workers], known

    async def shown(self) -> RenderableType:
        states, known = await self.now()
        return table(HEADS, rows(states, known))


@asynccontextmanager
async def open_queues() -> AsyncIterator[Queues]:
    async with open_tables(*STORES) as (roster, settings), open_redis(settings) as redis:
        yield Queues(roster, redis, settings)


async def watch(opened: Queues, console: Console) -> None:
    """For ever. What can't be looked at is said in place of the table, and looked at again."""
    with Live(console=console, auto_refresh=False) if console.is_terminal else nullcontext() as live:
        while True:
            try:
                seen = await opened.shown()
            except MeshError as error:
                seen = f"[red]✗[/] {escape(error.user_text)}"
            if live:
                live.update(seen, refresh=True)
            else:
                show(console, seen)
            await asyncio.sleep(LOOK_EVERY_S)


async def as_json(opened: Queues) -> list[dict[str, Any]]:
    states, _ = await opened.now()
    return [asdict(state) for state in states]


def rows(states: Iterable[QueueState], known: Agents) -> list[Row]:
    return [
        (
            state.agent + _standing(state.agent, known),
            str(state.waiting),
            str(state.running),
            str(state.failed),
            "" if state.oldest_s is None else lasting(state.oldest_s),
            str(state.workers),
        )
        for state in states
    ]


def _standing(name: str, known: Agents) -> str:
    if name in known.good:
        return "" if known.good[name].copies else " (off)"
    return " (unreadable in MongoDB)" if name in known.bad else " (not in MongoDB)"
