"""`python -m tests.bench.worker plain|stage REDIS_URL MONGODB_URI`: the worker of the bus benchmark."""

from __future__ import annotations

import logging
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import timedelta
from typing import Any, cast

import uvloop

from mesh.access import Gate
from mesh.adapters.mongo import MongoRoster
from mesh.bus import Bus
from mesh.context import Context
from mesh.contracts.answers import Nothing
from mesh.dispatch import Agent, Dispatcher
from mesh.skills import Skill
from mesh.worker import MeshWorker

PLAIN, STAGE = "plain", "stage"
NOOP = Skill(name="stage.noop", takes=Nothing, returns=Nothing, needs="bench:run", within=timedelta(seconds=10))


@asynccontextmanager
async def _nothing(_: Any) -> AsyncIterator[None]:
    yield None


agent: Agent[None] = Agent(STAGE, opens=_nothing)


@agent.handles(NOOP)
async def noop(nothing: Nothing, ctx: Context[None]) -> Nothing:
    return nothing


class Straight:
    """No dispatcher and no gate: what the bus and arq cost by themselves."""

    async def dispatch(self, job: dict[str, Any], body: dict[str, Any]) -> dict[str, Any]:
        return {"outcome": "ok", "value": {}}

    async def refusal(self, body: dict[str, Any]) -> None:
        return None

    def keeps(self, skill: str) -> bool:
        return False


async def serve(name: str, redis_url: str, mongo_uri: str) -> None:
    async with Bus(redis_url) as bus:
        if name == PLAIN:
            await MeshWorker(name, cast("Dispatcher", Straight()), redis_url).serve()
            return
        roster = await MongoRoster.open(mongo_uri, "adiyan")
        gate = Gate(roster, system_owner="+15550000000", unknown_tier="stranger")
        await MeshWorker(name, Dispatcher(agent, None, gate, bus), redis_url).serve()
        await roster.close()


if __name__ == "__main__":
    logging.basicConfig(level=logging.WARNING)
    uvloop.run(serve(*sys.argv[1:]))
