"""Skill cards as the running workers announce them: the orchestrator knows no agent by import. What it may ask for is
what MongoDB has agents for, now."""

from __future__ import annotations

import logging
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from pydantic import ValidationError
from redis.asyncio import Redis
from redis.exceptions import RedisError

from mesh.configuration import Agents, read_agents
from mesh.connections import answer
from mesh.contracts.answers import Answer, Ask
from mesh.envelope import Wire
from mesh.errors import Unavailable
from mesh.skills import Card, Skill

log = logging.getLogger(__name__)

KEY = "mesh:cards"
LOOK_EVERY_S = 1.0


class Announced(Wire):
    name: str
    needs: str
    within_s: float
    card: Card


@dataclass(frozen=True, slots=True)
class Routable:
    skill: Skill[Ask, Answer]
    card: Card


async def announce(redis: Redis, skills: list[Skill[Any, Any]]) -> None:
    """In place of what the same agent announced before."""
    cards = {
        skill.name: Announced(
            name=skill.name, needs=skill.needs, within_s=skill.within.total_seconds(), card=skill.card
        ).model_dump_json()
        for skill in skills
        if skill.card is not None
    }
    agents = {_agent_of(skill.name) for skill in skills}
    before = [name.decode() for name in await answer(redis.hkeys(KEY))]
    gone = [name for name in before if _agent_of(name) in agents and name not in cards]
    async with redis.pipeline(transaction=True) as change:
        if gone:
            change.hdel(KEY, *gone)
        if cards:
            change.hset(KEY, mapping=cards)
        await change.execute()


class Cards:
    """What can be asked for, looked up at most every second. `agents` gives them as MongoDB has them; when it raises
    `Unavailable`, so does everything here."""

    def __init__(self, redis: Redis, agents: Callable[[], Awaitable[list[dict[str, object]]]]) -> None:
        self._redis = redis
        self._read_agents = agents
        self._looked_at = float("-inf")
        self._agents = Agents({}, {})
        self._announced: list[Routable] = []

    async def current(self) -> list[Routable]:
        """The cards of agents that are configured, with a copy at least."""
        await self._look()
        return [each for each in self._announced if self._agents.serves(_agent_of(each.skill.name))]

    async def switched_off(self) -> list[Routable]:
        """The cards of agents that are configured, but can't be asked for anything now."""
        await self._look()
        known = {*self._agents.good, *self._agents.bad}
        off = {name for name in known if not self._agents.serves(name)}
        return [each for each in self._announced if _agent_of(each.skill.name) in off]

    async def serves(self, skill: Skill[Any, Any]) -> bool:
        await self._look()
        return self._agents.serves(_agent_of(skill.name))

    async def _look(self) -> None:
        now = time.monotonic()
        if now - self._looked_at <= LOOK_EVERY_S:
            return
        agents = read_agents(await self._read_agents())
        try:
            raw = await answer(self._redis.hgetall(KEY))
        except RedisError as error:
            raise Unavailable(detail=f"redis: {type(error).__name__}") from error
        for name, trouble in agents.bad.items():
            if self._agents.bad.get(name) != trouble:
                log.error("! agent=%s is asked for nothing: %s", name, trouble)
        found = [_routable(name.decode(), raw[name]) for name in sorted(raw)]
        self._agents, self._announced = agents, [each for each in found if each is not None]
        self._looked_at = now


def _agent_of(skill: str) -> str:
    return skill.partition(".")[0]


def _routable(name: str, raw: bytes) -> Routable | None:
    try:
        announced = Announced.model_validate_json(raw)
    except ValidationError:
        log.error("! card=%s can't be read; bytes=%d", name, len(raw))
        return None
    skill = Skill(
        name=announced.name,
        takes=Ask,
        returns=Answer,
        needs=announced.needs,
        within=timedelta(seconds=announced.within_s),
    )
    return Routable(skill, announced.card)
