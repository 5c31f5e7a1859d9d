"""The orchestrator: turns of a conversation in, replies out."""

from __future__ import annotations

from datetime import timedelta

from mesh.access import DRIVE_LEDGER
from mesh.contracts.answers import Line, Nothing, Source
from mesh.envelope import Wire
from mesh.ports.channel import InboundKind
from mesh.skills import Skill


class SentFile(Wire):
    """A file of a person's message, not fetched yet: `mesh.ports.channel.Attachment` on the wire."""

    reference: str
    media_type: str = ""
    name: str = ""


class Turn(Wire):
    chat: str
    text: str
    media: int = 0
    message_id: str
    history: tuple[Line, ...] = ()
    kind: InboundKind = "text"
    files: tuple[SentFile, ...] = ()
    quoted: str = ""
    button: str = ""


ANSWER = "turn:"


class Piece(Wire):
    """One message of the provider's. `document_id` names a file to be shown; its link is made when it is sent."""

    text: str = ""
    document_id: str = ""
    """Or `ANSWER` and a turn's id: that reply, as a file."""
    name: str = ""
    """Of that file."""
    template: str = ""
    """The provider's id of a text that may be sent while its person's window is closed."""


class Reply(Wire):
    """`pieces` is how it is sent, in order; empty: as one text."""

    text: str
    pieces: tuple[Piece, ...] = ()
    silent: str = ""
    """Why nothing is sent at all: `opted out`, `handed over`, `a reaction`. Recorded, never lost."""
    regardless: bool = False
    """Is sent to who opted out, or was handed over, too: it confirms just that."""
    sources: tuple[Source, ...] = ()
    skill: str = ""
    """Which skill answered; empty for the orchestrator's own words."""
    steps: tuple[str, ...] = ()
    """`skill outcome milliseconds`, in order: why it said that."""


class Chat(Wire):
    chat: str


class Standing(Wire):
    """What a reply stands on; as an answer, what of it the person may still see."""

    sources: tuple[Source, ...] = ()


CONVERSE = Skill(
    name="orchestrator.converse",
    takes=Turn,
    returns=Reply,
    needs="chat:converse",
    within=timedelta(minutes=10),
    fresh=True,
)
TAKE_TURNS = Skill(
    name="orchestrator.take_turns",
    takes=Chat,
    returns=Nothing,
    needs=DRIVE_LEDGER,
    within=timedelta(minutes=10),
)
CLEAR_TO_SEND = Skill(
    name="orchestrator.clear_to_send",
    takes=Standing,
    returns=Standing,
    needs="chat:converse",
    within=timedelta(seconds=5),
    fresh=True,
)
"""Whether the person may have it at all, looked up once more; and what has gone since it was written."""
