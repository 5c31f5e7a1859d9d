"""Which form a store's data is in. What an earlier release wrote is taken over when it is opened; what a newer one
wrote is left alone."""

from __future__ import annotations

from redis.asyncio import Redis
from redis.exceptions import RedisError

from mesh.connections import answer
from mesh.errors import Misconfigured, Unavailable

REDIS = 1
REDIS_KEY = "mesh:schema"


def check(what: str, found: object, known: int) -> None:
    """Raises `Misconfigured` for what is not known here. `what` begins the sentence: `The ledger in Redis`."""
    if not isinstance(found, int) or isinstance(found, bool) or not 1 <= found <= known:
        raise Misconfigured(
            f"{what} is of version {found}, and this Adiyan knows version {known}. "
            "Install the newer Adiyan that wrote it, or restore a backup."
        )


async def claim_redis(redis: Redis) -> None:
    """Writes the version where there is none: that of everything before it was written. Raises `Misconfigured`."""
    try:
        await answer(redis.set(REDIS_KEY, REDIS, nx=True))
        check("What Redis holds", _number(await answer(redis.get(REDIS_KEY))), REDIS)
    except RedisError as error:
        raise Unavailable(detail=f"redis: {type(error).__name__}") from error


async def redis_version(redis: Redis) -> int | str | None:
    """None where none is written."""
    try:
        kept = await answer(redis.get(REDIS_KEY))
    except RedisError as error:
        raise Unavailable(detail=f"redis: {type(error).__name__}") from error
    return None if kept is None else _number(kept)


def _number(kept: bytes | str | None) -> int | str:
    text = kept.decode(errors="replace") if isinstance(kept, bytes) else str(kept)
    return int(text) if text.isdecimal() and text.isascii() and len(text) < 10 else text
