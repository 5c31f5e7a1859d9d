"""Who is in a human's hands, and the way back."""

from __future__ import annotations

import time
from datetime import UTC, datetime

from mesh.bus import Bus
from mesh.catalogue import say
from mesh.ledger import Ledger
from mesh.people import People
from mesh.up import running_settings


async def handed_over() -> list[tuple[str, ...]]:
    """By identity: since when, in local time."""
    settings, _ = running_settings()
    async with Bus(settings.redis_url) as bus:
        people = People(bus.redis)
        found = [(who, (await people.of(who)).handed_over_at) for who in await people.handed_over()]
    return [(who, f"{datetime.fromtimestamp(at, UTC).astimezone():%Y-%m-%d %H:%M}") for who, at in found]


async def hand_back(identity: str) -> str:
    """Returns the sentence that says what changed."""
    settings, _ = running_settings()
    async with Bus(settings.redis_url) as bus:
        people, ledger = People(bus.redis), Ledger(bus.redis)
        try:
            if not await handed_back(people, ledger, settings.number, identity):
                return f"{identity} is not in a human's hands."
            opted_out = (await people.of(identity)).opted_out_at
        finally:
            await ledger.close()
    told = "they have opted out, so nothing is said until they write START" if opted_out else "and has told them so"
    return f"{identity}: the mesh answers again, {told}."


async def handed_back(people: People, ledger: Ledger, number: str, identity: str) -> bool:
    """False: nobody had taken them over."""
    person = await people.of(identity)
    if not person.handed_over_at:
        return False
    await people.note(identity, handed_over_at=0)
    await ledger.notify(f"{number}|{identity}", say("handed_back", person.language), f"handed back {time.time()}")
    return True
