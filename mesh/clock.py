"""One clock for the mesh: Redis's. Deadlines travel between machines whose own clocks may differ; each process keeps
how far its own is off."""

from __future__ import annotations

import logging
import time

from redis.asyncio import Redis
from redis.exceptions import RedisError

log = logging.getLogger(__name__)

TOLD_FROM_S = 1.0

_offset = 0.0


def now() -> float:
    """Seconds since the epoch, by Redis's clock as it was looked at last."""
    return time.time() + _offset


async def look(redis: Redis) -> None:
    """Redis away: what was known stays."""
    global _offset
    try:
        before = time.time()
        seconds, microseconds = await redis.time()
        after = time.time()
    except RedisError:
        return
    found = seconds + microseconds / 1e6 - (before + after) / 2
    if abs(found - _offset) > max(TOLD_FROM_S, after - before):
        log.warning("! this machine's clock is %.1f s off Redis's", -found)
    _offset = found if abs(found) > after - before else 0.0
