"""Skill cards as the running workers announce them: the orchestrator knows no agent by import."""

from __future__ import annotations

import time
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from redis.asyncio import Redis
from redis.exceptions import RedisError

from mesh.connections import answer
from mesh.contracts import Answer, Ask
from mesh.envelope import Wire
from mesh.errors import Unavailable
from mesh.skills import Card, Skill

KEY = "mesh:cards"
LOOK_EVERY_S = 2.0


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
    cards = {
        skill.name: Announced(
            name=skill.name, needs=skill.needs, within_s=skill.within.total_seconds(), card=skill.card
        ).model_dump_json()
        for skill in skills
        if skill.card is not None
    }
    if cards:
        await answer(redis.hset(KEY, mapping=cards))


class Cards:
    """What can be routed to, looked up at most every two seconds."""

    def __init__(self, redis: Redis) -> None:
        self._redis = redis
        self._looked_at = float("-inf")
        self._kept: list[Routable] = []

    async def current(self) -> list[Routable]:
        now = time.monotonic()
        if now - self._looked_at > LOOK_EVERY_S:
            try:
                raw = await answer(self._redis.hgetall(KEY))
            except RedisError as error:
                raise Unavailable(detail=f"redis: {type(error).__name__}") from error
            self._kept = [_routable(Announced.model_validate_json(raw[name])) for name in sorted(raw)]
            self._looked_at = now
        return self._kept


def _routable(announced: Announced) -> Routable:
    skill = Skill(
        name=announced.name,
        takes=Ask,
        returns=Answer,
        needs=announced.needs,
        within=timedelta(seconds=announced.within_s),
    )
    return Routable(skill, announced.card)
