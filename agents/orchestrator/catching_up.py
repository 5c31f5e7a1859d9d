"""Messages whose webhook never arrived: the provider's list has them, and providers do not reliably call again."""

from __future__ import annotations

import asyncio
import logging
from datetime import UTC, datetime

from mesh.envelope import pseudonym
from mesh.errors import MeshError
from mesh.ledger import Ledger
from mesh.ports.channel import Channel

log = logging.getLogger(__name__)

OVERLAP_S = 300.0
"""Looked at again each time: the provider's clock may differ, and its list be late. Nothing is taken twice."""
OLDEST_S = 24 * 3600.0
"""After that WhatsApp lets nobody answer without a template."""


async def keep_catching_up(ledger: Ledger, channel: Channel, number: str, every_s: float, *others: str) -> None:
    """All orchestrators do; each time, one of them looks, at each of our numbers."""
    while True:
        await asyncio.sleep(every_s)
        try:
            await catch_up(ledger, channel, number, every_s, *others)
        except MeshError as error:
            log.warning("! nothing was caught up code=%s detail=%s", error.code, error.detail)


async def catch_up(ledger: Ledger, channel: Channel, number: str, every_s: float, *others: str) -> int:
    """How many messages were taken in. Only those that two looks in a row have seen: the webhook of the newest may
    still be under way. The first look of a mesh takes in nothing: what came before it was not for it. When the list of
    one number can't be read, this look counts for none: the next one covers its time."""
    if (since := await ledger.begin_look(every_s)) is None:
        return 0
    now = datetime.now(UTC).timestamp()
    start = max((since or now) - OVERLAP_S, now - OLDEST_S)
    earliest = datetime.fromtimestamp(start, UTC)
    received = [
        message
        for recipient in (number, *others)
        for message in await channel.received(recipient=recipient, since=earliest)
    ]
    ids = [message.message_id for message in received]
    if not since:
        await ledger.leave(ids)
    wanted = await ledger.end_look(ids) - await ledger.left(ids)
    taken = 0
    for message in received:
        if message.message_id in wanted and await ledger.accept(message):
            taken += 1
            log.warning("→ caught up message=%s client=%s", message.message_id, pseudonym(message.sender))
    return taken
