"""Which documents are read in at this moment, and how far each is: for whoever waits, and for who looks on.

In Redis, without a word of their text, and only for as long as somebody works on them: what was killed is forgotten."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from typing import Literal, cast

from redis.asyncio import Redis

from mesh.access import Grant
from mesh.connections import answer
from mesh.errors import Unavailable
from mesh.lease import reachable

KEY = "mesh:ingestion:"
AT_MOST_EVERY = 0.5
SIGN_OF_LIFE = 5.0
FORGOTTEN_AFTER = 15
"""Seconds, all three."""

Stage = Literal["reading", "embedding", "finishing"]


@dataclass(frozen=True, slots=True)
class Progress:
    """In chunks. `total` is 0 while the file is read, which is when nobody knows."""

    stage: Stage
    done: int = 0
    total: int = 0


Report = Callable[[Progress], None]
"""Is called in the middle of the work: it must be quick, and must not raise."""


@dataclass(frozen=True, slots=True)
class Ingestion:
    document_id: str
    owner: str
    name: str = field(repr=False)
    """Of the file. May be shown to who may see the document, and is in no log."""
    began_at: float
    """Seconds since the epoch."""
    progress: Progress


class Ingestions:
    """Over a Redis client that it does not own."""

    def __init__(self, redis: Redis) -> None:
        self._redis = redis

    @asynccontextmanager
    async def noted(self, document_id: str, owner: str, name: str) -> AsyncIterator[Report]:
        """While the block runs. A Redis that is out of reach is no reason to stop reading."""
        began_at = time.time()
        latest = Progress("reading")
        moved = asyncio.Event()

        def report(progress: Progress) -> None:
            nonlocal latest
            latest = progress
            moved.set()

        async def keep_noting() -> None:
            while True:
                moved.clear()
                with suppress(Unavailable):
                    await self._note(Ingestion(document_id, owner, name, began_at, latest))
                await asyncio.sleep(AT_MOST_EVERY)
                with suppress(TimeoutError):
                    async with asyncio.timeout(SIGN_OF_LIFE):
                        await moved.wait()

        noting = asyncio.create_task(keep_noting())
        try:
            yield report
        finally:
            noting.cancel()
            await asyncio.gather(noting, return_exceptions=True)
            with suppress(Unavailable), reachable():
                await self._redis.delete(KEY + document_id)

    async def running(self, grant: Grant) -> list[Ingestion]:
        """The grant's own (all of them, for who sees all), those that began first before the others. Raises
        `Unavailable`."""
        owner = grant.limited_to()
        with reachable():
            keys = [key async for key in self._redis.scan_iter(match=f"{KEY}*", count=1000)]
            found = [await answer(self._redis.hgetall(key)) for key in keys]
        running = [_ingestion(key, fields) for key, fields in zip(keys, found, strict=True) if fields]
        return sorted(
            (each for each in running if owner is None or each.owner == owner),
            key=lambda each: (each.began_at, each.document_id),
        )

    async def _note(self, running: Ingestion) -> None:
        key = KEY + running.document_id
        progress = running.progress
        fields = {
            "owner": running.owner,
            "name": running.name,
            "began_at": str(running.began_at),
            "stage": progress.stage,
            "done": str(progress.done),
            "total": str(progress.total),
        }
        with reachable():
            async with self._redis.pipeline(transaction=True) as pipe:
                pipe.hset(key, mapping=dict(fields))
                pipe.expire(key, FORGOTTEN_AFTER)
                await pipe.execute()


def _ingestion(key: bytes, fields: dict[bytes, bytes]) -> Ingestion:
    told = {name.decode(): value.decode() for name, value in fields.items()}
    return Ingestion(
        document_id=key.decode().removeprefix(KEY),
        owner=told["owner"],
        name=told["name"],
        began_at=float(told["began_at"]),
        progress=Progress(cast(Stage, told["stage"]), int(told["done"]), int(told["total"])),
    )
