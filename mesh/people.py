"""What the mesh notes about a person besides their permissions: that they were told what is kept, that they opted out,
that a human has taken over, and their language. In Redis, and kept until it is erased."""

from __future__ import annotations

import dataclasses
from typing import Any

from redis.asyncio import Redis

from mesh.connections import answer
from mesh.lease import person_key, reachable


@dataclasses.dataclass(frozen=True, slots=True)
class Person:
    """Times are seconds since the epoch; 0 for never."""

    language: str = ""
    greeted_by: str = ""
    """The turn that told them what is kept, and how to stop: they went on writing knowing it."""
    greeted_at: float = 0.0
    opted_out_at: float = 0.0
    handed_over_at: float = 0.0
    silenced_by: str = ""
    """The message that asked for either of the two: it is answered all the same, also after a crash."""
    answered_by: str = ""
    """The last message of theirs that a skill answered: what `/why` tells of."""
    answered_at: float = 0.0
    document_id: str = ""
    """The document that was spoken of last: what `that file` means."""
    document_at: float = 0.0

    @property
    def silence(self) -> str:
        """Why nothing is to be said to them; empty when something may be."""
        return "opted out" if self.opted_out_at else "handed over" if self.handed_over_at else ""


class People:
    """Over a Redis client that it does not own. Raises `Unavailable`."""

    def __init__(self, redis: Redis) -> None:
        self._redis = redis

    async def of(self, client: str) -> Person:
        with reachable():
            found = await answer(self._redis.hgetall(person_key(client)))
        noted = {name.decode(): value.decode() for name, value in found.items()}
        kinds = {each.name: float if each.name.endswith("_at") else str for each in dataclasses.fields(Person)}
        known: dict[str, Any] = {name: kinds[name](value) for name, value in noted.items() if name in kinds}
        return Person(**known)

    async def note(self, client: str, **what: str | float) -> None:
        """Fields of `Person`."""
        with reachable():
            await answer(
                self._redis.hset(person_key(client), mapping={name: str(value) for name, value in what.items()})
            )

    async def handed_over(self) -> list[str]:
        """Who is in a human's hands."""
        with reachable():
            keys = [key async for key in self._redis.scan_iter(match=person_key("*"), count=500)]
            times = [await answer(self._redis.hget(key, "handed_over_at")) for key in keys]
        return sorted(
            key.decode().removeprefix(person_key("")) for key, time in zip(keys, times, strict=True) if float(time or 0)
        )
