"""Small counts that all processes share, for a while: so that nobody is told the same thing twice, or too much."""

from __future__ import annotations

from redis.asyncio import Redis

from mesh.connections import answer
from mesh.lease import reachable


class Counters:
    """Over a Redis client that it does not own. Raises `Unavailable`."""

    def __init__(self, redis: Redis) -> None:
        self._redis = redis

    async def first(self, what: str, within_s: int) -> bool:
        """Whether nobody asked this in the last `within_s` seconds."""
        with reachable():
            return bool(await self._redis.set(f"mesh:first:{what}", "1", nx=True, ex=within_s))

    async def count(self, what: str, within_s: int) -> int:
        """This one included, since the first of them; they are forgotten `within_s` seconds after it."""
        key = f"mesh:count:{what}"
        with reachable():
            number = int(await answer(self._redis.incr(key)))
            if number == 1:
                await self._redis.expire(key, within_s)
        return number
