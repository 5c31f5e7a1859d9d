"""What comes before any permission is asked: who opted out is left alone, whoever they are."""

from __future__ import annotations

import time
from collections.abc import Sequence

from mesh.catalogue import say
from mesh.commands import command_of
from mesh.contracts.orchestrator import Piece, Reply
from mesh.lease import TurnRecord
from mesh.people import People, Person
from mesh.ports.channel import Inbound
from mesh.text import language


async def before(turn: TurnRecord, messages: Sequence[Inbound], people: People) -> Reply | None:
    """A reply that needs nobody else, or the reason to stay silent; None: the turn is to be planned."""
    last = messages[-1]
    if turn.kind == "notice":
        return notice(last)
    person = await people.of(turn.recipient)
    command = command_of(last.text, last.button) if turn.kind == "command" or last.button else None
    if command and command.name in ("stop", "start"):
        return await _opted(command.name, turn.recipient, last.message_id, person, people)
    if person.silence and person.silenced_by != last.message_id:
        return Reply(text="", silent=person.silence)
    if all(message.kind == "reaction" for message in messages):
        return Reply(text="", silent="a reaction")
    return None


def notice(message: Inbound) -> Reply:
    """What the mesh says of its own accord."""
    piece = message.fields.get("Piece", "")
    return Reply(text=message.text, pieces=(Piece.model_validate_json(piece),) if piece else ())


async def _opted(which: str, client: str, message_id: str, person: Person, people: People) -> Reply:
    spoken = person.language
    if which == "start":
        await people.note(client, opted_out_at=0)
        word = "handed_over" if person.handed_over_at else "opted_in" if person.opted_out_at else "not_opted_out"
        return Reply(text=say(word, spoken), regardless=True)
    if person.opted_out_at and person.silenced_by != message_id:
        return Reply(text="", silent=person.silence)
    await people.note(client, opted_out_at=time.time(), silenced_by=message_id)
    return Reply(text=say("opted_out", spoken), regardless=True)


def spoken_by(person: Person, text: str) -> str:
    """In which language they are answered: that of the text, where it tells."""
    return language(text) or person.language or "en"
