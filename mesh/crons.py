"""What an agent is asked for when it starts, and then every hour: once, however many processes of it there are."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from mesh import clock
from mesh.bus import Bus
from mesh.dispatch import Agent
from mesh.envelope import Request, Wire, new_trace
from mesh.errors import MeshError
from mesh.skills import Skill

log = logging.getLogger(__name__)

HOUR_S = 3600.0
AGAIN_S = 30.0
"""After a Redis that was out of reach."""


@asynccontextmanager
async def hourly(agent: Agent[Any], bus: Bus, *, client: str) -> AsyncIterator[None]:
    """`client` asks: the system owner."""
    tasks = [
        asyncio.create_task(_asked_every_hour(bus, client, agent.handlers[name][0], payload))
        for name, payload in agent.hourly.items()
    ]
    try:
        yield
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def _asked_every_hour(bus: Bus, client: str, skill: Skill[Any, Any], payload: Wire) -> None:
    while True:
        now = clock.now()
        hour = int(now // HOUR_S)
        request = Request(
            client=client,
            skill=skill.name,
            payload=payload.model_dump(mode="json"),
            trace=new_trace(),
            key=f"hour {hour}",  # the same in every process: the bus takes it once
            deadline=now + skill.within.total_seconds(),
        )
        try:
            await bus.tell(request)
        except MeshError as error:
            log.warning("! hourly skill=%s code=%s", skill.name, error.code)
            await asyncio.sleep(AGAIN_S)
            continue
        await asyncio.sleep((hour + 1) * HOUR_S - now)
