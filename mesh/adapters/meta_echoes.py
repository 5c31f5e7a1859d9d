"""What became of sends that nobody saw the end of: Meta can't be asked what it holds, but every status repeats what was
given along with the message.

Per text and chat there is one sorted set, by time: `try:…` for a send that was begun and whose end is not known,
`ok:<id>` for one that Meta answered, and the bare `<id>` once a status told of it. Light: the gateway writes to it.
"""

from __future__ import annotations

import secrets
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

from mesh.lease import KEPT_MS, reachable

if TYPE_CHECKING:
    from redis.asyncio import Redis

KEY = "mesh:meta:sent:"
TRY, OK = "try:", "ok:"


@dataclass(frozen=True, slots=True)
class Sends:
    """Of one text in one chat. Times in seconds since the epoch."""

    ids: tuple[str, ...]
    """That Meta took, oldest first."""
    told: int
    """How many of them only a status told of."""
    begun: tuple[float, ...]
    """When sends began whose end is not known."""


class Echoes:
    """Over a Redis client that it does not own. Raises `Unavailable`."""

    def __init__(self, redis: Redis) -> None:
        self._redis = redis

    async def begin(self, echo: str) -> str:
        """Before it is sent: should nobody live to see the end, it is known that there was one. Returns what `end` is
        given."""
        member = TRY + secrets.token_hex(8)
        with reachable():
            async with self._redis.pipeline(transaction=True) as pipe:
                pipe.zadd(KEY + echo, {member: time.time()})
                pipe.pexpire(KEY + echo, KEPT_MS)
                await pipe.execute()
        return member

    async def end(self, echo: str, member: str, provider_id: str = "") -> None:
        """It was taken, or, without an id, certainly was not."""
        with reachable():
            async with self._redis.pipeline(transaction=True) as pipe:
                pipe.zrem(KEY + echo, member)
                if provider_id:
                    pipe.zadd(KEY + echo, {OK + provider_id: time.time()})
                await pipe.execute()

    async def note(self, echo: str, provider_id: str, at: float) -> None:
        """A status told of it. The earliest one tells best when it was sent."""
        with reachable():
            async with self._redis.pipeline(transaction=True) as pipe:
                pipe.zadd(KEY + echo, {provider_id: at}, lt=True)
                pipe.pexpire(KEY + echo, KEPT_MS)
                await pipe.execute()

    async def since(self, echo: str, since: float) -> Sends:
        with reachable():
            found = await self._redis.zrangebyscore(KEY + echo, since, "+inf", withscores=True)
        begun: list[float] = []
        answered: dict[str, float] = {}
        told: dict[str, float] = {}
        for raw, at in found:
            member = raw.decode()
            if member.startswith(TRY):
                begun.append(at)
            elif member.startswith(OK):
                answered[member.removeprefix(OK)] = at
            else:
                told[member] = at
        both = {**told, **answered}
        return Sends(tuple(sorted(both, key=both.__getitem__)), len(told.keys() - answered.keys()), tuple(begun))
