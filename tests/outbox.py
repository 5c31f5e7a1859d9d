"""A sender for tests of turns, over a real Redis."""

from __future__ import annotations

from agents.orchestrator.alerts import Alerts
from agents.orchestrator.sending import Sender
from mesh.bus import Bus
from mesh.contracts.orchestrator import Piece
from mesh.counters import Counters
from mesh.ledger import Ledger
from mesh.people import People
from mesh.ports.channel import Channel

OWNER = "+15550000000"


def sender(ledger: Ledger, channel: Channel, bus: Bus, *, number: str, template: str = "") -> Sender:
    people = People(bus.redis)
    alerts = Alerts(ledger, Counters(bus.redis), people, number=number, owner=OWNER)

    async def link_of(piece: Piece, client: str) -> str:
        return f"http://127.0.0.1:9/files/{piece.document_id}/{piece.name}"

    return Sender(ledger, channel, people, alerts, link_of, template)


async def waiting(ledger: Ledger, chat: str) -> list[str]:
    """What is put before the chat's next reply."""
    return [each.text for each in await ledger.waiting(chat)]
